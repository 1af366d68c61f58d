//! Control socket: `mcpact status`, `logs`, `reload` and `approve --tools` use it to reach a running gateway.
//!
//! A client sends one request as a line of JSON over a private Unix socket. The gateway replies with one line, or with one
//! line per entry to [`ControlRequest::Logs`], and closes the connection.

mod messages;
#[cfg(unix)]
mod socket;
mod socket_path;
mod status_report;

pub use self::messages::{
    ApprovedTools, ControlFault, ControlReply, ControlRequest, LogLine, MAX_LOG_LINES, Notice,
    ReloadReport,
};
#[cfg(unix)]
pub use self::socket::{Control, ControlClient, ControlError};
pub use self::socket_path::{socket_dir, socket_path};
pub use self::status_report::{
    Attempt, Bundle, GatewayStatus, InstanceLine, LastError, ListCounts, ServerLine, Status, Step,
    Transport,
};
