use alloc::boxed::Box;
use alloc::string::String;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Revision, Side};
use mcpact_wire::model::discover::{CacheScope, DiscoverAnswer, DiscoverResult};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::{InitializeResult, encode_result};

/// Self-description of a server, from either handshake or discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Name and version.
    pub server_info: Implementation,
    /// True if it said so itself.
    pub is_named: bool,
    /// Its hint for the model.
    pub instructions: Option<Box<str>>,
    /// Declared capabilities, as received.
    pub capabilities: CapabilitySet,
}

/// The version of a server that tells none; legacy schemas require one.
const NO_VERSION: &str = "0";

impl Introduction {
    /// Reads the answer to `initialize`.
    ///
    /// # Errors
    /// The first member that is missing or of the wrong kind.
    pub fn of_initialize(result: &str, reading: Reading) -> Result<Self, BodyFault> {
        let result = InitializeResult::parse(result)?;
        Ok(Self {
            server_info: result.server_info,
            is_named: true,
            instructions: result.instructions.map(|text| Box::from(text.as_ref())),
            capabilities: declared(result.capabilities, reading)?,
        })
    }

    /// Reads the answer to `server/discover`; `known_as` is our name for a server that does not say
    /// who it is.
    ///
    /// # Errors
    /// The first member that is missing or of the wrong kind.
    pub fn of_discover(result: &str, known_as: &str, reading: Reading) -> Result<Self, BodyFault> {
        let result = DiscoverResult::parse(result)?;
        let unnamed = || Implementation::new(known_as, NO_VERSION);
        Ok(Self {
            is_named: result.server_info.is_some(),
            server_info: result.server_info.unwrap_or_else(unnamed),
            instructions: result.instructions.map(|text| Box::from(text.as_ref())),
            capabilities: declared(result.capabilities, reading)?,
        })
    }

    /// The answer to `initialize` of a client that speaks `revision` and is shown these
    /// capabilities.
    #[must_use]
    pub fn to_initialize(&self, revision: Revision, shown: &CapabilitySet) -> String {
        encode_result(
            revision.as_str(),
            shown.raw(),
            &self.server_info.encode(revision),
            self.instructions.as_deref(),
        )
    }

    /// The answer to `server/discover` of a client that is shown these capabilities.
    ///
    /// It may differ between the sessions of two callers, so it is private.
    #[must_use]
    pub fn to_discover(&self, versions: &[&str], shown: &CapabilitySet, ttl_ms: u64) -> String {
        DiscoverAnswer {
            supported_versions: versions,
            capabilities: shown.raw(),
            server_info: self.server_info.raw(),
            instructions: self.instructions.as_deref(),
            ttl_ms,
            cache_scope: CacheScope::Private,
        }
        .encode()
    }
}

fn declared(raw: Option<&str>, reading: Reading) -> Result<CapabilitySet, BodyFault> {
    CapabilitySet::parse(Side::Server, raw, reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2025_06_18, V2025_11_25};
    use mcpact_wire::raw::Object;

    fn met(result: &str) -> Introduction {
        Introduction::of_discover(result, "files", Reading::Lenient).unwrap()
    }

    const NAMED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"be \"kind\"","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2","title":"S","icons":[]}}}"#;

    /// BA-01: a legacy client gets its own revision, the identity of the server and its instructions.
    #[test]
    fn a_discovered_server_is_introduced_by_a_handshake() {
        let server = met(NAMED);
        let answer = server.to_initialize(V2025_06_18, &server.capabilities);
        let answer = Object::parse(&answer).unwrap();
        assert_eq!(answer.get_str("protocolVersion").unwrap(), "2025-06-18");
        assert_eq!(answer.get_str("instructions").unwrap(), "be \"kind\"");
        assert_eq!(answer.get("capabilities"), Some(r#"{"tools":{}}"#));
        let info = answer.get("serverInfo").unwrap();
        assert_eq!(info, r#"{"name":"s","version":"2","title":"S"}"#);
    }

    /// BA-02: a legacy client always hears a name and a version.
    #[test]
    fn a_server_without_a_name_gets_ours() {
        let server = met(r#"{"supportedVersions":[],"capabilities":{}}"#);
        let answer = server.to_initialize(V2025_11_25, &server.capabilities);
        let answer = Object::parse(&answer).unwrap();
        let info = Object::parse(answer.get("serverInfo").unwrap()).unwrap();
        assert_eq!(info.get_str("name").unwrap(), "files");
        assert!(!server.is_named && met(NAMED).is_named);
        assert_eq!(info.get_str("version").unwrap(), "0");
        assert_eq!(answer.get("instructions"), None);
    }

    #[test]
    fn a_handshake_becomes_a_discovery() {
        let result = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"2"},"instructions":"hm"}"#;
        let server = Introduction::of_initialize(result, Reading::Lenient).unwrap();
        let told = server.to_discover(&["2026-07-28"], &server.capabilities, 0);
        assert_eq!(met(&told), server);
        let told = Object::parse(&told).unwrap();
        assert_eq!(told.get_str("cacheScope").unwrap(), "private");
        assert_eq!(told.get("ttlMs"), Some("0"));
    }
}
