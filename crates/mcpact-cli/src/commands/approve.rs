//! `mcpact approve`: shows what a config starts, sends and opens, and saves the approvals.

#[cfg(unix)]
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use mcpact_config::{
    ApprovalSubject, Approvals, Catalog, ExpandedText, ExposingKey, GatewayConfig, Launch,
    ServerName, UnpinnedPackage, load, read_source,
};
use mcpact_gateway::control::ApprovedTools;
#[cfg(unix)]
use mcpact_gateway::control::{ControlReply, ControlRequest};
use mcpact_transport::stdio::child::LaunchProblem;

use super::last_approval::LastApprovals;
use super::pin;
#[cfg(unix)]
use super::{block_on, control};
use crate::args::ApproveArgs;
use crate::error::{CliError, Exit};
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
    let last = last_approvals().ok_or(CliError::NoStateDir)?;
    let review = Review {
        file: &file,
        approvals: &approvals,
        last: &last,
        marks: &args.mark,
        pins: PinOffer::Write,
    };
    let items = review.items(&catalog, &args.servers)?;
    let mut marks = args.mark.iter();
    if let Some(mark) = marks.find(|mark| !items.iter().any(|item| item.has_mark(mark))) {
        return Err(CliError::UnknownMark { mark: mark.clone() });
    }
    let missing = review.all(&items)?;
    report::print(&approvals::summary(missing, args.servers.is_empty()))?;
    if !args.servers.is_empty() {
        let others = review.unapproved_others(&catalog, &args.servers)?;
        if !others.is_empty() {
            let others = others.join(", ");
            report::hint(&format!(
                "also not approved: {others}; run `mcpact approve` to review all"
            ));
        }
    }
    if missing > 0 && !is_interactive() {
        report::hint("run it in a terminal, or pass `--mark MARK`");
    }
    Ok(match missing {
        0 => Exit::Ok,
        _ => Exit::Problems,
    })
}

/// Opens the user's approvals; `None` without a state directory.
pub(crate) fn open_approvals() -> Option<Approvals> {
    Some(Approvals::in_file(state_dir()?.join("approvals")))
}

/// Opens what the user saw at the last approvals; `None` without a state directory.
pub(super) fn last_approvals() -> Option<LastApprovals> {
    Some(LastApprovals::in_file(state_dir()?.join("approved.json")))
}

/// Returns the directory of the tool pins; `None` without a state directory.
pub(super) fn tool_pins_dir() -> Option<PathBuf> {
    Some(state_dir()?.join("tools"))
}

