//! Members of the shared objects.

use std::collections::{BTreeMap, BTreeSet};

use mcpact_spec::Object;
use serde_json::{Map, Value};

use super::comparison::{Comparison, yes_no};
use super::schema::Schema;

/// Objects that some schemas define under another name, or in place, without a name.
///
/// The newest place comes first: `EnumSchema` is a union where `LegacyTitledEnumSchema` exists.
const PLACES: &[(Object, &[&str])] = &[
    (
        Object::Annotations,
        &["Annotations", "Annotated/properties/annotations"],
    ),
    (
        Object::LegacyTitledEnumSchema,
        &["LegacyTitledEnumSchema", "EnumSchema"],
    ),
    (
        Object::CompleteRequestParams,
        &["CompleteRequestParams", "CompleteRequest/properties/params"],
    ),
    (
        Object::ProgressNotificationParams,
        &[
            "ProgressNotificationParams",
            "ProgressNotification/properties/params",
        ],
    ),
    (
        Object::CreateMessageRequestParams,
        &[
            "CreateMessageRequestParams",
            "CreateMessageRequest/properties/params",
        ],
    ),
    (
        Object::ElicitRequestFormParams,
        &["ElicitRequestFormParams", "ElicitRequest/properties/params"],
    ),
    (
        Object::RequestedSchema,
        &[
            "ElicitRequestFormParams/properties/requestedSchema",
            "ElicitRequest/properties/params/properties/requestedSchema",
        ],
    ),
];

/// The older schemas say once, in `Request`, that parameters have `_meta`; that the parameters of
/// one request do not repeat it says nothing.
const PARAMS: &[Object] = &[
    Object::CompleteRequestParams,
    Object::ProgressNotificationParams,
    Object::CreateMessageRequestParams,
    Object::ElicitRequestFormParams,
    Object::ElicitRequestUrlParams,
];

/// The members of each object in any of the schemas or rows.
pub(super) struct KnownFields(BTreeMap<Object, BTreeSet<String>>);

impl KnownFields {
    /// Collects them; a member without a row must then be in every schema.
    pub(super) fn of<'a>(schemas: impl IntoIterator<Item = &'a Schema>) -> Self {
        let mut known: BTreeMap<Object, BTreeSet<String>> = BTreeMap::new();
        for object in Object::ALL {
            let rows = object.rows().iter().flat_map(|row| row.fields);
            let fields = rows.map(|field| (*field).to_owned());
            known.insert(*object, fields.collect());
        }
        for schema in schemas {
            for (object, fields) in &mut known {
                fields.extend(properties(schema, *object).map(str::to_owned));
            }
        }
        Self(known)
    }
}

/// Compares every member that is known of every object.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema, known: &KnownFields) {
    for (object, fields) in &known.0 {
        let shown: BTreeSet<&str> = properties(schema, *object).collect();
        for field in fields.iter().filter(|field| is_listed(*object, field)) {
            let table = object.has(field, comparison.revision()).unwrap_or(true);
            comparison.record(
                format_args!("field {} of {}", field, object.name()),
                yes_no(table),
                yes_no(shown.contains(field.as_str())),
            );
        }
    }
}

fn is_listed(object: Object, field: &str) -> bool {
    field != "_meta" || !PARAMS.contains(&object)
}

fn properties(schema: &Schema, object: Object) -> impl Iterator<Item = &str> {
    let listed = PLACES.iter().find(|(listed, _)| *listed == object);
    let definition = match listed {
        Some((_, places)) => places.iter().find_map(|place| schema.find(place)),
        None => schema.definition(object.name()),
    };
    let properties = definition
        .and_then(|definition| definition.get("properties"))
        .and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::{KnownFields, compare};
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    fn differing(revision: Revision, definitions: &str, other: &str, object: &str) -> Vec<String> {
        let parse = |text| Schema::parse(&format!(r#"{{"$defs": {text}}}"#)).unwrap();
        let (schema, other) = (parse(definitions), parse(other));
        let mut comparison = Comparison::new(revision);
        compare(
            &mut comparison,
            &schema,
            &KnownFields::of([&schema, &other]),
        );
        let ending = format!(" of {object}");
        let names = comparison
            .differing()
            .into_iter()
            .filter(|name| name.ends_with(&ending));
        names.map(str::to_owned).collect()
    }

    #[test]
    fn a_row_must_agree_with_the_schema() {
        let with = r#"{"Root": {"properties": {"uri": {}, "_meta": {}}}}"#;
        let without = r#"{"Root": {"properties": {"uri": {}}}}"#;
        let cases = [
            (Revision::V2025_06_18, with, 0),
            (Revision::V2025_06_18, without, 1),
            (Revision::V2025_03_26, with, 1),
            (Revision::V2025_03_26, without, 0),
        ];
        for (revision, definitions, expected) in cases {
            let found = differing(revision, definitions, "{}", "Root");
            assert_eq!(found.len(), expected, "{revision} {definitions}");
        }
    }

    #[test]
    fn a_member_of_one_schema_only_needs_a_row() {
        let other = r#"{"Root": {"properties": {"uri": {}, "colour": {}}}}"#;
        let here = r#"{"Root": {"properties": {"uri": {}}}}"#;
        assert_eq!(
            differing(Revision::V2024_11_05, here, other, "Root"),
            ["field colour of Root"]
        );
    }

    #[test]
    fn renamed_and_nameless_definitions_are_found() {
        let renamed = r#"{"EnumSchema": {"properties":
            {"type": {}, "title": {}, "description": {}, "enum": {}, "enumNames": {}}}}"#;
        let object = "LegacyTitledEnumSchema";
        assert!(differing(Revision::V2025_06_18, renamed, "{}", object).is_empty());
        let nameless =
            r#"{"CompleteRequest": {"properties": {"params": {"properties": {"context": {}}}}}}"#;
        let object = "CompleteRequestParams";
        assert!(differing(Revision::V2025_06_18, nameless, "{}", object).is_empty());
        assert_eq!(
            differing(Revision::V2025_03_26, nameless, "{}", object),
            ["field context of CompleteRequestParams"]
        );
    }
}
