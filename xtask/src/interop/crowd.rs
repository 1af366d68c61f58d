//! Many servers of npm and PyPI in one catalog behind `mcpact serve`, visited by a client of each era.
//!
//! `interop/crowd.toml` names the servers. Everything must be listed, one tool of each server must answer, and once
//! nobody calls any more, no process may be left.

mod catalog;
mod manifest;
mod processes;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use self::manifest::Manifest;
use self::processes::Marked;
use self::tools::Tools;
use super::feature::Outcome;
use super::ground::{self, FOLDER};
use super::manifest::Transport;
use super::pair::limited;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::listening::Listening;
use crate::process::{program_at, remove, run as run_program};
use crate::report;

/// The eras that visitors speak, as their program calls them.
const MODES: [&str; 2] = ["legacy", "modern"];
/// The program of a visitor.
const VISITOR: &str = "visit.mjs";
/// What a visitor does besides its calls: it negotiates and lists.
const BESIDES: usize = 2;
/// How long a visit may take; most of it is servers that start, all at the same time.
const VISIT: Duration = Duration::from_secs(240);
/// How long it may take until idle servers are stopped.
const QUIET: Duration = Duration::from_secs(60);
/// How long the gateway may take to end.
const FAREWELL: Duration = Duration::from_secs(30);

/// What a visitor says of one thing that it tried.
#[derive(Deserialize)]
struct Told {
    feature: String,
    outcome: Outcome,
    note: Option<String>,
}

/// Serve the crowd, visit it, and fail if anything is missing or left over.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let manifest = Manifest::read(checkout)?;
    let tools = Tools::prepare(checkout, &manifest)?;
    let folder = work_folder(checkout)?;
    let crowd = Crowd::gather(&manifest, &tools, &folder)?;
    let mut findings = Vec::new();
    for mode in MODES {
        findings.extend(crowd.visit(mode)?);
        findings.extend(crowd.falls_asleep());
    }
    findings.extend(crowd.ends()?);
    Failure::unless_clean(
        "crowd",
        findings,
        "what the gateway and the visitors said is in `target/interop/crowd`",
    )
}

/// A fresh folder for the servers to work with.
fn work_folder(checkout: &Checkout) -> Result<PathBuf, Failure> {
    let folder = checkout.path(FOLDER).join("crowd");
    remove(&folder)?;
    let repository = folder.join("repository");
    fs::create_dir_all(&repository).map_err(Failure::file(&repository))?;
    ground::greet(&folder)?;
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
    /// Servers that listen by themselves; they end with this.
    _listening: Vec<Listening>,
}

impl<'a> Crowd<'a> {
    fn gather(manifest: &'a Manifest, tools: &'a Tools, folder: &'a Path) -> Result<Self, Failure> {
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
        let text = catalog::write(manifest, tools, folder, &urls, &marked.value);
        let text = text.map_err(|error| trouble(error.to_string()))?;
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

    /// Everything that a visitor of one era finds wanting.
    fn visit(&self, mode: &str) -> Result<Vec<String>, Failure> {
        let url = self.gateway.url();
        let mut visitor = Command::new(&self.tools.node);
        visitor.arg(self.tools.client(VISITOR));
        visitor.args(["--mode", mode, "--url", url]);
        visitor.arg(self.manifest.calls(self.folder, url));
        let output = self.folder.join(format!("{mode}.out"));
        let log = self.folder.join(format!("{mode}.log"));
        let start = Instant::now();
        let ended = limited(visitor, VISIT, &output, &log)?;
        let text = fs::read_to_string(&output).map_err(Failure::file(&output))?;
        let told = text.lines().map(serde_json::from_str::<Told>);
        let told: Vec<Told> = told.filter_map(Result::ok).collect();
        let expected = self.manifest.servers().len() + BESIDES;
        self.say(mode, &told, start.elapsed());
        let mut findings = Vec::new();
        for told in told.iter().filter(|told| told.outcome != Outcome::Works) {
            let why = told.note.as_deref().unwrap_or_default();
            findings.push(format!("{mode}: {}: {why}", told.feature));
        }
        if told.len() != expected || !ended.success() {
            let count = told.len();
            findings.push(format!("{mode}: {count} of {expected} results ({ended})"));
        }
        Ok(findings)
    }

    fn say(&self, mode: &str, told: &[Told], took: Duration) {
        let works = told.iter().filter(|told| told.outcome == Outcome::Works);
        let listed = told.iter().find(|told| told.feature == "list");
        report::say(format_args!(
            "{mode}: {} servers, {}, {} of {} things work, {:.1} s, {} processes",
            self.manifest.servers().len(),
            listed
                .and_then(|told| told.note.as_deref())
                .unwrap_or("no tools"),
            works.count(),
            self.manifest.servers().len() + BESIDES,
            took.as_secs_f64(),
            self.marked.running().len(),
        ));
    }

    /// Nothing runs once everything was idle for a while.
    fn falls_asleep(&self) -> Option<String> {
        let found = self
            .marked
            .gone_within(QUIET, "idle servers were not stopped");
        if found.is_none() {
            report::say("idle: 0 processes");
        }
        found
    }

    /// The gateway ends when it is told to, and leaves nothing behind.
    fn ends(mut self) -> Result<Option<String>, Failure> {
        let status = self.gateway.terminate(FAREWELL)?;
        if !status.success() {
            return Ok(Some(format!("the gateway ended badly ({status})")));
        }
        Ok(self
            .marked
            .gone_within(Duration::ZERO, "the gateway left processes behind"))
    }
}

fn trouble(line: String) -> Failure {
    Failure::Findings {
        check: "crowd",
        lines: vec![line],
        hint: "look into `interop/crowd.toml`",
    }
}
