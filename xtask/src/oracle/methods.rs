//! Sender of each method.

use std::collections::{BTreeMap, BTreeSet};

use mcpact_spec::{Extension, Feature, Method, Role};

use super::comparison::Comparison;
use super::schema::{Schema, method_name};
use super::tasks_extension;
use crate::labels;

/// The unions of messages, and what a member of each is.
const UNIONS: [(&str, Role); 5] = [
    ("ClientRequest", Role::ClientRequest),
    ("ServerRequest", Role::ServerRequest),
    ("ClientNotification", Role::ClientNote),
    ("ServerNotification", Role::ServerNote),
    ("InputRequest", Role::EmbeddedInput),
];

/// Compares the role of every method that either side knows.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema, tasks: Option<&Schema>) {
    let revision = comparison.revision();
    let mut roles = core_roles(schema);
    if revision.has(Feature::TasksExtension) {
        tasks_extension::add_roles(&mut roles, tasks);
    }
    // The skills extension has no schema: its rows follow the page of the specification.
    let known = Method::ALL
        .iter()
        .filter(|method| method.extension() != Some(Extension::Skills));
    let known = known.map(|method| method.as_str());
    let names: BTreeSet<&str> = known.chain(roles.keys().map(String::as_str)).collect();
    for name in names {
        let table = Method::parse(name).map_or(Role::Absent, |method| method.role(revision));
        let table = labels::role(table).to_owned();
        let schema = roles
            .get(name)
            .map_or(labels::NOTHING.to_owned(), |roles| spelled(roles));
        comparison.record(format_args!("role of {name}"), table, schema);
    }
}

fn core_roles(schema: &Schema) -> BTreeMap<String, Vec<Role>> {
    let mut roles: BTreeMap<String, Vec<Role>> = BTreeMap::new();
    for (union, role) in UNIONS {
        for method in schema
            .members(union)
            .into_iter()
            .filter_map(|(_, m)| method_name(m))
        {
            roles.entry(method.to_owned()).or_default().push(role);
        }
    }
    roles
}

/// Name of the unions that contain a method.
fn spelled(roles: &[Role]) -> String {
    match roles {
        [Role::ClientRequest, Role::ServerRequest] => labels::role(Role::EitherRequest).to_owned(),
        [Role::ClientNote, Role::ServerNote] => labels::role(Role::EitherNote).to_owned(),
        roles => {
            let words: Vec<&str> = roles.iter().map(|role| labels::role(*role)).collect();
            words.join(" and ")
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::{Method, Revision, Role};

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    /// A core schema in which the methods have these roles.
    fn schema_with(role: impl Fn(Method) -> Role) -> Schema {
        let side = |matching: &[Role]| {
            let of_core = Method::ALL
                .iter()
                .filter(|method| method.extension().is_none());
            let named = of_core.filter(|method| matching.contains(&role(**method)));
            let names: Vec<_> = named
                .map(|m| {
                    format!(
                        r##"{{"$ref": "#/$defs/{}"}}"##,
                        m.as_str().replace('/', ".")
                    )
                })
                .collect();
            format!(r#"{{"anyOf": [{}]}}"#, names.join(","))
        };
        let mut definitions = vec![
            format!(
                r#""ClientRequest": {}"#,
                side(&[Role::ClientRequest, Role::EitherRequest])
            ),
            format!(
                r#""ServerRequest": {}"#,
                side(&[Role::ServerRequest, Role::EitherRequest])
            ),
            format!(
                r#""ClientNotification": {}"#,
                side(&[Role::ClientNote, Role::EitherNote])
            ),
            format!(
                r#""ServerNotification": {}"#,
                side(&[Role::ServerNote, Role::EitherNote])
            ),
            format!(r#""InputRequest": {}"#, side(&[Role::EmbeddedInput])),
        ];
        definitions.extend(Method::ALL.iter().map(|m| {
            let name = m.as_str();
            let key = name.replace('/', ".");
            format!(r#""{key}": {{"properties": {{"method": {{"const": "{name}"}}}}}}"#)
        }));
        Schema::parse(&format!(r#"{{"$defs": {{{}}}}}"#, definitions.join(","))).unwrap()
    }

    fn differing(revision: Revision, role: impl Fn(Method) -> Role) -> Vec<String> {
        let mut comparison = Comparison::new(revision);
        compare(&mut comparison, &schema_with(role), None);
        comparison
            .differing()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// N34: the table of methods is held against the official schema.
    #[test]
    fn a_schema_that_agrees_has_no_difference() {
        let revision = Revision::V2025_06_18;
        assert!(differing(revision, |method| method.role(revision)).is_empty());
    }

    #[test]
    fn another_role_a_missing_and_an_extra_method_are_found() {
        let revision = Revision::V2025_06_18;
        let changed = differing(revision, |method| match method {
            Method::Ping => Role::ClientRequest,
            Method::ToolsCall => Role::Absent,
            Method::Discover => Role::ClientRequest,
            other => other.role(revision),
        });
        assert_eq!(
            changed,
            [
                "role of ping",
                "role of server/discover",
                "role of tools/call"
            ]
        );
    }

    #[test]
    fn without_their_schema_the_tasks_methods_differ() {
        let revision = Revision::V2026_07_28;
        let found = differing(revision, |method| method.role(revision));
        let expected = [
            "notifications/tasks",
            "tasks/cancel",
            "tasks/get",
            "tasks/update",
        ]
        .map(|name| format!("role of {name}"));
        assert_eq!(found, expected);
    }
}
