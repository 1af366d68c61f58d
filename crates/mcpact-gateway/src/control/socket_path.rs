//! Paths of control sockets.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
