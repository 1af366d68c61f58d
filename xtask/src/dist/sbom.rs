//! The software bill of materials in CycloneDX 1.6: every crate in the program, from `cargo metadata` and `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Release, write as write_file};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo};

/// Crate of the program.
const ROOT: &str = "mcpact-cli";
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Writes the list.
pub(super) fn write(release: &Release<'_>) -> Result<PathBuf, Failure> {
    let mut command = cargo(release.checkout);
    command.args(["metadata", "--format-version=1", "--locked"]);
    let metadata = capture(command.args(["--filter-platform", PLATFORM]))?;
    let path = release.folder.join("cargo-metadata.json");
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|source| Failure::Json { path, source })?;
    let checksums = checksums(release.checkout)?;
    let bill = bill_of_materials(&metadata, &checksums, &release.version);
    let name = format!("mcpact-{}.cdx.json", release.version);
    let file = release.folder.join(name);
    write_file(&file, format!("{bill:#}\n"))?;
    Ok(file)
}

/// SHA-256 of the downloaded crates, by name and version.
fn checksums(checkout: &Checkout) -> Result<BTreeMap<(String, String), String>, Failure> {
    let path = checkout.path("Cargo.lock");
    let lock: toml::Table = toml::from_str(&checkout.read("Cargo.lock")?)
        .map_err(|source| Failure::Toml { path, source })?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let sums = packages.into_iter().flatten().filter_map(|package| {
        let id = (text(package, "name")?, text(package, "version")?);
        Some((id, text(package, "checksum")?))
    });
    Ok(sums.collect())
}

fn bill_of_materials(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    version: &str,
) -> Value {
    let linked = linked(metadata);
    let packages = list(&metadata["packages"]);
    let packages: BTreeMap<&str, &Value> = packages
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let url = |id: &str| packages.get(id).map(|package| package_url(package));
    let components = linked.keys().filter_map(|id| {
        let package = packages.get(id)?;
        let is_root = package["name"] == ROOT;
        (!is_root).then(|| component(package, checksums))
    });
    let components: Vec<Value> = components.collect();
    let dependencies = linked.iter().filter_map(|(id, uses)| {
        let uses: Vec<String> = uses.iter().filter_map(|id| url(id)).collect();
        Some(json!({ "ref": url(id)?, "dependsOn": uses }))
    });
    let dependencies: Vec<Value> = dependencies.collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/{ROOT}@{version}"),
                "name": "mcpact",
                "version": version,
                "purl": format!("pkg:cargo/{ROOT}@{version}"),
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

/// Packages that become part of the program, each with those that it uses. Build scripts, macros' own dependencies and
/// tests do not count, but macros themselves do.
fn linked(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let packages = list(&metadata["packages"]);
    let root = packages.filter(|package| package["name"] == ROOT);
    let mut open: Vec<&str> = root.filter_map(|root| root["id"].as_str()).collect();
    let mut linked = BTreeMap::new();
    while let Some(id) = open.pop() {
        if linked.contains_key(id) {
            continue;
        }
        let uses = nodes.get(id).map(|node| normal_dependencies(node));
        let uses: BTreeSet<&str> = uses.unwrap_or_default();
        open.extend(&uses);
        linked.insert(id, uses);
    }
    linked
}

fn normal_dependencies(node: &Value) -> BTreeSet<&str> {
    let uses = list(&node["deps"]);
    let uses = uses.filter(|one| list(&one["dep_kinds"]).any(|kind| kind["kind"].is_null()));
    uses.filter_map(|one| one["pkg"].as_str()).collect()
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let url = package_url(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": text("name"),
        "version": text("version"),
        "purl": url,
    });
    if let Some(licence) = package["license"].as_str() {
        // Some crates still use the old separator.
        let licence = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(sum) = checksums.get(&(text("name"), text("version"))) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

fn package_url(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let version = text("version").replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", text("name"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Value {
        let package = |name: &str, licence: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": licence });
        let uses = |name: &str, kind: Option<&str>| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        json!({
            "packages": [
                package(ROOT, "MIT"), package("direct", "MIT/Apache-2.0"), package("inner", "MIT"),
                package("builder", "MIT"), package("other", "MIT"),
            ],
            "resolve": { "nodes": [
                { "id": ROOT, "deps": [uses("direct", None), uses("other", Some("dev"))] },
                { "id": "direct", "deps": [uses("inner", None), uses("builder", Some("build"))] },
                { "id": "inner", "deps": [uses("direct", None)] },
                { "id": "builder", "deps": [] },
                { "id": "other", "deps": [] },
            ] },
        })
    }

    #[test]
    fn only_linked_crates_are_components() {
        let sums = [(("inner".to_owned(), "1.0.0".to_owned()), "ab".to_owned())];
        let bill = bill_of_materials(&metadata(), &sums.into(), "0.1.0");
        let components: Vec<&Value> = list(&bill["components"]).collect();
        let names: Vec<&Value> = components.iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["direct", "inner"]);
        assert_eq!(
            components[0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(components[1]["hashes"][0]["content"], "ab");
        assert_eq!(components[1]["purl"], "pkg:cargo/inner@1.0.0");
    }

    #[test]
    fn dependencies_name_their_components() {
        let bill = bill_of_materials(&metadata(), &BTreeMap::new(), "0.1.0");
        let of = |name: &str| {
            let id = format!("pkg:cargo/{name}@1.0.0");
            let mut found = list(&bill["dependencies"]).filter(|one| one["ref"] == id.as_str());
            found.next().map(|one| one["dependsOn"].clone())
        };
        assert_eq!(of(ROOT), Some(json!(["pkg:cargo/direct@1.0.0"])));
        assert_eq!(of("direct"), Some(json!(["pkg:cargo/inner@1.0.0"])));
        assert_eq!(of("other"), None);
    }
}
