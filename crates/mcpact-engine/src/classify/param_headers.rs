//! Tool parameters that are mirrored into `Mcp-Param-*` headers.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::Header;
use mcpact_wire::header_value;
use mcpact_wire::raw::{JsonKind, Object};
use mcpact_wire::scan::text;

use super::facts::HeaderField;
use crate::refusal::{HeaderFault, Misbehaviour};

/// The annotation in a tool's schema.
const KEY: &str = "x-mcp-header";

/// A parameter that has a header of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The chain of property names that leads to it.
    pub path: Vec<Box<str>>,
    /// The full name of its header.
    pub header: Box<str>,
}

/// Fault in the annotations of a schema; the tool is then left out of lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationFault {
    /// The name is empty or not an HTTP token.
    #[error("`{0}` is not a header name")]
    Name(Box<str>),
    /// Two parameters share a name, without regard to case.
    #[error("header name `{0}` is used twice")]
    Twice(Box<str>),
    /// The parameter is not a string, an integer or a boolean.
    #[error("`{0}` is annotated but is not a string, integer or boolean")]
    Type(String),
    /// The parameter is not reached by `properties` alone.
    #[error("an annotation stands where no property path leads")]
    Unreachable,
}

/// Finds the annotated parameters of a tool's `inputSchema`.
///
/// `2026-07-28 basic/transports/streamable-http#schema-extension`
///
/// # Errors
/// The first annotation that breaks a rule.
pub fn annotations(schema: &str) -> Result<Vec<Annotation>, AnnotationFault> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    walk(schema, &mut path, &mut found)?;
    if count(schema) != found.len() {
        return Err(AnnotationFault::Unreachable);
    }
    for (at, annotation) in found.iter().enumerate() {
        if found[..at]
            .iter()
            .any(|other| other.header.eq_ignore_ascii_case(&annotation.header))
        {
            return Err(AnnotationFault::Twice(annotation.header.clone()));
        }
    }
    Ok(found)
}

fn walk(
    schema: &str,
    path: &mut Vec<Box<str>>,
    found: &mut Vec<Annotation>,
) -> Result<(), AnnotationFault> {
    let Ok(schema) = Object::parse(schema) else {
        return Ok(());
    };
    if let Some(raw) = schema.get(KEY) {
        found.push(annotation(raw, &schema, path)?);
    }
    let Some(Ok(properties)) = schema.get("properties").map(Object::parse) else {
        return Ok(());
    };
    for (key, raw) in properties.iter() {
        path.push(Box::from(key));
        walk(raw, path, found)?;
        path.pop();
    }
    Ok(())
}

fn annotation(
    raw: &str,
    schema: &Object<'_>,
    path: &[Box<str>],
) -> Result<Annotation, AnnotationFault> {
    let name = text(raw).unwrap_or_default();
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(AnnotationFault::Name(Box::from(raw)));
    }
    let kind = schema.get_str("type").unwrap_or_default();
    if !matches!(kind.as_ref(), "string" | "integer" | "boolean") || path.is_empty() {
        return Err(AnnotationFault::Type(path.join(".")));
    }
    Ok(Annotation {
        path: path.to_vec(),
        header: format!("{}{name}", Header::ParamPrefix.name()).into(),
    })
}

/// Number of annotations in the whole schema, reachable or not. A property that is
/// itself called like the annotation does not count.
fn count(raw: &str) -> usize {
    match JsonKind::of(raw) {
        JsonKind::Object => {
            let Ok(object) = Object::parse(raw) else {
                return 0;
            };
            object
                .iter()
                .map(|(key, value)| match key {
                    KEY => 1,
                    "properties" | "$defs" | "definitions" => Object::parse(value)
                        .map_or(0, |all| all.iter().map(|(_, schema)| count(schema)).sum()),
                    "default" | "const" | "enum" | "examples" => 0,
                    _ => count(value),
                })
                .sum()
        }
        JsonKind::Array => {
            mcpact_wire::raw::elements(raw).map_or(0, |all| all.into_iter().map(count).sum())
        }
        JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => 0,
    }
}

/// The header value for a raw argument; none for values that have no header.
#[must_use]
pub fn header_for(raw: &str) -> Option<String> {
    match JsonKind::of(raw) {
        JsonKind::String => text(raw).map(|value| header_value::encode(&value).to_string()),
        JsonKind::Boolean => Some(String::from(raw)),
        JsonKind::Number => header_value::safe_integer(raw).map(|number| number.to_string()),
        JsonKind::Null | JsonKind::Object | JsonKind::Array => None,
    }
}

/// The raw argument that an annotation points at.
#[must_use]
pub fn argument<'a>(annotation: &Annotation, arguments: Option<&'a str>) -> Option<&'a str> {
    let mut raw = arguments?;
    for segment in &annotation.path {
        raw = Object::parse(raw).ok()?.get_present(segment)?;
    }
    Some(raw)
}

/// Checks that every annotated argument is mirrored.
///
/// # Errors
/// The first header that is missing, malformed or different.
pub fn check<'h>(
    annotations: &[Annotation],
    arguments: Option<&str>,
    header: impl Fn(&str) -> HeaderField<'h>,
) -> Result<(), Misbehaviour> {
    for annotation in annotations {
        let fault = |fault| Misbehaviour::Header {
            name: annotation.header.clone(),
            fault,
        };
        let Some(raw) = argument(annotation, arguments) else {
            // A router would act on a header value that the body does not have.
            match header(&annotation.header) {
                HeaderField::Absent => continue,
                HeaderField::Once(_) | HeaderField::Repeated => {
                    return Err(fault(HeaderFault::Differs));
                }
            }
        };
        let value = match header(&annotation.header) {
            HeaderField::Absent => return Err(fault(HeaderFault::Missing)),
            HeaderField::Repeated => return Err(fault(HeaderFault::Repeated)),
            HeaderField::Once(value) => value,
        };
        let decoded = header_value::decode(value).map_err(|_| fault(HeaderFault::Malformed))?;
        let is_same = match JsonKind::of(raw) {
            JsonKind::Number => header_value::same_number(&decoded, raw),
            JsonKind::String => text(raw).is_some_and(|body| body == decoded),
            JsonKind::Boolean => decoded == raw,
            JsonKind::Null | JsonKind::Object | JsonKind::Array => false,
        };
        if !is_same {
            return Err(fault(HeaderFault::Differs));
        }
    }
    Ok(())
}
