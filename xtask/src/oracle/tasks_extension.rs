//! The methods of the tasks extension, which has a schema of its own.

use std::collections::BTreeMap;
use std::path::Path;

use mcpact_spec::Role;

use super::schema::{Schema, method_name, parts, reference};
use crate::failure::Failure;

/// The schema of the extension, if the folder has one.
pub(super) fn read(dir: &Path) -> Result<Option<Schema>, Failure> {
    let path = dir.join("extensions/tasks/schema.json");
    if path.is_file() {
        Schema::read(&path).map(Some)
    } else {
        Ok(None)
    }
}

/// Adds what the extension defines to the roles of the core.
///
/// Its schema has no unions that name the sender. A modern revision has no requests from server to
/// client, so a request is the client's; the extension's only notification is pushed by the server.
pub(super) fn add_roles(roles: &mut BTreeMap<String, Vec<Role>>, schema: Option<&Schema>) {
    let definitions = schema.into_iter().flat_map(Schema::definitions);
    for (_, definition) in definitions {
        let role = parts(definition)
            .filter_map(reference)
            .find_map(|base| match base {
                "JSONRPCRequest" => Some(Role::ClientRequest),
                "JSONRPCNotification" => Some(Role::ServerNote),
                _ => None,
            });
        if let (Some(role), Some(method)) = (role, method_name(definition)) {
            roles.entry(method.to_owned()).or_default().push(role);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mcpact_spec::Role;

    use super::add_roles;
    use crate::oracle::schema::Schema;

    #[test]
    fn messages_are_distinguished_from_repeated_core_definitions() {
        let text = r##"{"$defs": {
            "Get": {"allOf": [{"$ref": "#/$defs/JSONRPCRequest"},
                {"properties": {"method": {"const": "tasks/get"}}}]},
            "Note": {"allOf": [{"$ref": "#/$defs/JSONRPCNotification"},
                {"properties": {"method": {"const": "notifications/tasks"}}}]},
            "Roots": {"properties": {"method": {"const": "roots/list"}}}
        }}"##;
        let mut roles = BTreeMap::new();
        add_roles(&mut roles, Some(&Schema::parse(text).unwrap()));
        let expected = BTreeMap::from([
            ("tasks/get".to_owned(), vec![Role::ClientRequest]),
            ("notifications/tasks".to_owned(), vec![Role::ServerNote]),
        ]);
        assert_eq!(roles, expected);
    }
}
