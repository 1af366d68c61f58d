//! Control socket: `mcpact status`, `logs`, `reload` and `approve --tools` use it to reach a running gateway.
//!
//! A client sends one request as a line of JSON over a private Unix socket. The gateway replies with one line, or with one
//! line per entry to [`ControlRequest::Logs`], and closes the connection.

mod messages;
#[cfg(unix)]
mod socket;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use self::messages::{
    ApprovedTools, Attempt, Bundle, ClientLine, ControlFault, ControlReply, ControlRequest,
    GatewayStatus, InstanceLine, LastError, ListCounts, LogLine, MAX_LOG_LINES, Notice,
    ReloadReport, ServerLine, Status, Step, Transport,
};
#[cfg(unix)]
pub use self::socket::{Control, ControlClient, ControlError};

/// Returns the directory of the control sockets of a user; none if no suitable directory is set.
#[must_use]
pub fn socket_dir(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        // Relative paths are ignored (XDG Base Directory, section 2).
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let state = || {
        let home = || Some(absolute("HOME")?.join(".local/state"));
        absolute("XDG_STATE_HOME").or_else(home)
    };
    Some(absolute("XDG_RUNTIME_DIR").or_else(state)?.join("mcpact"))
}

/// Returns the default socket of a gateway process.
#[must_use]
pub fn socket_path(dir: &Path, pid: u32) -> PathBuf {
    dir.join(format!("{pid}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_directory_is_preferred_to_state_directory() {
        let dir = |set: &[(&str, &str)]| {
            let set = set.to_vec();
            socket_dir(move |name| {
                let found = set.iter().find(|(of, _)| *of == name)?;
                Some(OsString::from(found.1))
            })
        };
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        let (state, home) = (("XDG_STATE_HOME", "/state"), ("HOME", "/home/x"));
        for (set, expected) in [
            (vec![home, state, runtime], Some("/run/user/7/mcpact")),
            (vec![home, state], Some("/state/mcpact")),
            (vec![home], Some("/home/x/.local/state/mcpact")),
            (
                vec![home, ("XDG_RUNTIME_DIR", "here")],
                Some("/home/x/.local/state/mcpact"),
            ),
            (vec![], None),
        ] {
            assert_eq!(dir(&set), expected.map(PathBuf::from), "{set:?}");
        }
    }
}
