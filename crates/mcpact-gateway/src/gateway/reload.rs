//! Reload of the config, on request or when its file changes: either all of it takes effect or nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpact::server::ListenAddress;
use mcpact::server::backend::date;
use mcpact_config::{
    Catalog, CatalogError, Change, Changes, ConfigDigest, ConfigWatcher, GatewayConfig,
    LoadedConfig, PolicySettings, Problem, ServerName, Severity, Source, load_with,
};

use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::Gateway;
use crate::control::{Notice, ReloadReport};
use crate::reason::{LogEvent, ReloadOutcome};
use mcpact::error::with_causes;

/// Config file of a gateway, with command-line overrides.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Listen address that overrides the configured one.
    pub listen: Option<ListenAddress>,
    /// Protocol settings that override the configured ones.
    pub policy: PolicySettings,
}

/// Time after which a missing file is reported.
const MISSING: Duration = Duration::from_secs(2);

/// Returns true if the config must be reloaded: its digest differs from the last one, or the file has been missing so long.
fn must_reload(last: Option<&ConfigDigest>, now: Option<&ConfigDigest>, missing: Duration) -> bool {
    last != now && (now.is_some() || missing >= MISSING)
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
    fn load(&self) -> Result<LoadedConfig, CatalogError> {
        let mut loaded = load_with(&self.path, &self.policy)?;
        if let Some(listen) = &self.listen {
            loaded.catalog.gateway.override_listen(listen.clone());
        }
        Ok(loaded)
    }
}

impl Gateway {
    /// Sets the config file for reloads; `source` is its content as loaded.
    pub fn set_config_file(&self, file: ConfigFile, source: &Source) {
        self.state().digest = Some(ConfigDigest::of(source));
        let _ = self.file.set(file);
    }

    /// Reloads the config whenever its file changes, while this is awaited.
    pub async fn watch(&self) {
        let Some(file) = self.file.get() else {
            return;
        };
        let last = self.state().digest.clone();
        let mut watcher = ConfigWatcher::new(file.path.clone(), last.as_ref());
        let mut missing: Option<Instant> = None;
        loop {
            watcher.changed(missing.is_some()).await;
            if !self.state().catalog.gateway.watch {
                continue;
            }
            let last = self.state().digest.clone();
            let (path, known) = (file.path.clone(), last.clone());
            let read = spawn_blocking(move || ConfigDigest::now(&path, known.as_ref()));
            let now = read.await.ok().flatten();
            let since = missing.take().unwrap_or_else(Instant::now);
            if must_reload(last.as_ref(), now.as_ref(), since.elapsed()) {
                self.reload(ReloadCause::File).await;
            } else if last != now {
                // The file may reappear.
                missing = Some(since);
            }
            let last = self.state().digest.clone();
            watcher.update(last.as_ref());
        }
    }

    /// Reloads the config. An invalid config is reported and changes nothing.
    pub async fn reload(&self, cause: ReloadCause) -> ReloadReport {
        // Reloads are serialized: each is compared with the one before.
        let _guard = self.reloading.lock().await;
        let mut report = ReloadReport {
            time: date(),
            cause: cause.as_str().to_owned(),
            ..ReloadReport::default()
        };
        match self.file.get() {
            None => report.problems.push(file_error(
                "this gateway serves built-in servers and has no config",
                Some("start it with `--config FILE`"),
            )),
            Some(file) => self.reload_file(file.clone(), &mut report).await,
        }
        self.log_reload(&report);
        self.state().last_reload = Some(report.clone());
        report
    }

    async fn reload_file(&self, file: ConfigFile, report: &mut ReloadReport) {
        let path = file.path.clone();
        report.config = Some(path.display().to_string());
        let loaded = spawn_blocking(move || file.load()).await;
        let source = match &loaded {
            Ok(Ok(loaded)) => Some(&loaded.source),
            Ok(Err(CatalogError::Refused { source_text, .. })) => Some(&**source_text),
            Ok(Err(CatalogError::Unreadable { .. })) | Err(_) => None,
        };
        self.state().digest = source.map(ConfigDigest::of);
        match loaded {
            // Some editors truncate a file before writing it, which must not stop all servers.
            Ok(Ok(loaded)) if loaded.source.text.trim().is_empty() => {
                self.metrics.reloaded(ReloadOutcome::Refused);
                let remedy = "add servers, or a comment to run without servers";
                report
                    .problems
                    .push(file_error("the config is empty", Some(remedy)));
            }
            Ok(Ok(loaded)) => self.apply_loaded(loaded, report),
            Ok(Err(error)) => {
                self.metrics.reloaded(ReloadOutcome::Refused);
                report.problems = notices(&path, error);
            }
            Err(error) => report.problems.push(file_error(&error.to_string(), None)),
        }
    }