/// Returns the directory of approvals, tool pins and installs; `None` without a home.
pub(super) fn state_dir() -> Option<PathBuf> {
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
        let is_done = approved.iter().any(|one| one.server == name.as_str());
        if !is_selected(name, &args.servers) || is_done {
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

/// An item that needs approval.
pub(super) struct Item {
    name: String,
    /// The launch, unless it is a key of the gateway.
    launch: Option<Launch>,
    /// The subject; or a warning and its hint, if the program cannot be started.
    subject: Result<ApprovalSubject, (String, &'static str)>,
}

impl Item {
    fn has_mark(&self, mark: &str) -> bool {
        let subject = self.subject.as_ref();
        subject.is_ok_and(|subject| subject.digest == mark)
    }
}

/// Shows what is not approved, and prompts for it on a terminal.
pub(super) struct Review<'a> {
    pub(super) file: &'a Path,
    pub(super) approvals: &'a Approvals,
    /// What was shown at the last approvals.
    pub(super) last: &'a LastApprovals,
    /// Marks that are approved without a prompt.
    pub(super) marks: &'a [String],
    /// Treatment of packages without a version.
    pub(super) pins: PinOffer,
}

/// Treatment of packages without a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinOffer {
    /// Shown.
    Show,
    /// Shown, with an offer to write the version into the config.
    Write,
}

impl Review<'_> {
    /// Returns everything that needs approval; or only these servers and filters.
    pub(super) fn items(&self, catalog: &Catalog, only: &[String]) -> Result<Vec<Item>, CliError> {
        let mut items = Vec::new();
        for (name, launch) in launches(catalog) {
            if !is_selected(name, only) {
                continue;
            }
            let subject = match ApprovalSubject::of(&launch, self.approvals) {
                Ok(None) => continue,
                Ok(Some(subject)) => Ok(subject),
                Err(error) => Err(launch_warning(name, &launch, error)?),
            };
            let name = name.to_string();
            let launch = Some(launch);
            items.push(Item {
                name,
                launch,
                subject,
            });
        }
        let gateway = &catalog.gateway;
        let keys = gateway.exposing_keys.iter().filter(|_| only.is_empty());
        items.extend(keys.map(|exposing_key| Item {
            name: key_path(exposing_key),
            launch: None,
            subject: Ok(self.subject(exposing_key, gateway)),
        }));
        Ok(items)
    }

    /// Reviews the items; returns how many remain unapproved.
    pub(super) fn all(&self, items: &[Item]) -> Result<usize, CliError> {
        let mut missing = 0;
        let mut dialogue = Dialogue {
            number: 0,
            total: self.unapproved(items)?.len(),
            mode: DialogueMode::Ask,
        };
        for Item {
            name,
            launch,
            subject,
        } in items
        {
            let is_approved = match subject {
                Ok(subject) => self.review(name, launch.as_ref(), subject, &mut dialogue)?,
                Err((warning, hint)) => {
                    dialogue.number += 1;
                    report::warn(warning, hint);
                    false
                }
            };
            missing += usize::from(!is_approved);
        }
        Ok(missing)
    }

    /// Returns the names of the items that are not approved.
    fn unapproved<'i>(&self, items: &'i [Item]) -> Result<Vec<&'i str>, CliError> {
        let mut names = Vec::new();
        for item in items {
            let is_approved = match &item.subject {
                Ok(subject) => self.is_approved(&item.name, subject)?,
                Err(_) => false,
            };
            if !is_approved {
                names.push(item.name.as_str());
            }
        }
        Ok(names)
    }

    /// Returns the unapproved items besides these servers, quoted.
    fn unapproved_others(
        &self,
        catalog: &Catalog,
        servers: &[String],
    ) -> Result<Vec<String>, CliError> {
        let items = self.items(catalog, &[])?;
        let names = self.unapproved(&items)?.into_iter();
        let others = names.filter(|name| servers.iter().all(|server| server != name));
        Ok(others.map(|name| format!("`{name}`")).collect())
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

    fn is_approved(&self, name: &str, subject: &ApprovalSubject) -> Result<bool, CliError> {
        self.approvals
            .contains(&subject.digest)
            .map_err(failed(name))
    }

    fn review(
        &self,
        name: &str,
        launch: Option<&Launch>,
        subject: &ApprovalSubject,
        dialogue: &mut Dialogue,
    ) -> Result<bool, CliError> {
        if self.is_approved(name, subject)? {
            return Ok(true);
        }
        dialogue.number += 1;
        if dialogue.mode == DialogueMode::Quit {
            return Ok(false);
        }
        let is_marked = self.marks.contains(&subject.digest);
        let unpinned = subject.unpinned.as_ref();
        let version = unpinned.and_then(pin::installed_version);
        let last = self.last.lines(name, self.file);
        let shown = approvals::Shown {
            file: self.file,
            number: dialogue.number,
            total: dialogue.total.max(dialogue.number),
            version: version.as_deref(),
            is_approved: is_marked,
            last: last.as_deref(),
        };
        report::eprint(&approvals::subject(name, subject, &shown));
        if let (Some(launch), Some(unpinned), Some(version)) = (launch, unpinned, version)
            && self.pins == PinOffer::Write
            && !is_marked
            && dialogue.mode == DialogueMode::Ask
            && let Some(launch) = self.offer_pin(launch, unpinned, &version)?
            && let Some(subject) =
                ApprovalSubject::of(&launch, self.approvals).map_err(failed(name))?
        {
            dialogue.number -= 1;
            return self.review(name, Some(&launch), &subject, dialogue);
        }
        if !is_marked && !dialogue.approves(approvals::prompt(subject.kind)) {
            return Ok(false);
        }
        let comment = format!("{name} of {}", self.file.display());
        let added = self.approvals.add(&subject.digest, &comment);
        added.map_err(failed(name))?;
        self.last.save(name, self.file, subject);
        Ok(true)
    }

    /// Offers to write the installed version of a package into the config. Returns the launch with it.
    fn offer_pin(
        &self,
        launch: &Launch,
        unpinned: &UnpinnedPackage,
        version: &str,
    ) -> Result<Option<Launch>, CliError> {
        let is_toml = self.file.extension().is_some_and(|ending| ending == "toml");
        let Launch::Command(command) = launch else {
            return Ok(None);
        };
        let Some(pin) = unpinned.pin.as_ref().filter(|_| is_toml) else {
            return Ok(None);
        };
        let pinned = format!("{}{version}", pin.before_version);
        let source = read_source(self.file)?;
        let Some(text) = pin::replaced(&source.text, &unpinned.written, &pinned) else {
            return Ok(None);
        };
        if !confirm(&approvals::pin_prompt(&pinned, self.file)) {
            return Ok(None);
        }
        pin::rewrite(self.file, &text).map_err(|source| CliError::Pin {
            file: self.file.to_owned(),
            source,
        })?;
        let mut command = command.clone();
        command.args[unpinned.position] = ExpandedText::from(&*pinned);
        Ok(Some(Launch::Command(command)))
    }
}

