//! URI templates, matched in one pass without backtracking.

use serde_json::{Map, Value};

use super::folder::is_path_traversal;

/// Template of literal text and `{name}` variables, such as `files://{id}/data`.
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

    /// Returns the values of the variables, if the URI matches.
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
                    // Values may become paths; path traversal never matches.
                    if value.is_empty()
                        || (is_segment && value.contains('/'))
                        || is_path_traversal(value)
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

    /// F4: a template extracts its variables and matches nothing else.
    #[test]
    fn template_extracts_variables() {
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

    /// F4: the cost of a hostile URI is linear in its length.
    #[test]
    fn long_uris_take_linear_time() {
        let template = UriTemplate::parse("a{x}a{y}a{z}a");
        assert!(template.matches(&"a".repeat(1 << 20)).is_none());
    }
}
