//! Cached metadata of one server, as JSON.

use mcpact_config::shortened;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Method, Revision, Side};
use mcpact_translate::lifecycle::Introduction;
use mcpact_wire::model::implementation::Implementation;
use serde_json::{Value, json};

use crate::aggregate::list_kind::ListKind;

/// Format version; files of other versions are ignored.
const VERSION: u64 = 1;

/// Maximum number of wrongly typed capabilities in the status of a server.
const MAX_FAULTS: usize = 8;

/// Revision of a server, and the description that it returned when it was connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerProfile {
    pub(crate) revision: Revision,
    pub(crate) introduction: Introduction,
}

impl ServerProfile {
    /// Returns the name and version that the server reports.
    pub(crate) fn own_name(&self) -> Option<String> {
        let introduction = &self.introduction;
        let name = introduction.server_info.name();
        (introduction.is_named && !name.is_empty()).then(|| name.to_owned())
    }

    /// Returns the wrongly typed capabilities, which count as absent.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let faults = self.introduction.capabilities.findings().iter();
        faults
            .take(MAX_FAULTS)
            .map(|fault| shortened(&fault.to_string()).into_owned())
            .collect()
    }
}

/// Metadata of one server.
#[derive(Debug)]
pub(crate) struct ServerMetadata {
    pub(crate) profile: ServerProfile,
    pub(crate) lists: Vec<CachedList>,
}

/// A list, as one kind of client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedList {
    pub(crate) kind: ListKind,
    /// Digest of the affinity of that client.
    pub(crate) reader: Box<str>,
    /// Revision of the server.
    pub(crate) revision: Revision,
    /// Raw pages.
    pub(crate) pages: Vec<String>,
}

impl ServerMetadata {
    pub(crate) fn encode(&self) -> String {
        let introduction = &self.profile.introduction;
        let lists: Vec<Value> = self.lists.iter().map(CachedList::encode).collect();
        json!({
            "version": VERSION,
            "revision": self.profile.revision.as_str(),
            "serverInfo": introduction.server_info.raw(),
            "isNamed": introduction.is_named,
            "instructions": introduction.instructions.as_deref(),
            "capabilities": introduction.capabilities.raw(),
            "lists": lists,
        })
        .to_string()
    }

    /// Parses a file. Returns none if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(text).ok()?;
        if document["version"] != VERSION {
            return None;
        }
        let info = document["serverInfo"].as_str();
        let declared = document["capabilities"].as_str();
        let introduction = Introduction {
            server_info: Implementation::parse("serverInfo", info).ok()?,
            is_named: document["isNamed"].as_bool()?,
            instructions: document["instructions"].as_str().map(Box::from),
            capabilities: CapabilitySet::parse(Side::Server, declared, Reading::Lenient).ok()?,
        };
        let lists = document["lists"].as_array()?.iter().map(CachedList::parse);
        Some(Self {
            profile: ServerProfile {
                revision: revision(&document)?,
                introduction,
            },
            lists: lists.collect::<Option<_>>()?,
        })
    }
}

impl CachedList {
    fn encode(&self) -> Value {
        json!({
            "list": self.kind.method().as_str(),
            "reader": self.reader,
            "revision": self.revision.as_str(),
            "pages": self.pages,
        })
    }

    fn parse(document: &Value) -> Option<Self> {
        let method = Method::parse(document["list"].as_str()?)?;
        let pages = document["pages"].as_array()?.iter();
        let pages = pages.map(|page| page.as_str().map(str::to_owned));
        Some(Self {
            kind: ListKind::of(method)?,
            reader: Box::from(document["reader"].as_str()?),
            revision: revision(document)?,
            pages: pages.collect::<Option<_>>()?,
        })
    }
}

fn revision(document: &Value) -> Option<Revision> {
    Revision::parse(document["revision"].as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> ServerMetadata {
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{ "listChanged":true}},"serverInfo":{"name":"s","version":"2"},"instructions":"be \"kind\""}"#;
        ServerMetadata {
            profile: ServerProfile {
                revision: Revision::V2025_11_25,
                introduction: Introduction::of_initialize(result, Reading::Lenient).unwrap(),
            },
            lists: vec![CachedList {
                kind: ListKind::Tools,
                reader: Box::from("0a"),
                revision: Revision::V2025_11_25,
                pages: vec![String::from("{\"tools\":[ {\"name\":\"\u{e4}\"}]}")],
            }],
        }
    }

    #[test]
    fn encoded_metadata_parses_unchanged() {
        let metadata = metadata();
        let read = ServerMetadata::parse(&metadata.encode()).unwrap();
        assert_eq!(read.profile.revision, metadata.profile.revision);
        assert_eq!(read.profile.introduction, metadata.profile.introduction);
        assert_eq!(read.lists, metadata.lists);
    }

    #[test]
    fn invalid_metadata_is_ignored() {
        let whole = metadata().encode();
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(ServerMetadata::parse(&whole[..end]).is_none(), "{end}");
        }
        for (written, damaged) in [
            ("\"version\":1", "\"version\":2"),
            ("\"2025-11-25\"", "\"2025-11-26\""),
            ("tools/list", "tools/call"),
            ("\"reader\":\"0a\"", "\"reader\":1"),
        ] {
            assert!(whole.contains(written), "{written}");
            let damaged = whole.replace(written, damaged);
            assert!(ServerMetadata::parse(&damaged).is_none(), "{damaged}");
        }
    }
}
