//! Two packages for npm: a launcher, and the program for this platform as its optional dependency.
//!
//! Nothing runs at installation, so `npm install --ignore-scripts` works.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::program::{Program, copy_documents};
use super::{Release, copy, write};
use crate::failure::Failure;
use crate::process::{capture, program_at};

/// Package of the program; the launcher builds the same name from platform and architecture.
const PLATFORM: &str = "mcpact-linux-x64";

/// Builds the packages: first that of the platform.
pub(super) fn build(release: &Release<'_>, program: &Program) -> Result<[PathBuf; 2], Failure> {
    let platform = release.fresh("npm-platform")?;
    program.copy_to(&platform.join("bin/mcpact"))?;
    let platform = pack(release, &platform, &platform_manifest(&release.version))?;
    let main = release.fresh("npm-main")?;
    copy(
        &release.checkout.path("packaging/npm/mcpact.js"),
        &main.join("bin/mcpact.js"),
    )?;
    let main = pack(release, &main, &main_manifest(&release.version))?;
    Ok([platform, main])
}

fn main_manifest(version: &str) -> Value {
    json!({
        "name": "mcpact",
        "version": version,
        "description": "Connect any MCP client to any MCP server: gateway, bridge and inspector",
        "license": "MIT OR Apache-2.0",
        "keywords": ["mcp", "modelcontextprotocol", "gateway", "proxy"],
        "bin": { "mcpact": "bin/mcpact.js" },
        "files": ["bin", "LICENSE-APACHE", "LICENSE-MIT"],
        "engines": { "node": ">=18" },
        "optionalDependencies": { PLATFORM: version },
    })
}

fn platform_manifest(version: &str) -> Value {
    json!({
        "name": PLATFORM,
        "version": version,
        "description": "The program of the package `mcpact` for Linux on x86-64",
        "license": "MIT OR Apache-2.0",
        "os": ["linux"],
        "cpu": ["x64"],
        "libc": ["glibc"],
        "files": ["bin", "LICENSE-APACHE", "LICENSE-MIT"],
    })
}

fn pack(release: &Release<'_>, folder: &Path, manifest: &Value) -> Result<PathBuf, Failure> {
    copy_documents(release, folder)?;
    write(&folder.join("package.json"), format!("{manifest:#}\n"))?;
    let mut npm = program_at(release.checkout, "npm");
    npm.args(["pack", "--loglevel", "error", "--pack-destination"]);
    let printed = capture(npm.arg(&release.folder).current_dir(folder))?;
    let name = printed.lines().next_back().unwrap_or_default().trim();
    Ok(release.folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_run_nothing_at_installation() {
        for manifest in [main_manifest("1.2.3"), platform_manifest("1.2.3")] {
            assert!(manifest.get("scripts").is_none(), "{manifest}");
            assert!(manifest.get("dependencies").is_none(), "{manifest}");
        }
    }

    #[test]
    fn launcher_depends_on_exactly_the_same_version() {
        let manifest = main_manifest("1.2.3");
        assert_eq!(manifest["optionalDependencies"][PLATFORM], "1.2.3");
    }
}