    fn apply_loaded(&self, loaded: LoadedConfig, report: &mut ReloadReport) {
        let catalog = loaded.catalog;
        let warnings = loaded.problems.iter();
        let warnings = warnings.filter(|problem| problem.severity >= Severity::Warning);
        let warnings = warnings.map(|problem| notice(problem, &loaded.source));
        report.problems = warnings.collect();
        let before = self.state().catalog.gateway.clone();
        let gateway = catalog.gateway.clone();
        let are_filters_changed = !self.filters.configs().eq(&catalog.filters);
        match self.change(catalog) {
            Err(error) => report.problems.push(file_error(&with_causes(&error), None)),
            Ok(changes) => {
                report.applied = true;
                let applied = &self.state().catalog;
                report_changes(&changes, applied, report);
                report.wrong = applied.wrong.keys().map(ToString::to_string).collect();
                report.gateway = changed(&at_once(&before, &gateway));
                report.at_next_start = changed(&at_next_start(&self.first, &gateway));
                if are_filters_changed {
                    report.at_next_start.push(String::from("filters"));
                }
            }
        }
    }

    fn log_reload(&self, report: &ReloadReport) {
        let summary = report.summary();
        let cause = report.cause.as_str();
        let keys = report.at_next_start.join(", ");
        if !keys.is_empty() {
            let event = LogEvent::ReloadWaiting.as_str();
            tracing::warn!(event, cause, keys, "config changes need a gateway restart");
        }
        let text = format!("config reload ({cause}): {summary}");
        let outcome = summary;
        let logged = if report.applied {
            let event = LogEvent::ReloadSuccess.as_str();
            tracing::info!(event, cause, outcome, "config reloaded");
            LogEvent::ReloadSuccess
        } else {
            let event = LogEvent::ReloadFailure.as_str();
            tracing::warn!(event, cause, outcome, "config rejected");
            LogEvent::ReloadFailure
        };
        self.record(report.time.clone(), logged, &text);
    }
}

fn report_changes(changes: &Changes, applied: &Catalog, report: &mut ReloadReport) {
    let text = |name: &ServerName| name.to_string();
    report.started = changes.added.iter().map(text).collect();
    report.stopped = changes.removed.iter().map(text).collect();
    for (name, change) in &changes.changed {
        match change {
            Change::Relaunch => report.restarted.push(text(name)),
            Change::Settings => report.adjusted.push(text(name)),
        }
    }
    let mut unchanged = applied.served();
    unchanged
        .retain(|name, _| !changes.added.contains(*name) && !changes.changed.contains_key(*name));
    report.unchanged = unchanged.into_keys().map(text).collect();
}

/// Returns the keys with changed values.
fn changed(keys: &[(&str, bool)]) -> Vec<String> {
    let changed = keys.iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| (*key).to_owned()).collect()
}

