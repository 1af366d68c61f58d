//! Descendants of a child, including those that left its group, for example through `setsid`.
//!
//! Linux only. A process that left the group and whose ancestors have all exited is not found, unless a
//! [guard](super::guard) has adopted it.

use rustix::process::Pid;
#[cfg(not(target_os = "linux"))]
use rustix::process::Signal;

/// The processes found so far.
#[derive(Debug, Default)]
pub(super) struct ProcessTree {
    #[cfg(target_os = "linux")]
    processes: std::collections::BTreeMap<i32, linux::TrackedProcess>,
}

#[cfg(not(target_os = "linux"))]
impl ProcessTree {
    pub(super) fn find(&mut self, _root: TreeRoot) -> Found {
        Found::Nothing
    }

    pub(super) fn signal(&self, _signal: Signal) {}
}

/// Starting point of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeRoot {
    /// The members of this group and their descendants.
    Group(Pid),
    /// The descendants of this process.
    #[cfg(target_os = "linux")]
    Parent(Pid),
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// At least one new process.
    New,
    /// No new process.
    Nothing,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::os::fd::OwnedFd;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Found, ProcessTree, TreeRoot};

    /// A process with a handle, because its id may be reused.
    #[derive(Debug)]
    pub(super) struct TrackedProcess {
        handle: OwnedFd,
        start: u64,
    }

    #[derive(Clone, Copy)]
    struct ProcessInfo {
        parent: i32,
        group: i32,
        /// Start time; the pair of process id and start time is unique.
        start: u64,
    }

    impl TreeRoot {
        fn matches(self, info: &ProcessInfo) -> bool {
            match self {
                Self::Group(group) => info.group == group.as_raw_nonzero().get(),
                Self::Parent(parent) => info.parent == parent.as_raw_nonzero().get(),
            }
        }
    }

    impl ProcessTree {
        /// Searches for processes and their descendants.
        pub(in super::super) fn find(&mut self, root: TreeRoot) -> Found {
            let all_processes = all_processes();
            let is_known = |id: &i32, info: &ProcessInfo| {
                self.processes
                    .get(id)
                    .is_some_and(|process| process.start == info.start)
            };
            let mut members: BTreeSet<i32> = all_processes
                .iter()
                .filter(|(id, info)| root.matches(info) || is_known(id, info))
                .map(|(id, _)| *id)
                .collect();
            loop {
                let is_new = |(id, info): &(&i32, &ProcessInfo)| {
                    members.contains(&info.parent) && !members.contains(*id)
                };
                let children: Vec<i32> = all_processes
                    .iter()
                    .filter(is_new)
                    .map(|(id, _)| *id)
                    .collect();
                if children.is_empty() {
                    break;
                }
                members.extend(children);
            }
            let found: Vec<(i32, TrackedProcess)> = all_processes
                .iter()
                .filter(|(id, info)| members.contains(id) && !is_known(id, info))
                .filter_map(|(id, info)| Some((*id, track(*id, info.start)?)))
                .collect();
            if found.is_empty() {
                return Found::Nothing;
            }
            self.processes.extend(found);
            Found::New
        }

        /// Signals every process found. The handles ensure that no other process is hit.
        pub(in super::super) fn signal(&self, signal: Signal) {
            for process in self.processes.values() {
                let _ = pidfd_send_signal(&process.handle, signal);
            }
        }
    }

    fn all_processes() -> BTreeMap<i32, ProcessInfo> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(|id| Some((id, info(id)?))).collect()
    }

    fn info(id: i32) -> Option<ProcessInfo> {
        let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        // The name is in parentheses and may itself contain parentheses.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let fields = str::from_utf8(stat.get(after_name..)?).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // proc_pid_stat(5): state is field 3, then parent and group; field 22 is the start time.
        Some(ProcessInfo {
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    fn track(id: i32, start: u64) -> Option<TrackedProcess> {
        let handle = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
        (info(id)?.start == start).then_some(TrackedProcess { handle, start })
    }
}
