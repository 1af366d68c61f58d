//! Versions of packages that a runner starts without one: the version in its cache, and writing it into a config.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use mcpact_config::UnpinnedPackage;
use serde_json::Value;
use tempfile::NamedTempFile;

/// Maximum number of entries read of a cache folder.
const MAX_ENTRIES: usize = 10_000;

/// Maximum size of a `package.json`.
const MAX_MANIFEST: u64 = 1 << 20;

/// Returns the version of a package that is installed or cached, if there is exactly one.
pub(super) fn installed_version(package: &UnpinnedPackage) -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    version_at(&home, &package.runner, &package.pin.as_ref()?.name)
}

fn version_at(home: &Path, runner: &str, name: &str) -> Option<String> {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(name).components().all(is_name) {
        return None;
    }
    let mut versions = match runner {
        "npx" | "npm" => npm_versions(&home.join(".npm/_npx"), name),
        "uvx" | "uv" => python_versions(&home.join(".cache/uv/archive-v0"), name),
        _ => return None,
    };
    let is_version = |version: &String| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || ".+-!".contains(c);
        version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(is_part)
    };
    versions.retain(is_version);
    versions.pop_first().filter(|_| versions.is_empty())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let entries = entries.take(MAX_ENTRIES).flatten();
    entries.map(|entry| entry.path())
}

/// Versions in the folders of `npx`, one for each command line.
fn npm_versions(cache: &Path, name: &str) -> BTreeSet<String> {
    let manifests = entries(cache).map(|folder| folder.join("node_modules").join(name));
    let version = |folder: PathBuf| -> Option<String> {
        let manifest = folder.join("package.json");
        if fs::metadata(&manifest).ok()?.len() > MAX_MANIFEST {
            return None;
        }
        let manifest: Value = serde_json::from_str(&fs::read_to_string(manifest).ok()?).ok()?;
        Some(manifest.get("version")?.as_str()?.to_owned())
    };
    manifests.filter_map(version).collect()
}

/// Versions in the unpacked archives of `uv`.
fn python_versions(cache: &Path, name: &str) -> BTreeSet<String> {
    let name = name.split('[').next().unwrap_or(name);
    let name = name.to_ascii_lowercase().replace(['-', '.'], "_");
    let version = |path: PathBuf| {
        let file = path.file_name()?.to_str()?.strip_suffix(".dist-info")?;
        let (found, version) = file.rsplit_once('-')?;
        let found = found.to_ascii_lowercase().replace(['-', '.'], "_");
        (found == name).then(|| version.to_owned())
    };
    let archives = entries(cache).flat_map(|archive| entries(&archive));
    archives.filter_map(version).collect()
}

/// Replaces a config atomically. Mode and owner of the file stay, and a symbolic link to it as well.
pub(super) fn rewrite(file: &Path, text: &str) -> io::Result<()> {
    let file = file.canonicalize()?;
    let before = fs::metadata(&file)?;
    let mut new = NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        let now = new.as_file().metadata()?;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            fchown(new.as_file(), Some(before.uid()), Some(before.gid()))?;
        }
    }
    new.as_file().set_permissions(before.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&file)?;
    Ok(())
}

/// Returns the text of a TOML config with another package, if the package is written in it exactly once, in quotes.
pub(super) fn replaced(text: &str, package: &str, pinned: &str) -> Option<String> {
    let quoted = ['"', '\''].map(|quote| format!("{quote}{package}{quote}"));
    let count: usize = quoted
        .iter()
        .map(|quoted| text.matches(&**quoted).count())
        .sum();
    let written = quoted.iter().find(|quoted| text.contains(&***quoted))?;
    (count == 1).then(|| text.replace(&**written, &written.replace(package, pinned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_in_a_cache_is_found() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            ".npm/_npx/1/node_modules/@a/tickets/package.json",
            r#"{"version": "1.2.3"}"#,
        );
        write(
            ".npm/_npx/2/node_modules/@a/tickets/package.json",
            r#"{"version": "1.2.3"}"#,
        );
        write(
            ".npm/_npx/2/node_modules/odd/package.json",
            r#"{"version": "1\", \"x"}"#,
        );
        write(
            ".cache/uv/archive-v0/x/mcp_server_time-2.0.1.dist-info/METADATA",
            "",
        );
        write(
            ".cache/uv/archive-v0/x/mcp_server_time_extra-9.0.dist-info/METADATA",
            "",
        );
        let version = |runner: &str, name: &str| version_at(home.path(), runner, name);
        assert_eq!(version("npx", "@a/tickets").as_deref(), Some("1.2.3"));
        assert_eq!(version("npm", "@a/tickets").as_deref(), Some("1.2.3"));
        assert_eq!(version("uvx", "mcp-server-time").as_deref(), Some("2.0.1"));
        assert_eq!(
            version("uvx", "mcp-server-time[x]").as_deref(),
            Some("2.0.1")
        );
        for name in ["odd", "other", "../2/node_modules/@a/tickets", "/etc"] {
            assert_eq!(version("npx", name), None, "{name}");
        }
        write(
            ".npm/_npx/3/node_modules/@a/tickets/package.json",
            r#"{"version": "1.3.0"}"#,
        );
        assert_eq!(version("npx", "@a/tickets"), None, "two versions");
    }

    #[test]
    fn pin_keeps_the_text_around_it() {
        let toml = "# mine\n[servers.a]\ncommand = 'npx' # runner\nargs = [\"-y\",   'tickets']\n";
        let pinned = replaced(toml, "tickets", "tickets@1.2.3").unwrap();
        assert_eq!(pinned, toml.replace("tickets", "tickets@1.2.3"));
        for text in ["args = [\"tickets\", 'tickets']", "args = [\"tickets2\"]"] {
            assert_eq!(replaced(text, "tickets", "tickets@1.2.3"), None, "{text}");
        }
    }
}