/// Keys of `[gateway]` that take effect at once, and whether they changed.
fn at_once(old: &GatewayConfig, new: &GatewayConfig) -> [(&'static str, bool); 10] {
    let variables = old.missing_variables != new.missing_variables;
    [
        ("names", old.names != new.names),
        ("separator", old.separator != new.separator),
        ("watch", old.watch != new.watch),
        ("drain_seconds", old.drain != new.drain),
        ("lenient", old.lenient != new.lenient),
        ("missing_variables", variables),
        ("answers", old.answers != new.answers),
        ("commands", old.commands != new.commands),
        ("limits", old.memory != new.memory),
        ("sandbox", old.sandbox != new.sandbox),
    ]
}

/// Keys of `[gateway]` that need a restart, and whether they changed; `tls_cert` includes `tls_key`.
fn at_next_start(old: &GatewayConfig, new: &GatewayConfig) -> [(&'static str, bool); 26] {
    let (was, is) = (&old.policy, &new.policy);
    [
        ("listen", old.listen != new.listen),
        ("token", old.token != new.token),
        ("tokens", old.tokens != new.tokens),
        ("allow_remote", old.allow_remote != new.allow_remote),
        ("allow_hosts", old.allow_hosts != new.allow_hosts),
        ("allow_origins", old.allow_origins != new.allow_origins),
        ("allow_users", old.allow_users != new.allow_users),
        ("tls_cert", old.tls != new.tls),
        ("sse", old.sse != new.sse),
        ("websocket", old.websocket != new.websocket),
        ("control", old.control != new.control),
        ("list_seconds", old.list_wait != new.list_wait),
        ("tools", old.tools != new.tools),
        ("profile", old.profile != new.profile),
        ("revisions", was.version.supported != is.version.supported),
        ("version_range", was.version.rule != is.version.rule),
        (
            "unsupported_version",
            was.version.on_unsupported != is.version.on_unsupported,
        ),
        (
            "missing_version",
            was.version.on_missing != is.version.on_missing,
        ),
        ("early_requests", was.early != is.early),
        ("unknown_methods", was.unknown != is.unknown),
        (
            "require_client_capability",
            was.client_requirements != is.client_requirements,
        ),
        ("strict", was.reading != is.reading),
        ("undeclared", was.undeclared != is.undeclared),
        ("announce_extras", was.extras != is.extras),
        ("max_batch_size", was.batch_limit != is.batch_limit),
        ("require", was.required != is.required),
    ]
}

/// Returns the errors of a file.
fn notices(path: &Path, error: CatalogError) -> Vec<Notice> {
    match error {
        CatalogError::Refused {
            source_text,
            problems,
        } => {
            let errors = problems.iter();
            let errors = errors.filter(|problem| problem.severity == Severity::Error);
            let errors = errors.map(|problem| notice(problem, &source_text));
            errors.collect()
        }
        CatalogError::Unreadable { source, .. } => {
            let remedy = format!("restore `{}`", path.display());
            vec![file_error(
                &format!("cannot read the file: {source}"),
                Some(&remedy),
            )]
        }
    }
}

fn notice(problem: &Problem, source: &Source) -> Notice {
    let position = source.position(problem.span.start);
    Notice {
        severity: problem.severity.as_str().to_owned(),
        line: Some(position.line),
        column: Some(position.column),
        message: problem.message.clone(),
        remedy: problem.remedy.clone(),
    }
}

/// Returns an error that concerns the whole file.
fn file_error(message: &str, remedy: Option<&str>) -> Notice {
    Notice {
        severity: Severity::Error.as_str().to_owned(),
        line: None,
        column: None,
        message: message.to_owned(),
        remedy: remedy.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_config::keys::GATEWAY;

    /// Every key of `[gateway]` takes effect either at once or after a restart.
    #[test]
    fn every_key_is_compared() {
        let old = Catalog::default().gateway;
        let mut new = old.clone();
        assert!(changed(&at_once(&old, &new)).is_empty());
        new.listen = ListenAddress::from(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
        new.separator = String::from(".");
        let (at_once, at_next_start) = (at_once(&old, &new), at_next_start(&old, &new));
        assert_eq!(changed(&at_once), ["separator"]);
        assert_eq!(changed(&at_next_start), ["listen"]);
        let keys = at_once.iter().chain(&at_next_start).map(|(key, _)| *key);
        let is_compared = |name: &str| keys.clone().any(|key| key == name);
        for key in GATEWAY.iter().filter(|key| key.name != "tls_key") {
            assert!(is_compared(key.name), "{}", key.name);
        }
    }

    /// A changed file is reloaded at once, a missing file after a while.
    #[test]
    fn changes_of_the_file() {
        let digest = |text: &str| ConfigDigest::of(&Source::new("x", text));
        let (old, new) = (digest("old"), digest("new"));
        let short = Duration::from_millis(1);
        for (last, now, missing, expected) in [
            (Some(&old), Some(&old), Duration::ZERO, false),
            (Some(&old), Some(&new), Duration::ZERO, true),
            (Some(&old), None, short, false),
            (Some(&old), None, MISSING, true),
            (None, None, MISSING, false),
            (None, Some(&old), Duration::ZERO, true),
        ] {
            assert_eq!(
                must_reload(last, now, missing),
                expected,
                "{last:?} {now:?}"
            );
        }
    }
}
