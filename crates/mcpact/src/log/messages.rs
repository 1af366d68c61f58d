//! Log messages of MCP servers in the local log.

use mcpact_spec::LogLevel;
use tracing::Level;

use super::{MESSAGES, sanitize};
use crate::model::LogMessage;

/// Maps an MCP level to a `tracing` level.
const fn local(level: LogLevel) -> Level {
    match level {
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Info | LogLevel::Notice => Level::INFO,
        LogLevel::Warning => Level::WARN,
        LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency => {
            Level::ERROR
        }
    }
}

/// Maps a `tracing` level to an MCP level.
pub(crate) const fn remote(level: Level) -> LogLevel {
    match level {
        Level::TRACE | Level::DEBUG => LogLevel::Debug,
        Level::INFO => LogLevel::Info,
        Level::WARN => LogLevel::Warning,
        Level::ERROR => LogLevel::Error,
    }
}

macro_rules! write_at {
    ($level:ident, $server:expr, $message:expr, $text:expr) => {
        tracing::event!(
            target: MESSAGES,
            Level::$level,
            server = $server,
            severity = $message.level.as_str(),
            logger = $message.logger.as_deref().map(sanitize),
            "{}",
            $text
        )
    };
}

/// Logs the content of `notifications/message`; unreadable messages are skipped.
pub(crate) fn write_message(server: &str, params: Option<&str>) {
    if !tracing::enabled!(target: MESSAGES, Level::ERROR) {
        return;
    }
    let Ok(message) = serde_json::from_str::<LogMessage>(params.unwrap_or("{}")) else {
        return;
    };
    let text = match message.data.as_str() {
        Some(text) => sanitize(text),
        None => sanitize(&message.data.to_string()),
    };
    match local(message.level) {
        Level::ERROR => write_at!(ERROR, server, message, text),
        Level::WARN => write_at!(WARN, server, message, text),
        Level::INFO => write_at!(INFO, server, message, text),
        Level::DEBUG => write_at!(DEBUG, server, message, text),
        Level::TRACE => write_at!(TRACE, server, message, text),
    }
}
