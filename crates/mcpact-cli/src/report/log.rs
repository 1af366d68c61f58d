//! The log on standard error: text for a terminal, JSON for everything else.

use std::fmt::Debug;
use std::io::IsTerminal;

use clap::ValueEnum as _;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, fmt};

use super::page::in_one_line;
use super::style::Colour;
use crate::args::LogFormat;
use crate::error::CliError;

/// Where the filter is looked for when the command line has none.
pub(crate) const VARIABLE: &str = "MCPACT_LOG";

/// Where the format is looked for when the command line has none.
pub(crate) const FORMAT: &str = "MCPACT_LOG_FORMAT";

/// What is logged when nothing asks for more: what went wrong.
const USUAL: LevelFilter = LevelFilter::WARN;

/// How the log is written: as the command line says, else as the environment does, else as fits its reader.
///
/// # Errors
/// The environment names no format.
pub(crate) fn format(given: Option<LogFormat>, told: Option<&str>) -> Result<LogFormat, CliError> {
    if let Some(given) = given {
        return Ok(given);
    }
    match told.filter(|told| !told.is_empty()) {
        Some(told) => LogFormat::from_str(told, true).map_err(|_| CliError::LogFormat {
            given: told.to_owned(),
        }),
        None if std::io::stderr().is_terminal() => Ok(LogFormat::Text),
        None => Ok(LogFormat::Json),
    }
}

/// Begins to log. `filter` comes from the command line, `told` from the environment.
///
/// # Errors
/// The filter cannot be understood.
pub(crate) fn begin(
    filter: Option<&str>,
    told: Option<&str>,
    verbose: u8,
    format: LogFormat,
) -> Result<(), CliError> {
    let targets = targets(filter, told, verbose)?;
    let layer: Box<dyn Layer<_> + Send + Sync> = match format {
        LogFormat::Text => {
            let colour = Colour::for_stream(&std::io::stderr());
            let text = fmt::layer().with_writer(std::io::stderr);
            let text = text.with_ansi(colour == Colour::On);
            only(text.fmt_fields(debug_fn(field).delimited(" ")), targets)
        }
        LogFormat::Json => {
            let json = fmt::layer().json().flatten_event(true);
            only(
                json.with_current_span(false)
                    .with_span_list(false)
                    .with_writer(std::io::stderr),
                targets,
            )
        }
    };
    // Somebody who logs already goes on doing so.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
    Ok(())
}

/// A part of an entry, in one line and without anything that could drive a terminal: it may repeat what a peer said.
fn field(
    out: &mut Writer<'_>,
    field: &tracing::field::Field,
    value: &dyn Debug,
) -> std::fmt::Result {
    let text = in_one_line(&format!("{value:?}"));
    match (field.name(), out.has_ansi_escapes()) {
        ("message", _) => out.write_str(&text),
        (name, true) => write!(out, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{text}"),
        (name, false) => write!(out, "{name}={text}"),
    }
}

/// Events alone: they say everything that their spans say.
fn only<S>(layer: impl Layer<S> + Send + Sync, targets: Targets) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let levels = targets.iter().map(|(_, level)| level);
    let highest = levels.chain(targets.default_level()).max();
    let wanted = move |about: &tracing::Metadata<'_>| {
        !about.is_span() && targets.would_enable(about.target(), about.level())
    };
    let filter = filter_fn(wanted).with_max_level_hint(highest.unwrap_or(LevelFilter::OFF));
    layer.with_filter(filter).boxed()
}

fn targets(filter: Option<&str>, told: Option<&str>, verbose: u8) -> Result<Targets, CliError> {
    let level = match verbose {
        0 => USUAL,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let told = told.filter(|text| verbose == 0 && !text.is_empty());
    match filter.or(told) {
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

    /// The command line goes before the environment, and both before what fits the reader.
    #[test]
    fn the_nearest_format_holds() {
        let (text, json) = (LogFormat::Text, LogFormat::Json);
        assert_eq!(format(Some(text), Some("json")).unwrap(), text);
        assert_eq!(format(None, Some("json")).unwrap(), json);
        assert_eq!(format(None, Some("TEXT")).unwrap(), text);
        assert!(format(None, Some("xml")).is_err());
    }

    /// The command line goes before the environment, and a filter names targets and levels.
    #[test]
    fn the_nearest_filter_holds() {
        use tracing::Level;
        let usual = targets(None, None, 0).unwrap();
        assert!(enables(&usual, "x", Level::WARN) && !enables(&usual, "x", Level::INFO));
        let told = targets(None, Some("off,mcpact::negotiation=debug"), 0).unwrap();
        assert!(enables(&told, "mcpact::negotiation", Level::DEBUG));
        assert!(!enables(&told, "mcpact::server", Level::ERROR));
        let given = targets(Some("trace"), Some("off"), 0).unwrap();
        assert!(enables(&given, "x", Level::TRACE));
        let verbose = targets(None, Some("off"), 1).unwrap();
        assert!(enables(&verbose, "x", Level::INFO) && !enables(&verbose, "x", Level::DEBUG));
        assert!(targets(Some("mcpact=loud"), None, 0).is_err());
    }
}
