//! Many servers from npm and PyPI behind one `mcpact serve`, used by a client of each era.
//!
//! `interop/crowd.toml` lists the servers. All must be listed, one tool of each must answer, and no process may be
//! left when the servers are idle.

mod catalog;
mod manifest;
mod probes;
mod processes;
mod search;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use self::catalog::UNCONFINED;
use self::manifest::Manifest;
use self::processes::Marked;
use self::tools::Tools;
use super::feature::Outcome;
use super::manifest::Transport;
use super::pair::limited;
use super::setup::{self, FOLDER};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::listening::Listening;
use crate::process::{program_at, remove, run as run_program};
use crate::report;

/// Eras of the clients, in the terms of the client program.
const MODES: [&str; 2] = ["legacy", "modern"];
/// Levels of sandboxes.
const SANDBOXES: [&str; 2] = ["standard", "strict"];
/// Client program.
const CLIENT: &str = "visit.mjs";
/// Results of a client besides its calls: negotiation and list.
const OTHER_RESULTS: usize = 2;
/// Timeout of a client; most of the time goes to servers that start at once.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(240);
/// Timeout until idle servers are stopped.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of the shutdown of the gateway.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Result of one check of a client.
#[derive(Deserialize)]
struct CheckResult {
    feature: String,
    outcome: Outcome,
    note: Option<String>,
}

/// Serves all servers, runs a client of each era, and fails if anything is missing or left running.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let manifest = Manifest::read(checkout)?;
    let tools = Tools::prepare(checkout, &manifest)?;
    let folder = work_folder(checkout)?;
    let mut crowd = Crowd::start(&manifest, &tools, &folder, UNCONFINED)?;
    let mut findings = Vec::new();
    let mut negotiated = BTreeMap::new();
    for mode in MODES {
        findings.extend(crowd.run_client(mode)?);
        negotiated.extend(probes::negotiated(&tools, &folder)?);
        findings.extend(crowd.check_idle());
    }
    let url = crowd.gateway.url();
    findings.extend(search::compare(checkout, &tools, &folder, url)?);
    findings.extend(crowd.stop()?);
    // The HTTP servers still run.
    findings.extend(probes::compare(&manifest, &tools, &folder, &negotiated)?);
    findings.extend(crowd.processes_left("the probes left processes behind"));
    drop(crowd);
    let sandboxed = Manifest::sandboxed(checkout)?;
    for level in SANDBOXES {
        let mut crowd = Crowd::start(&sandboxed, &tools, &folder, level)?;
        report::say(format_args!("sandbox `{level}`:"));
        for mode in MODES {
            let found = crowd.run_client(mode)?;
            findings.extend(found.iter().map(|finding| format!("{level}: {finding}")));
        }
        findings.extend(crowd.stop()?);
    }
    Failure::unless_clean(
        "crowd",
        findings,
        "the logs of the gateway and the clients are in `target/interop/crowd`",
    )
}

/// Creates an empty working directory for the servers.
fn work_folder(checkout: &Checkout) -> Result<PathBuf, Failure> {
    let folder = checkout.path(FOLDER).join("crowd");
    remove(&folder)?;
    let repository = folder.join("repository");
    fs::create_dir_all(&repository).map_err(Failure::file(&repository))?;
    setup::write_greeting(&folder)?;
    let mut git = program_at(checkout, "git");
    run_program(git.args(["init", "--quiet"]).arg(repository))?;
    Ok(folder)
}

/// The gateway with its servers.
struct Crowd<'a> {
    manifest: &'a Manifest,
    tools: &'a Tools,
    folder: &'a Path,
    marked: Marked,
    gateway: Listening,
    /// HTTP servers, stopped on drop.
    _listening: Vec<Listening>,
}

