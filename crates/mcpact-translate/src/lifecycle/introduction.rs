use alloc::boxed::Box;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::Side;
use mcpact_wire::model::discover::DiscoverResult;
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::InitializeResult;

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

/// The version of a server without one; legacy schemas require one.
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
}

fn declared(raw: Option<&str>, reading: Reading) -> Result<CapabilitySet, BodyFault> {
    CapabilitySet::parse(Side::Server, raw, reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(result: &str) -> Introduction {
        Introduction::of_discover(result, "files", Reading::Lenient).unwrap()
    }

    const NAMED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"be \"kind\"","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2","title":"S","icons":[]}}}"#;

    #[test]
    fn a_discovered_server_introduces_itself() {
        let server = met(NAMED);
        assert!(server.is_named);
        assert_eq!(server.server_info.name(), "s");
        assert_eq!(server.server_info.version(), "2");
        assert_eq!(server.instructions.as_deref(), Some("be \"kind\""));
        assert_eq!(server.capabilities.raw(), r#"{"tools":{}}"#);
    }

    /// BA-02: a legacy client always hears a name and a version.
    #[test]
    fn a_server_without_a_name_gets_ours() {
        let server = met(r#"{"supportedVersions":[],"capabilities":{}}"#);
        assert!(!server.is_named);
        assert_eq!(server.server_info.name(), "files");
        assert_eq!(server.server_info.version(), "0");
        assert_eq!(server.instructions, None);
    }

    #[test]
    fn both_handshakes_introduce_alike() {
        let result = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"2","title":"S","icons":[]},"instructions":"be \"kind\""}"#;
        let server = Introduction::of_initialize(result, Reading::Lenient).unwrap();
        assert_eq!(met(NAMED), server);
    }
}
