//! Matching an address against a template, in one pass and without backtracking.

use serde_json::{Map, Value};

use super::folder::is_evasive;

/// A template of literal text and `{name}` variables, as in `files://{id}/data`.
#[derive(Clone, Debug)]
pub(super) struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    /// One segment: everything up to the next literal, without slashes.
    Segment(String),
    /// `{+name}`: everything up to the next literal, slashes included.
    Path(String),
}

impl UriTemplate {
    pub(super) fn parse(template: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else {
                break;
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            parts.push(match name.strip_prefix('+') {
                Some(name) => Part::Path(name.to_owned()),
                None => Part::Segment(name.to_owned()),
            });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Self { parts }
    }

    /// The values of the variables, if the address fits.
    pub(super) fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        let mut found = Map::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Segment(name) | Part::Path(name) => {
                    let end = match self.parts.get(at + 1) {
                        Some(Part::Literal(next)) => rest.find(next.as_str())?,
                        Some(Part::Segment(_) | Part::Path(_)) => return None,
                        None => rest.len(),
                    };
                    let (value, tail) = rest.split_at(end);
                    let is_segment = matches!(part, Part::Segment(_));
                    // Values become paths sooner or later; those that would lead elsewhere fit nothing.
                    if value.is_empty() || (is_segment && value.contains('/')) || is_evasive(value)
                    {
                        return None;
                    }
                    found.insert(name.clone(), Value::from(value));
                    rest = tail;
                }
            }
        }
        rest.is_empty().then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4: a template finds its variables and nothing that it does not describe.
    #[test]
    fn templates_find_their_variables() {
        let template = UriTemplate::parse("test://template/{id}/data");
        assert_eq!(
            template.matches("test://template/123/data").unwrap()["id"],
            "123"
        );
        for bad in [
            "test://template//data",
            "test://template/1/2/data",
            "test://template/1/data/x",
            "x",
        ] {
            assert!(template.matches(bad).is_none(), "{bad}");
        }
        let path = UriTemplate::parse("file:///{+path}");
        assert_eq!(path.matches("file:///a/b").unwrap()["path"], "a/b");
        assert!(
            UriTemplate::parse("{a}{b}").matches("xy").is_none(),
            "ambiguous"
        );
    }

    /// F4: a hostile address costs no more than its length.
    #[test]
    fn long_addresses_are_harmless() {
        let template = UriTemplate::parse("a{x}a{y}a{z}a");
        assert!(template.matches(&"a".repeat(1 << 20)).is_none());
    }
}
