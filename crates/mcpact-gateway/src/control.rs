//! How other programs of the same user talk to a gateway that runs: `mcpact status`, `logs`, `reload`
//! and `approve --tools`.
//!
//! One request is one line of JSON on a private Unix socket, and so is each line of the answer: one for each
//! entry of [`Request::Logs`], and one for everything else. The gateway hangs up after the last one. The types are what both sides read and write; `run` moves them.

mod answer;
mod bundle;
mod place;
mod request;
#[cfg(unix)]
mod run;
mod status;

pub use self::answer::{AgreedTools, Answer, Fault, LogLine, Notice, ReloadReport};
pub use self::bundle::{Attempt, Bundle, Step};
pub use self::place::{folder, own_socket};
pub use self::request::{MOST_LINES, Request};
#[cfg(unix)]
pub use self::run::{Control, ControlError, Conversation};
pub use self::status::{
    GatewayStatus, InstanceLine, LastError, Lists, ServerLine, Status, Transport,
};
