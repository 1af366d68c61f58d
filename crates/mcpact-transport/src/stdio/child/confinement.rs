//! What a child and its descendants may not have.

use std::ffi::OsString;

/// The option of a guard for [`Confinement::no_new_privileges`].
const NO_NEW_PRIVILEGES: &str = "--no-new-privileges";
/// The option of a guard for [`Confinement::open_files`].
const OPEN_FILES: &str = "--open-files";
/// The option of a guard for [`Confinement::memory`].
const MEMORY: &str = "--memory";

/// How a guard confines its child. Everything that the child starts is confined in the same way, and can
/// change nothing about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Whether it can get no rights that it does not have, by setuid programs for example.
    pub no_new_privileges: bool,
    /// How many files each process may have open.
    pub open_files: Option<u64>,
    /// How many bytes of address space each process may have.
    pub memory: Option<u64>,
}

impl Confinement {
    /// As the guard is told of it.
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

    /// Confines the thread that calls this, and every process that it starts from here on.
    ///
    /// # Errors
    /// The system refuses; then nothing must be started.
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
            // Nobody may raise what was lower before.
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
