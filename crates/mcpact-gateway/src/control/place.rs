//! Where the sockets of gateways are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder for the sockets of a user's gateways; none where a user has no place for such things.
#[must_use]
pub fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let place = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        // What is not absolute would be another folder for each program (XDG Base Directory, section 2).
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let state = || {
        let home = || Some(place("HOME")?.join(".local/state"));
        place("XDG_STATE_HOME").or_else(home)
    };
    Some(place("XDG_RUNTIME_DIR").or_else(state)?.join("mcpact"))
}

/// The socket of a gateway that is not told another one: several may run at a time.
#[must_use]
pub fn own_socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_folder_goes_before_the_state_folder() {
        let folder = |set: &[(&str, &str)]| {
            let set = set.to_vec();
            folder(move |name| {
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
            assert_eq!(folder(&set), expected.map(PathBuf::from), "{set:?}");
        }
    }
}
