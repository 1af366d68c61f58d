//! Dependency rules: the direction between workspace crates and the dependency tree of the pure ones.

use toml::{Table, Value};

use crate::layers::{is_ours, position};

/// Findings in the manifest of a crate: unlisted crates and dependencies on a later layer.
pub(crate) fn wrong_direction(name: &str, manifest: &Table) -> Vec<String> {
    let Some(own) = position(name) else {
        return vec![format!("crates/{name}: not listed in xtask/src/layers.rs")];
    };
    let ours = normal_dependencies(manifest)
        .into_iter()
        .filter(|dependency| is_ours(dependency));
    ours.filter(|dependency| position(dependency).is_none_or(|other| other >= own))
        .map(|dependency| {
            format!("crates/{name}: depends on `{dependency}`, which is not an earlier layer")
        })
        .collect()
}

/// Third-party crates in the output of `cargo tree` that the list does not allow.
pub(crate) fn disallowed(name: &str, tree: &str, allowed: &[&str]) -> Vec<String> {
    let mut names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|found| !is_ours(found) && !allowed.contains(found));
    names
        .into_iter()
        .map(|found| {
            format!("crates/{name}: `{found}` is not allowed in the dependencies of a pure crate")
        })
        .collect()
}

/// Dependencies of the crate on every platform, without dev-dependencies.
fn normal_dependencies(manifest: &Table) -> Vec<&str> {
    let platforms = table(manifest, "target")
        .into_iter()
        .flat_map(Table::values);
    let sections = std::iter::once(manifest).chain(platforms.filter_map(Value::as_table));
    sections
        .flat_map(|section| {
            [
                table(section, "dependencies"),
                table(section, "build-dependencies"),
            ]
        })
        .flatten()
        .flat_map(|dependencies| dependencies.iter().map(|(key, value)| package(key, value)))
        .collect()
}

/// Package name of a dependency key, which may rename the package.
fn package<'a>(key: &'a str, value: &'a Value) -> &'a str {
    value.get("package").and_then(Value::as_str).unwrap_or(key)
}

fn table<'a>(parent: &'a Table, key: &str) -> Option<&'a Table> {
    parent.get(key).and_then(Value::as_table)
}

#[cfg(test)]
mod tests {
    use super::{disallowed, wrong_direction};

    fn findings(name: &str, manifest: &str) -> Vec<String> {
        wrong_direction(name, &manifest.parse().unwrap())
    }

    #[test]
    fn a_crate_may_depend_on_earlier_layers_only() {
        let earlier = "[dependencies]\nmcpact-spec.workspace = true\nserde = \"1\"";
        assert!(findings("mcpact-wire", earlier).is_empty());
        let later = "[target.'cfg(unix)'.dependencies]\nrenamed = { package = \"mcpact-engine\", version = \"1\" }";
        assert_eq!(findings("mcpact-wire", later).len(), 1);
        let itself = "[dependencies]\nmcpact-wire.workspace = true";
        assert_eq!(findings("mcpact-wire", itself).len(), 1);
    }

    #[test]
    fn dev_dependencies_are_not_restricted() {
        let manifest = "[dev-dependencies]\nmcpact-sim.workspace = true";
        assert!(findings("mcpact-engine", manifest).is_empty());
    }

    #[test]
    fn unlisted_crate_is_a_finding() {
        assert_eq!(findings("mcpact-util", "").len(), 1);
    }

    #[test]
    fn third_party_crates_of_a_pure_crate_must_be_listed() {
        let tree = "mcpact-wire v0.1.0\nserde v1.0.0\ntokio v1.0.0\ntokio v1.0.0 (*)\n";
        let found = disallowed("mcpact-wire", tree, &["serde"]);
        assert_eq!(
            found,
            ["crates/mcpact-wire: `tokio` is not allowed in the dependencies of a pure crate"]
        );
    }
}
