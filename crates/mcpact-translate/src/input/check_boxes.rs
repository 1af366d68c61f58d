//! A form field with several choices, for clients without such fields: a check box per choice.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};
use mcpact_wire::scan::text;

/// A form with more boxes is not worth showing.
const MOST: usize = 16;

/// The fields that were spread, so that the answer can be gathered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckBoxes {
    fields: Vec<(Box<str>, Vec<Choice>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    /// The name of its box.
    name: String,
    /// The raw value.
    value: String,
    title: String,
}

/// The parameters of a form with check boxes in place of its choices; none when it has no choices,
/// or none that can be shown so.
pub(super) fn spread(params: &str) -> Option<(String, CheckBoxes)> {
    let members = Object::parse(params).ok()?;
    let schema = Object::parse(members.get("requestedSchema")?).ok()?;
    let properties = Object::parse(schema.get("properties")?).ok()?;
    let mut boxes = CheckBoxes { fields: Vec::new() };
    let mut out = ObjectWriter::new();
    for (name, raw) in properties.iter() {
        let field = Object::parse(raw).ok()?;
        if field.get_str("type").as_deref() != Some("array") {
            out = out.raw(name, raw);
            continue;
        }
        let choices = choices(name, &field)?;
        for choice in &choices {
            out = out.raw(&choice.name, &check_box(name, &field, choice));
        }
        boxes.fields.push((name.into(), choices));
    }
    let names = boxes.names().count();
    let is_taken = boxes.names().any(|name| properties.get(name).is_some());
    if names == 0 || names > MOST || is_taken {
        return None;
    }
    let required = boxes.still_required(schema.get_present("required"))?;
    let schema = with(&schema, "properties", &out.finish());
    let schema = with(&Object::parse(&schema).ok()?, "required", &required);
    Some((with(&members, "requestedSchema", &schema), boxes))
}

impl CheckBoxes {
    fn names(&self) -> impl Iterator<Item = &str> {
        let choices = self.fields.iter().flat_map(|(_, choices)| choices);
        choices.map(|choice| choice.name.as_str())
    }

    /// An unchecked box is an answer, so none is required.
    fn still_required(&self, required: Option<&str>) -> Option<String> {
        let is_spread = |raw: &&str| {
            let name = text(raw).unwrap_or_default();
            self.fields.iter().any(|(field, _)| **field == *name)
        };
        let kept = elements(required.unwrap_or("[]")).ok()?;
        let kept: Vec<&str> = kept.into_iter().filter(|raw| !is_spread(raw)).collect();
        Some(format!("[{}]", kept.join(",")))
    }

    /// The answer as the server expects it: the checked boxes are the choices.
    pub(super) fn gather(&self, answer: &str) -> String {
        let members = Object::parse(answer).unwrap_or_default();
        let Some(content) = members.get_present("content") else {
            return answer.into();
        };
        let content = Object::parse(content).unwrap_or_default();
        let is_box = |key: &str| self.names().any(|name| name == key);
        let mut out = content.keep(|key| !is_box(key));
        for (field, choices) in &self.fields {
            let chosen: Vec<&str> = choices
                .iter()
                .filter(|choice| content.get(&choice.name) == Some("true"))
                .map(|choice| choice.value.as_str())
                .collect();
            out = out.raw(field, &format!("[{}]", chosen.join(",")));
        }
        with(&members, "content", &out.finish())
    }
}

/// The choices of a field, plain or with titles.
fn choices(name: &str, field: &Object<'_>) -> Option<Vec<Choice>> {
    let items = Object::parse(field.get("items")?).ok()?;
    let listed = items.get("anyOf").or_else(|| items.get("enum"))?;
    let mut choices = Vec::new();
    for raw in elements(listed).ok()? {
        let titled = Object::parse(raw).ok();
        let value = titled
            .as_ref()
            .map_or(Some(raw), |option| option.get("const"))?;
        let title = titled.and_then(|option| option.get_str("title"));
        choices.push(Choice {
            name: format!("{name}_{}", choices.len() + 1),
            value: value.into(),
            title: title.or_else(|| text(value))?.into_owned(),
        });
    }
    Some(choices)
}

fn check_box(name: &str, field: &Object<'_>, choice: &Choice) -> String {
    let label = field.get_str("title").unwrap_or_else(|| name.into());
    let default = field.get_present("default").unwrap_or("[]");
    let is_default = elements(default).is_ok_and(|all| all.contains(&choice.value.as_str()));
    let description = field
        .get("description")
        .filter(|raw| JsonKind::of(raw) == JsonKind::String);
    ObjectWriter::new()
        .text("type", "boolean")
        .text("title", &format!("{label}: {}", choice.title))
        .maybe_raw("description", description)
        .maybe_raw("default", is_default.then_some("true"))
        .finish()
}

/// The object with one member replaced or added.
fn with(object: &Object<'_>, key: &str, value: &str) -> String {
    object.keep(|name| name != key).raw(key, value).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"who":{"type":"string"},"tags":{"type":"array","title":"Tags","description":"d","items":{"type":"string","enum":["a","b"]},"default":["b"]},"sizes":{"type":"array","items":{"anyOf":[{"const":"s","title":"Small"}]}}},"required":["who","tags"]}}"#;

    #[test]
    fn choices_become_check_boxes_and_choices_again() {
        let (form, boxes) = spread(FORM).unwrap();
        let expected = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"who":{"type":"string"},"tags_1":{"type":"boolean","title":"Tags: a","description":"d"},"tags_2":{"type":"boolean","title":"Tags: b","description":"d","default":true},"sizes_1":{"type":"boolean","title":"sizes: Small"}},"required":["who"]}}"#;
        assert_eq!(form, expected);
        let cells = [
            (
                r#"{"action":"accept","content":{"who":"x","tags_1":true,"tags_2":false,"sizes_1":true}}"#,
                r#"{"action":"accept","content":{"who":"x","tags":["a"],"sizes":["s"]}}"#,
            ),
            (
                r#"{"action":"accept","content":{"who":"x"}}"#,
                r#"{"action":"accept","content":{"who":"x","tags":[],"sizes":[]}}"#,
            ),
            (r#"{"action":"decline"}"#, r#"{"action":"decline"}"#),
        ];
        for (answer, expected) in cells {
            assert_eq!(boxes.gather(answer), expected);
        }
    }

    #[test]
    fn forms_that_cannot_be_spread_are_left_alone() {
        let choice = r#"{"type":"array","items":{"enum":["a"]}}"#;
        let many: Vec<String> = (0..17).map(|n| format!(r#""{n}""#)).collect();
        let many = format!(
            r#"{{"type":"array","items":{{"enum":[{}]}}}}"#,
            many.join(",")
        );
        let cells = [
            ("no choices", String::from(r#""a":{"type":"string"}"#)),
            (
                "a taken name",
                format!(r#""a":{choice},"a_1":{{"type":"string"}}"#),
            ),
            ("no list", String::from(r#""a":{"type":"array"}"#)),
            (
                "no texts",
                String::from(r#""a":{"type":"array","items":{"enum":[1]}}"#),
            ),
            ("too many", format!(r#""a":{many}"#)),
        ];
        for (name, properties) in cells {
            let form = format!(r#"{{"requestedSchema":{{"properties":{{{properties}}}}}}}"#);
            assert_eq!(spread(&form), None, "{name}");
        }
        assert_eq!(spread("[]"), None);
    }
}