/// Returns whether a server or filter is one of these; none means all.
fn is_selected(name: &ServerName, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|given| given == name.as_str())
}

/// Returns the launches of servers and filters.
fn launches(catalog: &Catalog) -> impl Iterator<Item = (&ServerName, Launch)> {
    let servers = catalog.served().into_iter();
    let servers = servers.map(|(name, server)| (name, server.launch.clone()));
    let filters = catalog.filters.iter();
    servers.chain(filters.map(|one| (&one.name, Launch::Command(one.command.clone()))))
}

/// Returns a warning and its hint if the program cannot be started.
fn launch_warning(
    name: &ServerName,
    launch: &Launch,
    error: std::io::Error,
) -> Result<(String, &'static str), CliError> {
    let (Launch::Command(command), Some(problem)) = (launch, LaunchProblem::of(&error)) else {
        return Err(failed(name.as_str())(error));
    };
    let program = &command.program;
    let reason = match problem {
        LaunchProblem::Missing => format!("program `{program}` not found"),
        _ => format!("cannot start `{program}`: {error}"),
    };
    let warning = format!("cannot approve `{name}`: {reason}");
    Ok((warning, problem.remedy()))
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

/// Course of a review.
#[derive(Debug)]
struct Dialogue {
    /// Number of the current item.
    number: usize,
    /// Number of unapproved items.
    total: usize,
    mode: DialogueMode,
}

/// Treatment of the next items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DialogueMode {
    Ask,
    /// All are approved.
    Approve,
    /// None is shown or approved.
    Quit,
}

impl Dialogue {
    /// Asks whether to approve the current item, if that is not decided yet.
    fn approves(&mut self, prompt: &str) -> bool {
        if !is_interactive() {
            return false;
        }
        while self.mode == DialogueMode::Ask {
            match Answer::parse(&ask(prompt)) {
                Some(Answer::Yes) => return true,
                Some(Answer::No) => return false,
                Some(Answer::All) => self.mode = DialogueMode::Approve,
                Some(Answer::Quit) => self.mode = DialogueMode::Quit,
                None => report::eprint(approvals::ANSWERS),
            }
        }
        self.mode == DialogueMode::Approve
    }
}

/// Answer to the question whether to approve an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    All,
    Quit,
}

impl Answer {
    /// Parses a line; none if it asks for help or is unknown. The end of the input ends the review.
    fn parse(line: &str) -> Option<Self> {
        match line.trim().to_ascii_lowercase().as_str() {
            _ if line.is_empty() => Some(Self::Quit),
            "y" | "yes" => Some(Self::Yes),
            "" | "n" | "no" => Some(Self::No),
            "a" | "all" => Some(Self::All),
            "q" | "quit" => Some(Self::Quit),
            _ => None,
        }
    }
}

/// Returns whether a person can answer a prompt.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question. The default is no.
fn confirm(prompt: &str) -> bool {
    is_interactive() && Answer::parse(&ask(prompt)) == Some(Answer::Yes)
}

/// Returns the line that answers a prompt; empty at the end of the input.
fn ask(prompt: &str) -> String {
    report::eprint(prompt);
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer) {
        Ok(_) => answer,
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn answers_are_parsed() {
        for (line, expected) in [
            ("y\n", Some(Answer::Yes)),
            (" Yes \n", Some(Answer::Yes)),
            ("n\n", Some(Answer::No)),
            ("\n", Some(Answer::No)),
            ("all\n", Some(Answer::All)),
            ("quit\n", Some(Answer::Quit)),
            ("q\n", Some(Answer::Quit)),
            ("", Some(Answer::Quit)),
            ("?\n", None),
            ("maybe\n", None),
        ] {
            assert_eq!(Answer::parse(line), expected, "{line:?}");
        }
    }
}
