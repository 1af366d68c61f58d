//! Logging to stderr: on a terminal one line per state change, or text with `-v`; otherwise JSON.

mod quiet;

use std::fmt::Debug;
use std::io::IsTerminal;

use clap::ValueEnum as _;
use mcpact::log::{self, NEGOTIATION};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::{Layer, fmt};

use self::quiet::QuietLayer;
use super::layout::in_one_line;
use super::style::is_coloured;
use crate::args::LogFormat;
use crate::error::CliError;

/// Variable with the filter, if `--log` is not given.
pub(crate) const FILTER_VAR: &str = "MCPACT_LOG";

/// Variable with the format, if `--log-format` is not given.
pub(crate) const FORMAT_VAR: &str = "MCPACT_LOG_FORMAT";

/// Default level.
const DEFAULT_LEVEL: LevelFilter = LevelFilter::WARN;

/// Returns the log format: from the flag, else from the variable, else by the type of stderr.
///
/// # Errors
/// The variable has an unknown format.
pub(crate) fn format(
    flag: Option<LogFormat>,
    variable: Option<&str>,
) -> Result<LogFormat, CliError> {
    if let Some(flag) = flag {
        return Ok(flag);
    }
    match variable.filter(|text| !text.is_empty()) {
        Some(text) => LogFormat::from_str(text, true).map_err(|_| CliError::LogFormat {
            given: text.to_owned(),
        }),
        None if std::io::stderr().is_terminal() => Ok(LogFormat::Text),
        None => Ok(LogFormat::Json),
    }
}

/// Initializes logging. The flag takes precedence over the variable.
///
/// # Errors
/// The filter is invalid.
pub(crate) fn init(
    flag: Option<&str>,
    variable: Option<&str>,
    verbose: u8,
    format: LogFormat,
) -> Result<(), CliError> {
    let is_default = flag.is_none() && variable.is_none_or(str::is_empty) && verbose == 0;
    let targets = targets(flag, variable, verbose)?;
    let targets = EventFilter {
        targets,
        is_default,
        shows_starts: is_default && format == LogFormat::Text,
    };
    let layer: Box<dyn Layer<_> + Send + Sync> = match format {
        LogFormat::Text if is_default => events_only(QuietLayer::new(), targets),
        LogFormat::Text => {
            let text = fmt::layer().with_writer(std::io::stderr);
            let text = text.with_ansi(is_coloured(&std::io::stderr()));
            events_only(text.fmt_fields(debug_fn(field).delimited(" ")), targets)
        }
        LogFormat::Json => {
            let json = fmt::layer().json().flatten_event(true);
            events_only(
                json.with_current_span(false)
                    .with_span_list(false)
                    .with_writer(std::io::stderr),
                targets,
            )
        }
    };
    // Fails only if logging is already initialized.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
    Ok(())
}

/// Formats a field in one line and escapes control characters, because it may contain text of a peer.
fn field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let text = in_one_line(&format!("{value:?}"));
    match (field.name(), out.has_ansi_escapes()) {
        ("message", _) => out.write_str(&text),
        (name, true) => write!(out, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{text}"),
        (name, false) => write!(out, "{name}={text}"),
    }
}

/// Filters out spans; events repeat their fields.
fn events_only<S>(
    layer: impl Layer<S> + Send + Sync,
    filter: EventFilter,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    layer.with_filter(filter).boxed()
}

/// Selects the events to log.
#[derive(Debug)]
struct EventFilter {
    targets: Targets,
    /// No filter is given.
    is_default: bool,
    /// Starts of servers are logged, too.
    shows_starts: bool,
}

/// Target of the events of server instances.
const INSTANCES: &str = "mcpact_gateway::supervisor::events";

impl EventFilter {
    fn admits(&self, metadata: &Metadata<'_>) -> bool {
        let is_start = || {
            self.shows_starts && metadata.target() == INSTANCES && *metadata.level() <= Level::INFO
        };
        !metadata.is_span()
            && (self
                .targets
                .would_enable(metadata.target(), metadata.level())
                || is_start())
    }
}

impl<S> Filter<S> for EventFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.admits(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.admits(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    /// The failed start of a server is logged with its cause; its negotiation is a detail.
    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let mut refusal = Refusal::default();
        if self.is_default && event.metadata().target() == NEGOTIATION {
            event.record(&mut refusal);
        }
        !(refusal.is_of_client && refusal.is_refused)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let levels = self.targets.iter().map(|(_, level)| level);
        let starts = self.shows_starts.then_some(LevelFilter::INFO);
        let highest = levels.chain(self.targets.default_level()).chain(starts);
        Some(highest.max().unwrap_or(LevelFilter::OFF))
    }
}

/// Side and outcome of a negotiation.
#[derive(Debug, Default)]
struct Refusal {
    is_of_client: bool,
    is_refused: bool,
}

impl Visit for Refusal {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.is_of_client |= field.name() == log::field::SIDE && value == "client";
        self.is_refused |= field.name() == log::field::OUTCOME && value == "refused";
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn targets(flag: Option<&str>, variable: Option<&str>, verbose: u8) -> Result<Targets, CliError> {
    let level = match verbose {
        0 => DEFAULT_LEVEL,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let variable = variable.filter(|text| verbose == 0 && !text.is_empty());
    match flag.or(variable) {
        None => Ok(Targets::new().with_default(level)),
        Some(text) => text.parse().map_err(|source| CliError::LogFilter {
            given: text.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enables(targets: &Targets, target: &str, level: tracing::Level) -> bool {
        targets.would_enable(target, &level)
    }

    #[test]
    fn format_flag_overrides_variable() {
        let (text, json) = (LogFormat::Text, LogFormat::Json);
        assert_eq!(format(Some(text), Some("json")).unwrap(), text);
        assert_eq!(format(None, Some("json")).unwrap(), json);
        assert_eq!(format(None, Some("TEXT")).unwrap(), text);
        assert!(format(None, Some("xml")).is_err());
    }

    #[test]
    fn filter_flag_overrides_variable() {
        use tracing::Level;
        let default = targets(None, None, 0).unwrap();
        assert!(enables(&default, "x", Level::WARN) && !enables(&default, "x", Level::INFO));
        let variable = targets(None, Some("off,mcpact::negotiation=debug"), 0).unwrap();
        assert!(enables(&variable, "mcpact::negotiation", Level::DEBUG));
        assert!(!enables(&variable, "mcpact::server", Level::ERROR));
        let flag = targets(Some("trace"), Some("off"), 0).unwrap();
        assert!(enables(&flag, "x", Level::TRACE));
        let verbose = targets(None, Some("off"), 1).unwrap();
        assert!(enables(&verbose, "x", Level::INFO) && !enables(&verbose, "x", Level::DEBUG));
        assert!(targets(Some("mcpact=loud"), None, 0).is_err());
    }
}
