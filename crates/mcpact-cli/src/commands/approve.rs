//! `mcpact approve`: shows what a config starts, what it sends where and whom it lets in, and remembers to what a person
//! has agreed.

#[cfg(unix)]
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use mcpact_config::{
    Approvals, Catalog, Deed, DeedKind, GatewayConfig, Launch, Opening, ServerName, load,
    nearest_config,
};
use mcpact_gateway::control::AgreedTools;
#[cfg(unix)]
use mcpact_gateway::control::{Answer, Request};

#[cfg(unix)]
use super::{control, front};
use crate::args::Approve;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, deeds};

pub(super) fn run(args: &Approve) -> Result<Exit, CliError> {
    let file = match &args.config {
        Some(file) => file.clone(),
        None => {
            let here = std::env::current_dir().map_err(CliError::Here)?;
            nearest_config(&here).ok_or(CliError::NoConfig)?
        }
    };
    let catalog = load(&file)?.catalog;
    if let Some(given) = args.servers.iter().find(|name| !has(&catalog, name)) {
        return Err(CliError::UnknownServer {
            given: given.clone(),
            all: catalog.servers.keys().map(ToString::to_string).collect(),
        });
    }
    let approvals = kept().ok_or(CliError::NoState)?;
    if args.tools {
        return agree_to_tools(&file, &catalog, args);
    }
    let is_meant = |name: &ServerName| {
        args.servers.is_empty() || args.servers.iter().any(|given| given == name.as_str())
    };
    let asking = Asking {
        file: &file,
        approvals: &approvals,
        marks: &args.mark,
    };
    let mut left = asking.about(&catalog, is_meant)?;
    if args.servers.is_empty() {
        left += asking.about_gateway(&catalog.gateway)?;
    }
    match left {
        0 => {
            report::print("everything is approved\n")?;
            Ok(Exit::Ok)
        }
        left => {
            report::print(&format!("{left} not approved\n"))?;
            Ok(Exit::Problems)
        }
    }
}

fn has(catalog: &Catalog, given: &str) -> bool {
    catalog.servers.keys().any(|name| name.as_str() == given)
}

/// Where approvals are kept; none if there is no place for it.
pub(super) fn kept() -> Option<Approvals> {
    Some(Approvals::in_file(state()?.join("approvals")))
}

/// The folder in which tools are remembered, likewise.
pub(super) fn tools() -> Option<PathBuf> {
    Some(state()?.join("tools"))
}

fn state() -> Option<PathBuf> {
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let state = home("XDG_STATE_HOME").or_else(|| Some(home("HOME")?.join(".local/state")));
    Some(state?.join("mcpact"))
}

