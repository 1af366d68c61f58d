//! Resources, templates, their contents and their annotations.

use alloc::string::String;

use mcpact_spec::{Object, Revision};

use super::members::{edit, trim};
use super::shape_error::ShapeError;

/// A resource or a template in a list.
pub(super) fn adapt(raw: &str, object: Object, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |resource| {
        resource.trim(object, to);
        resource.rewrite("annotations", |raw| trim(raw, Object::Annotations, to))
    })
}

/// Contents of a resource, read or embedded.
pub(super) fn adapt_contents(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |contents| {
        let object = match contents.get("blob") {
            Some(_) => Object::BlobResourceContents,
            None => Object::TextResourceContents,
        };
        contents.trim(object, to);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

    #[test]
    fn members_follow_the_revision() {
        let raw = r#"{"uri":"u","name":"n","title":"t","size":1,"icons":[],"annotations":{"priority":1,"lastModified":"d"},"_meta":{},"x":1}"#;
        let cells = [
            (
                V2024_11_05,
                r#"{"uri":"u","name":"n","size":1,"annotations":{"priority":1},"x":1}"#,
            ),
            (
                V2025_03_26,
                r#"{"uri":"u","name":"n","size":1,"annotations":{"priority":1},"x":1}"#,
            ),
            (
                V2025_06_18,
                r#"{"uri":"u","name":"n","title":"t","size":1,"annotations":{"priority":1,"lastModified":"d"},"_meta":{},"x":1}"#,
            ),
            (V2025_11_25, raw),
        ];
        for (to, expected) in cells {
            for object in [Object::Resource, Object::ResourceTemplate] {
                let adapted = adapt(raw, object, to).unwrap();
                assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{to}");
            }
        }
    }

    #[test]
    fn contents_lose_meta_where_it_is_unknown() {
        let cells = [
            (
                r#"{"uri":"u","text":"a","_meta":{}}"#,
                r#"{"uri":"u","text":"a"}"#,
            ),
            (
                r#"{"uri":"u","blob":"YQ==","_meta":{}}"#,
                r#"{"uri":"u","blob":"YQ=="}"#,
            ),
        ];
        for (raw, expected) in cells {
            assert_eq!(
                adapt_contents(raw, V2025_03_26).unwrap().as_deref(),
                Some(expected)
            );
            assert_eq!(adapt_contents(raw, V2025_06_18).unwrap(), None);
        }
    }
}
