//! `mcpact approve`: shows what a config starts, sends and opens, and saves the approvals.

#[cfg(unix)]
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use mcpact_config::{
    ApprovalKind, ApprovalSubject, Approvals, Catalog, ExposingKey, GatewayConfig, Launch,
    ServerName, load,
};
use mcpact_gateway::control::ApprovedTools;
#[cfg(unix)]
use mcpact_gateway::control::{ControlReply, ControlRequest};
use mcpact_transport::stdio::child::LaunchProblem;

#[cfg(unix)]
use super::{block_on, control};
use crate::args::ApproveArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, approvals};

pub(super) fn run(args: &ApproveArgs) -> Result<Exit, CliError> {
    let file = super::config_file(args.config.as_deref())?;
    let catalog = load(&file)?.catalog;
    let is_configured = |given: &str| catalog.servers.keys().any(|name| name.as_str() == given);
    if let Some(given) = args.servers.iter().find(|name| !is_configured(name)) {
        let known = catalog.servers.keys();
        return Err(CliError::unknown("server", given, "servers", known));
    }
    let approvals = open_approvals().ok_or(CliError::NoStateDir)?;
    if args.tools {
        return approve_tools(&file, &catalog, args);
    }
    let is_selected = |name: &ServerName| {
        args.servers.is_empty() || args.servers.iter().any(|given| given == name.as_str())
    };
    let review = Review {
        file: &file,
        approvals: &approvals,
        marks: &args.mark,
    };
    let subjects = review.subjects(&catalog, is_selected, args.servers.is_empty())?;
    let is_known = |mark: &String| subjects.iter().any(|subject| subject.digest == *mark);
    if let Some(mark) = args.mark.iter().find(|mark| !is_known(mark)) {
        return Err(CliError::UnknownMark { mark: mark.clone() });
    }
    let mut missing = review.launches(&catalog, is_selected)?;
    if args.servers.is_empty() {
        missing += review.gateway(&catalog.gateway)?;
    }
    report::print(&approvals::summary(missing, args.servers.is_empty()))?;
    if missing > 0 && !is_interactive() {
        report::hint("run it in a terminal, or pass `--mark MARK`");
    }
    Ok(match missing {
        0 => Exit::Ok,
        _ => Exit::Problems,
    })
}

/// Opens the user's approvals; `None` without a state directory.
pub(super) fn open_approvals() -> Option<Approvals> {
    Some(Approvals::in_file(state_dir()?.join("approvals")))
}

/// Returns the directory of the tool pins; `None` without a state directory.
pub(super) fn tool_pins_dir() -> Option<PathBuf> {
    Some(state_dir()?.join("tools"))
}

fn state_dir() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let state = var("XDG_STATE_HOME").or_else(|| Some(var("HOME")?.join(".local/state")));
    Some(state?.join("mcpact"))
}

