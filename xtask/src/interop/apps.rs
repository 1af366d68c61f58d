//! MCP Apps of two clashing servers behind one `mcpact serve`, used by the official host library.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::pair::limited;
use super::setup::{self, CLIENTS, FOLDER, OUR_PROGRAM, SERVERS};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::listening::Listening;
use crate::node::{self, Pin};
use crate::process::{build, remove};
use crate::report;

const PACKAGES: [(&str, &str); 4] = [
    ("@modelcontextprotocol/ext-apps", "2.0.4"),
    ("@modelcontextprotocol/client", "2.4.0"),
    ("@modelcontextprotocol/server", "2.4.0"),
    ("zod", "4.6.7"),
];
const NAMES: [&str; 2] = ["one", "two"];
/// Tools, and for each server its view and the calls of the view.
const RESULTS: usize = 1 + 2 * NAMES.len();
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a host of each era; returns what failed.
pub(super) fn run(checkout: &Checkout) -> Result<Vec<String>, Failure> {
    let npm = checkout.path(FOLDER).join("npm");
    let pins = PACKAGES.map(|(name, version)| Pin::new(name, version));
    node::install(checkout, &npm, &pins)?;
    for scripts in [SERVERS, CLIENTS] {
        setup::copy_modules(&checkout.path(scripts), &npm.join(scripts))?;
    }
    let node = node::program(checkout)?;
    let folder = checkout.path(FOLDER).join("apps");
    remove(&folder)?;
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let config = folder.join("mcpact.toml");
    let script = npm.join(SERVERS).join("app.mjs");
    let servers = NAMES.map(|name| {
        format!("[servers.{name}]\ncommand = {node:?}\nargs = [{script:?}, \"{name}\"]\n")
    });
    fs::write(&config, servers.join("\n")).map_err(Failure::file(&config))?;
    let mut gateway = Command::new(build(checkout, OUR_PROGRAM)?);
    gateway.args(["serve", "--listen", "127.0.0.1:0", "--no-cache", "--config"]);
    gateway.arg(&config).env("XDG_RUNTIME_DIR", &folder);
    let gateway = Listening::start("mcpact serve", gateway, &folder.join("gateway.log"))?;
    let mut findings = Vec::new();
    for mode in ["legacy", "modern"] {
        let mut host = Command::new(&node);
        host.arg(npm.join(CLIENTS).join("host.mjs"));
        host.args(["--mode", mode, "--url", gateway.url()])
            .args(NAMES);
        let output = folder.join(format!("{mode}.out"));
        let ended = limited(host, LIMIT, &output, &folder.join(format!("{mode}.log")))?;
        let text = fs::read_to_string(&output).map_err(Failure::file(&output))?;
        let results = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let results: Vec<Value> = results.collect();
        let failed = results.iter().filter(|result| result["outcome"] != "works");
        let failed: Vec<String> = failed
            .map(|result| format!("apps {mode}: {result}"))
            .collect();
        report::say(format_args!(
            "apps {mode}: {} of {RESULTS} checks passed",
            results.len() - failed.len()
        ));
        findings.extend(failed);
        if results.len() != RESULTS || !ended.success() {
            let count = results.len();
            findings.push(format!(
                "apps {mode}: {count} of {RESULTS} results ({ended})"
            ));
        }
    }
    Ok(findings)
}