/// Agrees to what the servers of a gateway that runs say about their tools, and to what the others say next.
fn agree_to_tools(file: &Path, catalog: &Catalog, args: &Approve) -> Result<Exit, CliError> {
    let folder = tools().ok_or(CliError::NoState)?;
    let agreed = at_once(file, &args.servers)?;
    let mut left = Vec::new();
    for (name, server) in catalog.served() {
        let is_meant = args.servers.is_empty() || args.servers.iter().any(|of| of == name.as_str());
        let is_done = agreed.iter().any(|agreed| agreed.server == name.as_str());
        if !is_meant || is_done {
            continue;
        }
        left.push(name.as_str());
        match std::fs::remove_file(folder.join(server.remembered_as(name))) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                let server = name.to_string();
                return Err(CliError::Approve { server, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    report::print(&deeds::agreed(&agreed, &left))?;
    Ok(Exit::Ok)
}

/// What the gateways that serve this config have agreed to; nothing if none does.
#[cfg(unix)]
fn at_once(file: &Path, servers: &[String]) -> Result<Vec<AgreedTools>, CliError> {
    let servers = servers.to_vec();
    let request = Request::AgreeToTools { servers };
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for answer in front::block_on(control::answers_of(file, &request))? {
        let Answer::Agreed(agreed) = answer else {
            return Err(CliError::Answer);
        };
        for AgreedTools { server, tools } in agreed {
            all.entry(server).or_default().extend(tools);
        }
    }
    let agreed = all.into_iter().map(|(server, tools)| AgreedTools {
        server,
        tools: tools.into_iter().collect(),
    });
    Ok(agreed.collect())
}

#[cfg(not(unix))]
fn at_once(_: &Path, _: &[String]) -> Result<Vec<AgreedTools>, CliError> {
    Ok(Vec::new())
}

/// Shows what is not approved, and asks about it where there is somebody to ask.
pub(super) struct Asking<'a> {
    pub(super) file: &'a Path,
    pub(super) approvals: &'a Approvals,
    /// What is approved without asking.
    pub(super) marks: &'a [String],
}

impl Asking<'_> {
    /// How many servers and filters are left that are not approved.
    pub(super) fn about(
        &self,
        catalog: &Catalog,
        is_meant: impl Fn(&ServerName) -> bool,
    ) -> Result<usize, CliError> {
        let mut left = 0;
        for (name, server) in catalog.served() {
            if is_meant(name) && !self.is_approved(name, &server.launch)? {
                left += 1;
            }
        }
        for filter in &catalog.filters {
            let launch = Launch::Command(filter.command.clone());
            if is_meant(&filter.name) && !self.is_approved(&filter.name, &launch)? {
                left += 1;
            }
        }
        Ok(left)
    }

    /// How many keys are left that let more callers in and are not approved.
    pub(super) fn about_gateway(&self, gateway: &GatewayConfig) -> Result<usize, CliError> {
        let mut left = 0;
        for opening in &gateway.openings {
            let deed = self.deed(opening, gateway);
            if !self.is_agreed(&named(opening), &deed)? {
                left += 1;
            }
        }
        Ok(left)
    }

    /// The keys that let more callers in and are not approved; nobody is asked.
    pub(super) fn left_of_gateway<'g>(
        &self,
        gateway: &'g GatewayConfig,
    ) -> Result<Vec<&'g Opening>, CliError> {
        let mut left = Vec::new();
        for opening in &gateway.openings {
            let deed = self.deed(opening, gateway);
            if !self.hold(&named(opening), &deed)? {
                left.push(opening);
            }
        }
        Ok(left)
    }

    /// However the config was reached, it is the same one.
    fn deed(&self, opening: &Opening, gateway: &GatewayConfig) -> Deed {
        let real = self.file.canonicalize();
        Deed::of_opening(opening, gateway, real.as_deref().unwrap_or(self.file))
    }

    fn is_approved(&self, name: &ServerName, launch: &Launch) -> Result<bool, CliError> {
        let deed = Deed::of(launch).map_err(failed(name.as_str()))?;
        deed.map_or(Ok(true), |deed| self.is_agreed(name.as_str(), &deed))
    }

    fn hold(&self, name: &str, deed: &Deed) -> Result<bool, CliError> {
        self.approvals.hold(&deed.mark).map_err(failed(name))
    }

    fn is_agreed(&self, name: &str, deed: &Deed) -> Result<bool, CliError> {
        if self.hold(name, deed)? {
            return Ok(true);
        }
        report::aside(&deeds::text(name, deed));
        if !self.marks.contains(&deed.mark) && !agrees(deed.kind) {
            return Ok(false);
        }
        let about = format!("{name} of {}", self.file.display());
        let added = self.approvals.add(&deed.mark, &about);
        added.map_err(failed(name))?;
        Ok(true)
    }
}

fn named(opening: &Opening) -> String {
    format!("gateway.{}", opening.key)
}

fn failed(name: &str) -> impl Fn(std::io::Error) -> CliError {
    let server = name.to_owned();
    move |source| CliError::Approve {
        server: server.clone(),
        source,
    }
}

/// Whether there is a person who can be asked.
pub(super) fn is_anybody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Nobody agrees by accident: only a plain yes counts.
fn agrees(kind: DeedKind) -> bool {
    if !is_anybody_there() {
        return false;
    }
    report::aside(match kind {
        DeedKind::Start => "  start this from now on? [y/N] ",
        DeedKind::Send => "  send this from now on? [y/N] ",
        DeedKind::Open => "  let them in from now on? [y/N] ",
    });
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
