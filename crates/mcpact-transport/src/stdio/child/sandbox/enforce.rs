//! Enforcement on Linux.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::paths::{Launch, Paths, shared_folders};
use super::{Sandbox, SandboxLevel, syscalls};

/// Variables that make package runners use only their caches; without a network, they would wait for it.
const OFFLINE: [(&str, &str); 2] = [("UV_OFFLINE", "1"), ("npm_config_offline", "true")];

/// No privileges of root.
const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Prefix of the names of private temporary directories; the process id of the guard follows.
const TEMPORARY: &str = "mcpact-sandbox-";

/// Returns the Landlock ABI of the kernel; 0 without Landlock.
pub(super) fn landlock_abi() -> u32 {
    // Only a ruleset in force reports the status, so that a thread restricts itself and ends.
    let probe = || {
        let ruleset = Ruleset::default().handle_access(AccessFs::MakeBlock)?;
        Ok::<_, RulesetError>(ruleset.create()?.restrict_self()?.landlock)
    };
    match std::thread::spawn(probe).join() {
        Ok(Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        })) => {
            let newer = kernel_abi.and_then(|abi| u32::try_from(abi).ok());
            newer.unwrap_or(effective_abi as u32)
        }
        Ok(_) | Err(_) => 0,
    }
}

/// A started child and its temporary directory.
pub(in crate::stdio::child) struct Sandboxed {
    /// Process.
    pub(in crate::stdio::child) child: Child,
    /// Temporary directory, removed on drop.
    _temporary: Temporary,
}

/// Starts the child in the sandbox.
///
/// # Errors
/// The kernel cannot enforce the level, or the program cannot be started.
pub(in crate::stdio::child) fn spawn(
    sandbox: &Sandbox,
    mut command: Command,
) -> io::Result<Sandboxed> {
    if let Some(problem) = sandbox.level.problem() {
        return Err(io::Error::other(problem));
    }
    let no_core = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, no_core)?;
    let temporary = Temporary::create(&std::env::temp_dir())?;
    command.env("TMPDIR", &temporary.path);
    if sandbox.level == SandboxLevel::Strict && sandbox.ports.is_empty() {
        let unset = OFFLINE
            .iter()
            .filter(|(name, _)| std::env::var_os(name).is_none());
        command.envs(unset.copied());
    }
    let args: Vec<OsString> = command.get_args().map(OsStr::to_owned).collect();
    let home = std::env::home_dir();
    let paths = Paths::of(
        sandbox,
        &Launch {
            program: command.get_program(),
            args: &args,
            path: std::env::var_os("PATH").unwrap_or_default(),
            shared: shared_folders(home.as_deref()),
            home,
            cwd: std::env::current_dir()?,
        },
        &temporary.path,
    );
    let start = || {
        restrict(sandbox, &paths).map_err(io::Error::other)?;
        // Those of root reach the memory of other processes, and files of other users.
        set_capabilities(None, NO_CAPABILITIES)?;
        syscalls::restrict(sandbox.level).map_err(io::Error::other)?;
        command.spawn()
    };
    let child = std::thread::scope(|scope| scope.spawn(start).join());
    let child = child.unwrap_or_else(|_| Err(io::Error::other("the sandbox failed")))?;
    Ok(Sandboxed {
        child,
        _temporary: temporary,
    })
}

/// Limits files and ports of the calling thread and the processes it starts.
fn restrict(sandbox: &Sandbox, paths: &Paths) -> Result<(), RestrictError> {
    let read = AccessFs::from_read(ABI::V3);
    let write = AccessFs::from_all(ABI::V3) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let is_strict = sandbox.level == SandboxLevel::Strict;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?;
    if is_strict {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    // Newer kernels also limit devices, signals and abstract sockets.
    let mut ruleset = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rules(path_beneath_rules(&paths.read, read))?
        .add_rules(path_beneath_rules(&paths.write, write))?;
    if is_strict {
        for port in &sandbox.ports {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    let status = ruleset.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(RestrictError::NotEnforced);
    }
    Ok(())
}

/// Failure of Landlock.
#[derive(Debug, thiserror::Error)]
enum RestrictError {
    #[error("the kernel rejects the Landlock rules: {0}")]
    Rules(#[from] RulesetError),
    #[error("the kernel does not enforce the Landlock rules")]
    NotEnforced,
}

/// Private temporary directory, removed on drop.
struct Temporary {
    path: PathBuf,
    /// Locked as long as the guard runs. Its process id does not show that: it may be one of another namespace.
    _lock: File,
}

impl Temporary {
    fn create(parent: &Path) -> io::Result<Self> {
        /// Names to try; others may belong to guards with the same process id in another namespace.
        const ATTEMPTS: u32 = 100;
        remove_stale(parent);
        let own = std::process::id();
        for attempt in 0..ATTEMPTS {
            let path = parent.join(format!("{TEMPORARY}{own}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            // Until it is locked, another guard may remove it.
            if let Some(lock) = locked(&path)
                && is_at(&lock, &path)
            {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The child may have made it unreadable; the user can remove it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks a directory; `None` if it is locked, or no directory of this user.
fn locked(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW);
    let folder = options.open(path).ok()?;
    folder.try_lock().is_ok().then_some(folder)
}

/// Returns whether a path still leads to an open directory.
fn is_at(folder: &File, path: &Path) -> bool {
    let node = |found: io::Result<fs::Metadata>| found.ok().map(|found| found.ino());
    let open = node(folder.metadata());
    open.is_some() && open == node(fs::symlink_metadata(path))
}

/// Removes the temporary directories of guards that were killed.
fn remove_stale(parent: &Path) {
    /// Directories to remove per start.
    const MOST: usize = 16;
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let stale = entries.filter_map(|entry| {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY));
        let id: u32 = id?.split('-').next()?.parse().ok()?;
        let path = entry.path();
        if Path::new(&format!("/proc/{id}")).exists() {
            return None;
        }
        Some((locked(&path)?, path))
    });
    for (_lock, path) in stale.take(MOST) {
        // Those of other users stay.
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process ids of guards in another namespace are unknown here.
    #[test]
    fn temporary_directory_of_a_running_guard_stays() {
        let parent = tempfile::tempdir().unwrap();
        // Above the maximum of process ids.
        let [running, killed] = [1, 2].map(|at| {
            let path = parent.path().join(format!("{TEMPORARY}4194999-{at}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "").unwrap();
            path
        });
        let lock = locked(&running).unwrap();
        let own = Temporary::create(parent.path()).unwrap();
        let other = Temporary::create(parent.path()).unwrap();
        assert_ne!(own.path, other.path);
        assert!(running.join("file").exists());
        assert!(!killed.exists());
        drop(lock);
        drop(own);
        remove_stale(parent.path());
        assert!(!running.exists());
        assert!(other.path.exists());
    }
}
