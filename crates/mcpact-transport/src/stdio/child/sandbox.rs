//! Sandbox of a child: Landlock limits files and TCP ports, seccomp limits sockets.
//!
//! The guard starts the child from a thread that restricts itself first. The guard stays outside: it can stop every
//! descendant, and the child cannot trace it. Signals to processes outside are denied from Landlock ABI 6 on.

#[cfg(target_os = "linux")]
mod enforce;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod syscalls;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
pub(super) use enforce::spawn;

mcpact_spec::stable_strings! {
    /// Level of a sandbox: `sandbox` in the config.
    #[derive(Default)]
    pub enum SandboxLevel {
        /// No sandbox.
        #[default]
        Off = "off",
        /// Limits files and Unix sockets.
        Standard = "standard",
        /// Also limits the network.
        Strict = "strict",
    }
}

impl SandboxLevel {
    /// Parses a level.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|level| level.as_str() == name)
    }

    /// Returns the reason why this system cannot enforce the level.
    #[must_use]
    pub fn problem(self) -> Option<SandboxProblem> {
        match self {
            Self::Off => None,
            Self::Standard | Self::Strict => SandboxSupport::current().problem(self),
        }
    }

    /// Describes the level on this system, such as `standard (landlock 7)`.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Off => String::from(self.as_str()),
            Self::Standard | Self::Strict => SandboxSupport::current().describe(self),
        }
    }

    /// Returns the Landlock ABI that the level needs: 3 covers truncation, 4 covers TCP.
    const fn landlock(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Standard => 3,
            Self::Strict => 4,
        }
    }
}

/// Sandbox of a child and its exceptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Level.
    pub level: SandboxLevel,
    /// Configured working directory; readable unless it contains the home directory.
    pub folder: Option<PathBuf>,
    /// Additional readable files and directories.
    pub read: Vec<PathBuf>,
    /// Additional writable files and directories.
    pub write: Vec<PathBuf>,
    /// TCP ports that [`SandboxLevel::Strict`] allows connections to.
    pub ports: Vec<u16>,
}

/// Landlock ABI that denies signals to processes outside the sandbox (Linux 6.12).
const SIGNALS: u32 = 6;

/// Option of the guard command for [`Sandbox::level`].
const LEVEL: &str = "--sandbox";
/// Option of the guard command for [`Sandbox::folder`].
const FOLDER: &str = "--folder";
/// Option of the guard command for [`Sandbox::read`].
const ALLOW_READ: &str = "--allow-read";
/// Option of the guard command for [`Sandbox::write`].
const ALLOW_WRITE: &str = "--allow-write";
/// Option of the guard command for [`Sandbox::ports`].
const ALLOW_PORT: &str = "--allow-port";

impl Sandbox {
    /// Returns the options for the guard command; none without a sandbox.
    #[must_use]
    pub fn args(&self) -> Vec<OsString> {
        if self.level == SandboxLevel::Off {
            return Vec::new();
        }
        let mut args = vec![LEVEL.into(), self.level.as_str().into()];
        let folder = self.folder.iter().map(|path| (FOLDER, path));
        let read = self.read.iter().map(|path| (ALLOW_READ, path));
        let write = self.write.iter().map(|path| (ALLOW_WRITE, path));
        for (option, path) in folder.chain(read).chain(write) {
            args.extend([option.into(), path.clone().into_os_string()]);
        }
        for port in &self.ports {
            args.extend([ALLOW_PORT.into(), port.to_string().into()]);
        }
        args
    }
}

/// Reason why this system cannot enforce a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxProblem {
    /// The system is not Linux.
    #[error("sandboxes work only on Linux")]
    Platform,
    /// The kernel has no Landlock.
    #[error("the kernel has no Landlock, or it is disabled")]
    NoLandlock,
    /// The Landlock of the kernel is too old.
    #[error("the level needs Landlock ABI {needed}, but the kernel has {found}")]
    OldLandlock {
        /// ABI of the kernel.
        found: u32,
        /// Needed ABI.
        needed: u32,
    },
    /// The kernel has no seccomp filters, or the processor architecture is unknown.
    #[error("the kernel has no seccomp filters for this processor")]
    NoSeccomp,
}