impl<'a> Crowd<'a> {
    fn start(
        manifest: &'a Manifest,
        tools: &'a Tools,
        folder: &'a Path,
        sandbox: &'static str,
    ) -> Result<Self, Failure> {
        let marked = Marked::new();
        let mut listening = Vec::new();
        let mut urls = BTreeMap::new();
        let servers = manifest.servers().iter();
        for server in servers.filter(|server| server.reached != Transport::Stdio) {
            let log = folder.join(format!("{}.log", server.name));
            let started = Listening::start(&server.name, server.command(tools, folder), &log)?;
            urls.insert(
                server.name.clone(),
                super::pair::address(started.url(), server.reached),
            );
            listening.push(started);
        }
        let config = folder.join("mcpact.toml");
        let text = catalog::write(manifest, tools, folder, &urls, &marked.value, sandbox);
        let text = text.map_err(|error| config_failure(error.to_string()))?;
        fs::write(&config, text).map_err(Failure::file(&config))?;
        let mut gateway = Command::new(&tools.our_program);
        gateway.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
        gateway.arg(&config);
        gateway.env("XDG_CACHE_HOME", folder.join("cache"));
        gateway.env("XDG_RUNTIME_DIR", folder);
        let gateway = Listening::start("mcpact serve", gateway, &folder.join("gateway.log"))?;
        Ok(Self {
            manifest,
            tools,
            folder,
            marked,
            gateway,
            _listening: listening,
        })
    }

    /// Runs a client of one era and returns its findings.
    fn run_client(&self, mode: &str) -> Result<Vec<String>, Failure> {
        let url = self.gateway.url();
        let mut client = Command::new(&self.tools.node);
        client.arg(self.tools.client(CLIENT));
        client.args(["--mode", mode, "--url", url]);
        client.arg(self.manifest.calls(self.folder, url));
        let output = self.folder.join(format!("{mode}.out"));
        let log = self.folder.join(format!("{mode}.log"));
        let start = Instant::now();
        let ended = limited(client, CLIENT_TIMEOUT, &output, &log)?;
        let text = fs::read_to_string(&output).map_err(Failure::file(&output))?;
        let results = text.lines().map(serde_json::from_str::<CheckResult>);
        let results: Vec<CheckResult> = results.filter_map(Result::ok).collect();
        let expected = self.manifest.servers().len() + OTHER_RESULTS;
        self.say(mode, &results, start.elapsed());
        let mut findings = Vec::new();
        for result in results
            .iter()
            .filter(|result| result.outcome != Outcome::Works)
        {
            let why = result.note.as_deref().unwrap_or_default();
            findings.push(format!("{mode}: {}: {why}", result.feature));
        }
        if results.len() != expected || !ended.success() {
            let count = results.len();
            findings.push(format!("{mode}: {count} of {expected} results ({ended})"));
        }
        Ok(findings)
    }

    fn say(&self, mode: &str, results: &[CheckResult], took: Duration) {
        let works = results
            .iter()
            .filter(|result| result.outcome == Outcome::Works);
        let listed = results.iter().find(|result| result.feature == "list");
        report::say(format_args!(
            "{mode}: {} servers, {}, {} of {} checks passed, {:.1} s, {} processes",
            self.manifest.servers().len(),
            listed
                .and_then(|result| result.note.as_deref())
                .unwrap_or("no tools"),
            works.count(),
            self.manifest.servers().len() + OTHER_RESULTS,
            took.as_secs_f64(),
            self.marked.running().len(),
        ));
    }

    /// Checks that idle servers are stopped.
    fn check_idle(&self) -> Option<String> {
        let found = self
            .marked
            .gone_within(IDLE_TIMEOUT, "idle servers were not stopped");
        if found.is_none() {
            report::say("idle: 0 processes");
        }
        found
    }

    /// Stops the gateway and checks that no process is left.
    fn stop(&mut self) -> Result<Option<String>, Failure> {
        let status = self.gateway.terminate(SHUTDOWN_TIMEOUT)?;
        if !status.success() {
            return Ok(Some(format!("the gateway failed ({status})")));
        }
        Ok(self.processes_left("the gateway left processes behind"))
    }

    /// Returns a finding if a process is left.
    fn processes_left(&self, trouble: &str) -> Option<String> {
        self.marked.gone_within(Duration::ZERO, trouble)
    }
}

fn config_failure(line: String) -> Failure {
    Failure::Findings {
        check: "crowd",
        lines: vec![line],
        hint: "check `interop/crowd.toml`",
    }
}
