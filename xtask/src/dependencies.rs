//! Who depends on whom: the direction between our crates, and what stands below the pure ones.

use toml::{Table, Value};

use crate::floor_plan::{height, is_ours};

/// The findings about the manifest of a crate: unknown crates, and dependencies that look upward.
pub(crate) fn upward(name: &str, manifest: &Table) -> Vec<String> {
    let Some(own) = height(name) else {
        return vec![format!(
            "crates/{name}: not in the floor plan of xtask/src/floor_plan.rs"
        )];
    };
    let ours = normal_dependencies(manifest)
        .into_iter()
        .filter(|dependency| is_ours(dependency));
    ours.filter(|dependency| height(dependency).is_none_or(|other| other >= own))
        .map(|dependency| {
            format!("crates/{name}: depends on `{dependency}`, which is not below it")
        })
        .collect()
}

/// Foreign crates in the output of `cargo tree` that the list does not allow.
pub(crate) fn strangers(name: &str, tree: &str, allowed: &[&str]) -> Vec<String> {
    let mut names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|found| !is_ours(found) && !allowed.contains(found));
    names
        .into_iter()
        .map(|found| format!("crates/{name}: `{found}` is not allowed below a pure crate"))
        .collect()
}

/// Dependencies of the crate itself, for every platform, without those of its tests.
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

/// The name of the package behind a key, which may rename it.
fn package<'a>(key: &'a str, value: &'a Value) -> &'a str {
    value.get("package").and_then(Value::as_str).unwrap_or(key)
}

fn table<'a>(parent: &'a Table, key: &str) -> Option<&'a Table> {
    parent.get(key).and_then(Value::as_table)
}

#[cfg(test)]
mod tests {
    use super::{strangers, upward};

    fn findings(name: &str, manifest: &str) -> Vec<String> {
        upward(name, &manifest.parse().unwrap())
    }

    #[test]
    fn a_crate_may_look_down_only() {
        let down = "[dependencies]\nmcpact-spec.workspace = true\nserde = \"1\"";
        assert!(findings("mcpact-wire", down).is_empty());
        let up = "[target.'cfg(unix)'.dependencies]\nbelow = { package = \"mcpact-engine\", version = \"1\" }";
        assert_eq!(findings("mcpact-wire", up).len(), 1);
        let itself = "[dependencies]\nmcpact-wire.workspace = true";
        assert_eq!(findings("mcpact-wire", itself).len(), 1);
    }

    #[test]
    fn tests_may_stand_on_any_floor() {
        let manifest = "[dev-dependencies]\nmcpact-sim.workspace = true";
        assert!(findings("mcpact-engine", manifest).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_found() {
        assert_eq!(findings("mcpact-util", "").len(), 1);
    }

    #[test]
    fn only_listed_crates_may_stand_below_a_pure_one() {
        let tree = "mcpact-wire v0.1.0\nserde v1.0.0\ntokio v1.0.0\ntokio v1.0.0 (*)\n";
        let found = strangers("mcpact-wire", tree, &["serde"]);
        assert_eq!(
            found,
            ["crates/mcpact-wire: `tokio` is not allowed below a pure crate"]
        );
    }
}
