//! Reading the config anew: all of it takes effect, or nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use mcpact::server::backend::date;
use mcpact_config::{
    CatalogError, Change, Changes, GatewayConfig, Loaded, Problem, ServerName, Severity, Source,
    load,
};

use super::Gateway;
use super::print::Print;
use crate::chronicle::EntryKind;
use crate::control::{Notice, ReloadReport};
use crate::stable::{LogEvent, ReloadOutcome};

/// What is told when a config was taken, or was not.
const SUCCESS: &str = LogEvent::ReloadSuccess.as_str();
const FAILURE: &str = LogEvent::ReloadFailure.as_str();

/// What is told when some of it takes effect later.
const WAITING: &str = LogEvent::ReloadWaiting.as_str();

/// The file that a gateway serves, and what stands above it.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// The address that was asked for instead of the configured one.
    pub listen: Option<SocketAddr>,
}

mcpact_spec::stable_strings! {
    /// Cause of a reload.
    pub enum ReloadCause {
        /// The file changed.
        File = "file",
        /// `mcpact reload`.
        Command = "command",
        /// The signal HUP.
        Signal = "signal",
    }
}

impl ConfigFile {
    fn load(&self) -> Result<Loaded, CatalogError> {
        let mut loaded = load(&self.path)?;
        if let Some(listen) = self.listen {
            loaded.catalog.gateway.listen_instead(listen);
        }
        Ok(loaded)
    }
}

impl Gateway {
    /// From here on the gateway knows which file it serves, where this was read, and can read it anew.
    pub fn serves(&self, file: ConfigFile, source: &Source) {
        self.state().print = Some(Print::of(source));
        // There is one.
        let _ = self.file.set(file);
    }

    pub(super) fn read_last(&self) -> Option<Print> {
        self.state().print.clone()
    }

    /// Reads the config anew. What is wrong with it is told, and then everything stays as it was.
    pub async fn reload(&self, cause: ReloadCause) -> ReloadReport {
        // One after the other: each is compared with the one before.
        let _turn = self.reloading.lock().await;
        let mut report = ReloadReport {
            time: date(),
            cause: cause.as_str().to_owned(),
            ..ReloadReport::default()
        };
        match self.file.get().cloned() {
            None => report.problems.push(whole(
                "this gateway serves built-in servers, and has no config",
                Some("start it with `--config FILE`"),
            )),
            Some(file) => {
                report.config = Some(file.path.display().to_string());
                let path = file.path.clone();
                let loaded = tokio::task::spawn_blocking(move || file.load()).await;
                self.state().print = match &loaded {
                    Ok(Ok(loaded)) => Some(Print::of(&loaded.source)),
                    Ok(Err(CatalogError::Refused { source_text, .. })) => {
                        Some(Print::of(source_text))
                    }
                    Ok(Err(CatalogError::Unreadable { .. })) | Err(_) => None,
                };
                match loaded {
                    // Some write a file by emptying it first, and stopping everything is not meant.
                    Ok(Ok(loaded)) if loaded.source.text.trim().is_empty() => {
                        self.figures.reloaded(ReloadOutcome::Refused);
                        report.problems.push(whole(
                            "the config is empty",
                            Some("write into it what shall be; a comment means that there are no servers"),
                        ));
                    }
                    Ok(Ok(loaded)) => self.take(loaded, &mut report),
                    Ok(Err(error)) => {
                        self.figures.reloaded(ReloadOutcome::Refused);
                        report.problems = told(&path, error);
                    }
                    Err(error) => report.problems.push(whole(&error.to_string(), None)),
                }
            }
        }
        self.tell(&report);
        self.state().last_reload = Some(report.clone());
        report
    }

    fn take(&self, loaded: Loaded, report: &mut ReloadReport) {
        let Loaded {
            catalog,
            source,
            problems,
        } = loaded;
        let warnings = problems
            .iter()
            .filter(|problem| problem.severity >= Severity::Warning);
        report.problems = warnings.map(|problem| notice(problem, &source)).collect();
        let before = self.state().catalog.gateway.clone();
        let gateway = catalog.gateway.clone();
        let has_other_filters = !self.filters.configs().eq(&catalog.filters);
        match self.change(catalog) {
            Err(error) => report.problems.push(whole(&chain(&error), None)),
            Ok(changes) => {
                report.applied = true;
                let taken = &self.state().catalog;
                let names: Vec<ServerName> = taken.served().into_keys().cloned().collect();
                sort_out(&changes, &names, report);
                report.wrong = taken.wrong.keys().map(ToString::to_string).collect();
                report.gateway = differences(&before, &gateway, Effect::AtOnce);
                report.at_next_start = differences(&self.first, &gateway, Effect::AtNextStart);
                if has_other_filters {
                    report.at_next_start.push(String::from("filters"));
                }
            }
        }
    }

    fn tell(&self, report: &ReloadReport) {
        let said = report.in_words();
        let cause = report.cause.as_str();
        let event = if report.applied { SUCCESS } else { FAILURE };
        let waiting = report.at_next_start.join(", ");
        if !waiting.is_empty() {
            tracing::warn!(
                event = WAITING,
                cause,
                keys = waiting,
                "config changes need a gateway restart"
            );
        }
        if report.applied {
            tracing::info!(event, cause, outcome = said, "config reloaded");
        } else {
            tracing::warn!(event, cause, outcome = said, "config rejected");
        }
        let text = format!("config reload ({cause}): {said}");
        let journal = self.chronicle.own_journal();
        journal.write(report.time.clone(), None, EntryKind::Event(event), &text);
    }
}