/// Approves the current tools of servers in running gateways, and the next tool list of all others.
fn approve_tools(file: &Path, catalog: &Catalog, args: &ApproveArgs) -> Result<Exit, CliError> {
    let dir = tool_pins_dir().ok_or(CliError::NoStateDir)?;
    let approved = approve_in_running_gateways(file, &args.servers)?;
    let mut not_running = Vec::new();
    for (name, server) in catalog.served() {
        let is_selected =
            args.servers.is_empty() || args.servers.iter().any(|of| of == name.as_str());
        let is_done = approved.iter().any(|one| one.server == name.as_str());
        if !is_selected || is_done {
            continue;
        }
        not_running.push(name.as_str());
        match std::fs::remove_file(dir.join(server.cache_file_stem(name))) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                let server = name.to_string();
                return Err(CliError::Approve { server, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    report::print(&approvals::tools(&approved, &not_running))?;
    Ok(Exit::Ok)
}

/// Approves the tools in every running gateway that serves this config.
#[cfg(unix)]
fn approve_in_running_gateways(
    file: &Path,
    servers: &[String],
) -> Result<Vec<ApprovedTools>, CliError> {
    let servers = servers.to_vec();
    let request = ControlRequest::ApproveTools { servers };
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for reply in block_on(control::request_all(file, &request))? {
        let ControlReply::Agreed(approved) = reply else {
            return Err(CliError::UnexpectedResponse);
        };
        for ApprovedTools { server, tools } in approved {
            all.entry(server).or_default().extend(tools);
        }
    }
    let approved = all.into_iter().map(|(server, tools)| ApprovedTools {
        server,
        tools: tools.into_iter().collect(),
    });
    Ok(approved.collect())
}

#[cfg(not(unix))]
fn approve_in_running_gateways(_: &Path, _: &[String]) -> Result<Vec<ApprovedTools>, CliError> {
    Ok(Vec::new())
}

/// Shows what is not approved, and prompts for it on a terminal.
pub(super) struct Review<'a> {
    pub(super) file: &'a Path,
    pub(super) approvals: &'a Approvals,
    /// Marks that are approved without a prompt.
    pub(super) marks: &'a [String],
}

impl Review<'_> {
    /// Reviews servers and filters; returns how many remain unapproved.
    pub(super) fn launches(
        &self,
        catalog: &Catalog,
        is_selected: impl Fn(&ServerName) -> bool,
    ) -> Result<usize, CliError> {
        let mut missing = 0;
        for (name, launch) in selected_launches(catalog, is_selected) {
            if !self.launch(name, &launch)? {
                missing += 1;
            }
        }
        Ok(missing)
    }

    /// Returns everything that needs approval, except programs that cannot be started.
    fn subjects(
        &self,
        catalog: &Catalog,
        is_selected: impl Fn(&ServerName) -> bool,
        with_gateway: bool,
    ) -> Result<Vec<ApprovalSubject>, CliError> {
        let mut subjects = Vec::new();
        for (name, launch) in selected_launches(catalog, is_selected) {
            match ApprovalSubject::of(&launch) {
                Err(error) if LaunchProblem::of(&error).is_some() => {}
                subject => subjects.extend(subject.map_err(failed(name.as_str()))?),
            }
        }
        let gateway = &catalog.gateway;
        let keys = gateway.exposing_keys.iter().filter(|_| with_gateway);
        subjects.extend(keys.map(|exposing_key| self.subject(exposing_key, gateway)));
        Ok(subjects)
    }

    /// Reviews the gateway keys that admit more clients; returns how many remain unapproved.
    pub(super) fn gateway(&self, gateway: &GatewayConfig) -> Result<usize, CliError> {
        let mut missing = 0;
        for exposing_key in &gateway.exposing_keys {
            let subject = self.subject(exposing_key, gateway);
            if !self.review(&key_path(exposing_key), &subject)? {
                missing += 1;
            }
        }
        Ok(missing)
    }

    /// Returns the unapproved gateway keys without a prompt.
    pub(super) fn unapproved_keys<'g>(
        &self,
        gateway: &'g GatewayConfig,
    ) -> Result<Vec<&'g ExposingKey>, CliError> {
        let mut missing = Vec::new();
        for exposing_key in &gateway.exposing_keys {
            let subject = self.subject(exposing_key, gateway);
            if !self.is_approved(&key_path(exposing_key), &subject)? {
                missing.push(exposing_key);
            }
        }
        Ok(missing)
    }

    /// The path is canonical, so that every path to the config means the same approval.
    fn subject(&self, exposing_key: &ExposingKey, gateway: &GatewayConfig) -> ApprovalSubject {
        let real = self.file.canonicalize();
        ApprovalSubject::of_exposing_key(
            exposing_key,
            gateway,
            real.as_deref().unwrap_or(self.file),
        )
    }

    fn launch(&self, name: &ServerName, launch: &Launch) -> Result<bool, CliError> {
        let subject = match (ApprovalSubject::of(launch), launch) {
            (Err(error), Launch::Command(command)) if LaunchProblem::of(&error).is_some() => {
                let program = &command.program;
                let problem = match LaunchProblem::of(&error) {
                    Some(LaunchProblem::Missing) => format!("program `{program}` not found"),
                    _ => format!("cannot start `{program}`: {error}"),
                };
                let remedy = LaunchProblem::of(&error).map_or("", LaunchProblem::remedy);
                report::warn(&format!("cannot approve `{name}`: {problem}"), remedy);
                return Ok(false);
            }
            (subject, _) => subject.map_err(failed(name.as_str()))?,
        };
        subject.map_or(Ok(true), |subject| self.review(name.as_str(), &subject))
    }

    fn is_approved(&self, name: &str, subject: &ApprovalSubject) -> Result<bool, CliError> {
        self.approvals
            .contains(&subject.digest)
            .map_err(failed(name))
    }

    fn review(&self, name: &str, subject: &ApprovalSubject) -> Result<bool, CliError> {
        if self.is_approved(name, subject)? {
            return Ok(true);
        }
        let is_marked = self.marks.contains(&subject.digest);
        report::eprint(&approvals::subject(name, subject, is_marked));
        if !is_marked && !confirm(subject.kind) {
            return Ok(false);
        }
        let comment = format!("{name} of {}", self.file.display());
        let added = self.approvals.add(&subject.digest, &comment);
        added.map_err(failed(name))?;
        Ok(true)
    }
}

/// Returns the selected servers and filters.
fn selected_launches(
    catalog: &Catalog,
    is_selected: impl Fn(&ServerName) -> bool,
) -> Vec<(&ServerName, Launch)> {
    let servers = catalog.served().into_iter();
    let servers = servers.map(|(name, server)| (name, server.launch.clone()));
    let filters = catalog.filters.iter();
    let filters = filters.map(|one| (&one.name, Launch::Command(one.command.clone())));
    let all = servers.chain(filters);
    all.filter(|(name, _)| is_selected(name)).collect()
}

fn key_path(exposing_key: &ExposingKey) -> String {
    format!("gateway.{}", exposing_key.key)
}

fn failed(name: &str) -> impl Fn(std::io::Error) -> CliError {
    let server = name.to_owned();
    move |source| CliError::Approve {
        server: server.clone(),
        source,
    }
}

/// Returns whether a person can answer a prompt.
pub(super) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prompts for an approval. The default is no.
fn confirm(kind: ApprovalKind) -> bool {
    if !is_interactive() {
        return false;
    }
    report::eprint(approvals::prompt(kind));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
