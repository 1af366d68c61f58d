//! What is kept of one server, as a document.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Method, Revision, Side};
use mcpact_translate::lifecycle::Introduction;
use mcpact_wire::model::implementation::Implementation;
use serde_json::{Value, json};

use crate::aggregate::kind::ListKind;
use crate::bridge::Met;

/// Documents of other versions are not read.
const VERSION: u64 = 1;

/// What is kept of one server.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) met: Met,
    pub(crate) lists: Vec<KeptList>,
}

/// One list, as somebody was shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptList {
    pub(crate) kind: ListKind,
    /// Who was shown it, as a digest.
    pub(crate) reader: Box<str>,
    /// What the server spoke.
    pub(crate) revision: Revision,
    /// The pages as they came.
    pub(crate) pages: Vec<String>,
}

impl Record {
    pub(crate) fn encode(&self) -> String {
        let Introduction {
            server_info,
            is_named,
            instructions,
            capabilities,
        } = &self.met.introduction;
        let lists: Vec<Value> = self.lists.iter().map(KeptList::encode).collect();
        json!({
            "version": VERSION,
            "revision": self.met.revision.as_str(),
            "serverInfo": server_info.raw(),
            "isNamed": is_named,
            "instructions": instructions.as_deref(),
            "capabilities": capabilities.raw(),
            "lists": lists,
        })
        .to_string()
    }

    /// None if it is not such a document.
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
        let lists = document["lists"].as_array()?.iter().map(KeptList::parse);
        Some(Self {
            met: Met {
                revision: revision(&document)?,
                introduction,
            },
            lists: lists.collect::<Option<_>>()?,
        })
    }
}

impl KeptList {
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

    fn record() -> Record {
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{ "listChanged":true}},"serverInfo":{"name":"s","version":"2"},"instructions":"be \"kind\""}"#;
        Record {
            met: Met {
                revision: Revision::V2025_11_25,
                introduction: Introduction::of_initialize(result, Reading::Lenient).unwrap(),
            },
            lists: vec![KeptList {
                kind: ListKind::Tools,
                reader: Box::from("0a"),
                revision: Revision::V2025_11_25,
                pages: vec![String::from("{\"tools\":[ {\"name\":\"\u{e4}\"}]}")],
            }],
        }
    }

    /// What is read is what was written, byte by byte where it came from the server.
    #[test]
    fn records_come_back_as_they_were() {
        let record = record();
        let read = Record::parse(&record.encode()).unwrap();
        assert_eq!(read.met.revision, record.met.revision);
        assert_eq!(read.met.introduction, record.met.introduction);
        assert_eq!(read.lists, record.lists);
    }

    /// Whatever is wrong with a document, it is as if there were none.
    #[test]
    fn damaged_records_are_not_read() {
        let whole = record().encode();
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(Record::parse(&whole[..end]).is_none(), "{end}");
        }
        for (written, damaged) in [
            ("\"version\":1", "\"version\":2"),
            ("\"2025-11-25\"", "\"2025-11-26\""),
            ("tools/list", "tools/call"),
            ("\"reader\":\"0a\"", "\"reader\":1"),
        ] {
            assert!(whole.contains(written), "{written}");
            let damaged = whole.replace(written, damaged);
            assert!(Record::parse(&damaged).is_none(), "{damaged}");
        }
    }
}
