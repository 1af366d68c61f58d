//! `mcpact probe` of each server: same revision as in the gateway, no hang, at most two starts, no process left.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::config_failure;
use super::manifest::Manifest;
use super::tools::Tools;
use crate::failure::Failure;
use crate::interop::pair::limited;
use crate::report;

/// Timeout of one probe, which starts a server at most twice.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Seconds that a server may take for each answer.
const ANSWER_SECONDS: &str = "30";
/// Number of starts that a probe may need.
const MAX_STARTS: u32 = 2;

/// Output of `mcpact status --json`.
#[derive(Deserialize)]
struct Status {
    servers: Vec<ServerStatus>,
}

#[derive(Deserialize)]
struct ServerStatus {
    name: String,
    revision: Option<String>,
}

/// Output of `mcpact probe --json`.
#[derive(Deserialize)]
struct Probed {
    revision: Option<String>,
    starts: u32,
    violations: Vec<Violation>,
}

#[derive(Deserialize)]
struct Violation {
    rule: String,
    detail: String,
}

/// Returns the revisions that the running gateway has negotiated.
pub(super) fn negotiated(
    tools: &Tools,
    folder: &Path,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut status = program(tools, folder);
    status.args(["status", "--json", "--config"]);
    status.arg(folder.join("mcpact.toml"));
    let status: Status = output(status, folder, "status")?;
    let servers = status.servers.into_iter();
    Ok(servers
        .filter_map(|server| Some((server.name, server.revision?)))
        .collect())
}

/// Probes every server while no gateway runs, and compares the revisions.
pub(super) fn compare(
    manifest: &Manifest,
    tools: &Tools,
    folder: &Path,
    known: &BTreeMap<String, String>,
) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    let mut starts = 0;
    for server in manifest.servers() {
        let name = &server.name;
        let mut probe = program(tools, folder);
        probe.args(["probe", "--json", "--timeout", ANSWER_SECONDS, "--config"]);
        probe.arg(folder.join("mcpact.toml")).arg(name);
        let probed: Probed = match output(probe, folder, &format!("probe-{name}")) {
            Ok(probed) => probed,
            Err(error) => {
                findings.push(format!("probe: {name}: {error}"));
                continue;
            }
        };
        let (ours, theirs) = (probed.revision.as_deref(), known.get(name));
        if ours.is_none() || ours != theirs.map(String::as_str) {
            findings.push(format!(
                "probe: {name}: negotiated {}, the gateway {}",
                ours.unwrap_or("nothing"),
                theirs.map_or("nothing", String::as_str)
            ));
        }
        if probed.starts > MAX_STARTS {
            findings.push(format!("probe: {name}: {} starts", probed.starts));
        }
        for Violation { rule, detail } in &probed.violations {
            report::say(format_args!("probe: {name}: {rule}: {detail}"));
        }
        starts += probed.starts;
    }
    report::say(format_args!(
        "probe: {} servers, {starts} starts, {} findings",
        manifest.servers().len(),
        findings.len()
    ));
    Ok(findings)
}

fn program(tools: &Tools, folder: &Path) -> Command {
    let mut program = Command::new(&tools.our_program);
    program.env("XDG_RUNTIME_DIR", folder);
    program
}

/// Runs a program and parses its output, whatever its exit code is.
fn output<T: DeserializeOwned>(command: Command, folder: &Path, name: &str) -> Result<T, Failure> {
    let file = folder.join(format!("{name}.json"));
    limited(command, TIMEOUT, &file, &folder.join(format!("{name}.log")))?;
    let text = fs::read_to_string(&file).map_err(Failure::file(&file))?;
    serde_json::from_str(&text).map_err(|error| config_failure(format!("{name}: {error}")))
}