impl SandboxProblem {
    /// Returns the hint for the user.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Platform => "set `sandbox = \"off\"`, or run the gateway on Linux",
            Self::NoLandlock => {
                "boot a kernel with Landlock in its `lsm=` list, allow its system calls in the container, or set \
                 `sandbox = \"off\"`"
            }
            Self::OldLandlock { .. } => {
                "use Linux 6.7 or later (6.2 for `standard`), or set `sandbox = \"off\"`"
            }
            Self::NoSeccomp => {
                "use a kernel with CONFIG_SECCOMP_FILTER, or set `sandbox = \"off\"`"
            }
        }
    }
}

/// Sandbox features of the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SandboxSupport {
    /// Runs on Linux.
    is_linux: bool,
    /// Landlock ABI; 0 if there is none.
    landlock: u32,
    /// Has seccomp filters.
    has_seccomp: bool,
}

impl SandboxSupport {
    /// Returns the features of this system, found once.
    fn current() -> Self {
        static FOUND: OnceLock<SandboxSupport> = OnceLock::new();
        *FOUND.get_or_init(|| Self {
            is_linux: cfg!(target_os = "linux"),
            #[cfg(target_os = "linux")]
            landlock: enforce::landlock_abi(),
            #[cfg(not(target_os = "linux"))]
            landlock: 0,
            #[cfg(target_os = "linux")]
            has_seccomp: syscalls::is_supported(),
            #[cfg(not(target_os = "linux"))]
            has_seccomp: false,
        })
    }

    /// Returns the reason why a level cannot be enforced.
    fn problem(self, level: SandboxLevel) -> Option<SandboxProblem> {
        let needed = level.landlock();
        match self {
            Self {
                is_linux: false, ..
            } => Some(SandboxProblem::Platform),
            Self { landlock: 0, .. } => Some(SandboxProblem::NoLandlock),
            Self { landlock, .. } if landlock < needed => Some(SandboxProblem::OldLandlock {
                found: landlock,
                needed,
            }),
            Self {
                has_seccomp: false, ..
            } => Some(SandboxProblem::NoSeccomp),
            _ => None,
        }
    }

    /// Describes a level on this system.
    fn describe(self, level: SandboxLevel) -> String {
        match self.problem(level) {
            Some(problem) => format!("{} not available: {problem}", level.as_str()),
            None => {
                let missing = match self.landlock < SIGNALS {
                    true => "; can send signals to your other processes",
                    false => "",
                };
                format!("{} (landlock {}{missing})", level.as_str(), self.landlock)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_that_the_kernel_cannot_enforce_is_refused() {
        use SandboxLevel::{Standard, Strict};
        let support = |landlock, has_seccomp| SandboxSupport {
            is_linux: true,
            landlock,
            has_seccomp,
        };
        let elsewhere = SandboxSupport {
            is_linux: false,
            ..support(7, true)
        };
        let old = |found, needed| Some(SandboxProblem::OldLandlock { found, needed });
        for (support, level, expected) in [
            (elsewhere, Standard, Some(SandboxProblem::Platform)),
            (support(0, true), Standard, Some(SandboxProblem::NoLandlock)),
            (support(2, true), Standard, old(2, 3)),
            (support(3, true), Standard, None),
            (support(3, true), Strict, old(3, 4)),
            (support(4, true), Strict, None),
            (support(7, false), Standard, Some(SandboxProblem::NoSeccomp)),
            (support(7, false), Strict, Some(SandboxProblem::NoSeccomp)),
        ] {
            assert_eq!(support.problem(level), expected, "{support:?} {level:?}");
        }
        assert_eq!(support(6, true).describe(Standard), "standard (landlock 6)");
        assert_eq!(
            support(5, true).describe(Strict),
            "strict (landlock 5; can send signals to your other processes)"
        );
        assert_eq!(
            support(3, true).describe(Strict),
            "strict not available: the level needs Landlock ABI 4, but the kernel has 3"
        );
    }
}