fn sort_out(changes: &Changes, names: &[ServerName], report: &mut ReloadReport) {
    let words = |name: &ServerName| name.to_string();
    report.started = changes.added.iter().map(words).collect();
    report.stopped = changes.removed.iter().map(words).collect();
    for (name, change) in &changes.changed {
        match change {
            Change::Relaunch => report.restarted.push(words(name)),
            Change::Settings => report.adjusted.push(words(name)),
        }
    }
    let is_same =
        |name: &&ServerName| !changes.added.contains(*name) && !changes.changed.contains_key(*name);
    report.unchanged = names.iter().filter(is_same).map(words).collect();
}

/// When another value of a key of `[gateway]` takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    AtOnce,
    AtNextStart,
}

/// The keys of `[gateway]` that differ and take effect then.
fn differences(old: &GatewayConfig, new: &GatewayConfig, effect: Effect) -> Vec<String> {
    let rows = rows(old, new);
    let differ = rows
        .iter()
        .filter(|(_, when, differs)| *when == effect && *differs);
    differ.map(|(key, _, _)| (*key).to_owned()).collect()
}

/// Every key, when another value takes effect, and whether there is one. The file of the certificate stands
/// for that of its key.
fn rows(old: &GatewayConfig, new: &GatewayConfig) -> [(&'static str, Effect, bool); 24] {
    use Effect::{AtNextStart, AtOnce};
    [
        ("listen", AtNextStart, old.listen != new.listen),
        ("token", AtNextStart, old.token != new.token),
        (
            "allow_remote",
            AtNextStart,
            old.allow_remote != new.allow_remote,
        ),
        (
            "allow_hosts",
            AtNextStart,
            old.allow_hosts != new.allow_hosts,
        ),
        (
            "allow_origins",
            AtNextStart,
            old.allow_origins != new.allow_origins,
        ),
        ("tls_cert", AtNextStart, old.tls != new.tls),
        ("sse", AtNextStart, old.sse != new.sse),
        ("websocket", AtNextStart, old.websocket != new.websocket),
        ("control", AtNextStart, old.control != new.control),
        ("names", AtOnce, old.names != new.names),
        ("separator", AtOnce, old.separator != new.separator),
        ("watch", AtOnce, old.watch != new.watch),
        ("drain_seconds", AtOnce, old.drain != new.drain),
        ("list_seconds", AtNextStart, old.list_wait != new.list_wait),
        ("revisions", AtNextStart, old.revisions != new.revisions),
        ("profile", AtNextStart, old.profile != new.profile),
        ("strict", AtNextStart, old.strict != new.strict),
        ("lenient", AtOnce, old.lenient != new.lenient),
        ("undeclared", AtNextStart, old.undeclared != new.undeclared),
        (
            "announce_extras",
            AtNextStart,
            old.announce_extras != new.announce_extras,
        ),
        ("require", AtNextStart, old.require != new.require),
        (
            "missing_variables",
            AtOnce,
            old.missing_variables != new.missing_variables,
        ),
        ("answers", AtOnce, old.answers != new.answers),
        ("commands", AtOnce, old.commands != new.commands),
    ]
}

/// Everything that is wrong with a file.
fn told(path: &Path, error: CatalogError) -> Vec<Notice> {
    match error {
        CatalogError::Refused {
            source_text,
            problems,
        } => {
            let bad = problems
                .iter()
                .filter(|problem| problem.severity == Severity::Error);
            bad.map(|problem| notice(problem, &source_text)).collect()
        }
        CatalogError::Unreadable { source, .. } => {
            let remedy = format!("put it back to `{}`", path.display());
            vec![whole(
                &format!("it cannot be read: {source}"),
                Some(&remedy),
            )]
        }
    }
}

fn notice(problem: &Problem, source: &Source) -> Notice {
    let place = source.place(problem.span.start);
    Notice {
        severity: problem.severity.as_str().to_owned(),
        line: Some(place.line),
        column: Some(place.column),
        message: problem.message.clone(),
        remedy: problem.remedy.clone(),
    }
}

/// Something that is wrong with all of it.
fn whole(message: &str, remedy: Option<&str>) -> Notice {
    Notice {
        severity: Severity::Error.as_str().to_owned(),
        line: None,
        column: None,
        message: message.to_owned(),
        remedy: remedy.map(str::to_owned),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_config::Catalog;
    use mcpact_config::keys::GATEWAY;

    /// Of every key of `[gateway]` it is known when another value takes effect.
    #[test]
    fn every_key_has_a_row() {
        let old = Catalog::default().gateway;
        let mut new = old.clone();
        assert!(differences(&old, &new, Effect::AtOnce).is_empty());
        new.listen = SocketAddr::from(([127, 0, 0, 1], 1));
        new.separator = String::from(".");
        assert_eq!(differences(&old, &new, Effect::AtOnce), ["separator"]);
        assert_eq!(differences(&old, &new, Effect::AtNextStart), ["listen"]);
        let rows = rows(&old, &new);
        let has_row = |name: &str| rows.iter().any(|(key, _, _)| *key == name);
        for key in GATEWAY.iter().filter(|key| key.name != "tls_key") {
            assert!(has_row(key.name), "{}", key.name);
        }
    }
}
