//! Log messages of MCP servers in the local log.

use mcpact_spec::LogLevel;
use tracing::Level;

use super::{MESSAGES, legible};
use crate::model::LogMessage;

/// The local level of a level of MCP.
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

/// The level of MCP of a local level.
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
            logger = $message.logger.as_deref().map(legible),
            "{}",
            $text
        )
    };
}

/// Writes down what a server says in `notifications/message`. What cannot be read is nothing to tell.
pub(crate) fn write_message(server: &str, params: Option<&str>) {
    if !tracing::enabled!(target: MESSAGES, Level::ERROR) {
        return;
    }
    let Ok(message) = serde_json::from_str::<LogMessage>(params.unwrap_or("{}")) else {
        return;
    };
    let text = match message.data.as_str() {
        Some(text) => legible(text),
        None => legible(&message.data.to_string()),
    };
    match local(message.level) {
        Level::ERROR => write_at!(ERROR, server, message, text),
        Level::WARN => write_at!(WARN, server, message, text),
        Level::INFO => write_at!(INFO, server, message, text),
        Level::DEBUG => write_at!(DEBUG, server, message, text),
        Level::TRACE => write_at!(TRACE, server, message, text),
    }
}
