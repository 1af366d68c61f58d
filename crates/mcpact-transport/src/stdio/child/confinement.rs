//! Resource limits and privileges of a child and its descendants.

use std::ffi::OsString;

/// Option of the guard command for [`Confinement::no_new_privileges`].
const NO_NEW_PRIVILEGES: &str = "--no-new-privileges";
/// Option of the guard command for [`Confinement::open_files`].
const OPEN_FILES: &str = "--open-files";
/// Option of the guard command for [`Confinement::memory`].
const MEMORY: &str = "--memory";

/// Limits that a guard sets for its child. Descendants inherit them and cannot lift them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Prevents the child from gaining privileges, for example through setuid programs.
    pub no_new_privileges: bool,
    /// Maximum number of open files per process.
    pub open_files: Option<u64>,
    /// Maximum bytes of address space per process.
    pub memory: Option<u64>,
}

impl Confinement {
    /// Returns the options for the guard command.
    #[must_use]
    pub fn args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        if self.no_new_privileges {
            args.push(OsString::from(NO_NEW_PRIVILEGES));
        }
        for (option, limit) in [(OPEN_FILES, self.open_files), (MEMORY, self.memory)] {
            if let Some(limit) = limit {
                args.extend([option.into(), limit.to_string().into()]);
            }
        }
        args
    }

    /// Applies the limits to the current thread and to every process it starts from now on.
    ///
    /// # Errors
    /// The system refuses; the child must not be started then.
    #[cfg(target_os = "linux")]
    pub(super) fn apply(&self) -> std::io::Result<()> {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        if self.no_new_privileges {
            rustix::thread::set_no_new_privs(true)?;
        }
        for (resource, limit) in [
            (Resource::Nofile, self.open_files),
            (Resource::As, self.memory),
        ] {
            let Some(limit) = limit else {
                continue;
            };
            // A lower limit that is already in force stays.
            let highest = getrlimit(resource).maximum;
            let limit = highest.map_or(limit, |highest| highest.min(limit));
            let new = Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            };
            setrlimit(resource, new)?;
        }
        Ok(())
    }
}
