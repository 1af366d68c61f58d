//! Everybody a child has started, also who has left its group, for example by `setsid`.
//!
//! Found on Linux only. One whose parents have all exited and who has left the group is nobody's relative
//! any more and is not found, unless a [guard](super::guard) has adopted it.

use rustix::process::Pid;
#[cfg(not(target_os = "linux"))]
use rustix::process::Signal;

/// The relatives that were found so far.
#[derive(Debug, Default)]
pub(super) struct Family {
    #[cfg(target_os = "linux")]
    relatives: std::collections::BTreeMap<i32, linux::Relative>,
}

#[cfg(not(target_os = "linux"))]
impl Family {
    pub(super) fn find(&mut self, _kin: Kinship) -> Found {
        Found::Nobody
    }

    pub(super) fn signal(&self, _signal: Signal) {}
}

/// Whose relatives are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinship {
    /// The members of this group, and their descendants.
    Group(Pid),
    /// The descendants of this process.
    #[cfg(target_os = "linux")]
    Parent(Pid),
}

/// What a search gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// At least one relative that was not known.
    Somebody,
    /// None.
    Nobody,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::os::fd::OwnedFd;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Family, Found, Kinship};

    /// A process held by more than its number, which may belong to another one by now.
    #[derive(Debug)]
    pub(super) struct Relative {
        handle: OwnedFd,
        start: u64,
    }

    #[derive(Clone, Copy)]
    struct Kin {
        parent: i32,
        group: i32,
        /// When it started; together with its number, no two processes share it.
        start: u64,
    }

    impl Kinship {
        fn begins_with(self, kin: &Kin) -> bool {
            match self {
                Self::Group(group) => kin.group == group.as_raw_nonzero().get(),
                Self::Parent(parent) => kin.parent == parent.as_raw_nonzero().get(),
            }
        }
    }

    impl Family {
        /// Looks for relatives and their descendants.
        pub(in super::super) fn find(&mut self, kinship: Kinship) -> Found {
            let everybody = everybody();
            let is_known = |id: &i32, kin: &Kin| {
                self.relatives
                    .get(id)
                    .is_some_and(|relative| relative.start == kin.start)
            };
            let mut members: BTreeSet<i32> = everybody
                .iter()
                .filter(|(id, kin)| kinship.begins_with(kin) || is_known(id, kin))
                .map(|(id, _)| *id)
                .collect();
            loop {
                let is_new = |(id, kin): &(&i32, &Kin)| {
                    members.contains(&kin.parent) && !members.contains(*id)
                };
                let children: Vec<i32> =
                    everybody.iter().filter(is_new).map(|(id, _)| *id).collect();
                if children.is_empty() {
                    break;
                }
                members.extend(children);
            }
            let found: Vec<(i32, Relative)> = everybody
                .iter()
                .filter(|(id, kin)| members.contains(id) && !is_known(id, kin))
                .filter_map(|(id, kin)| Some((*id, hold(*id, kin.start)?)))
                .collect();
            if found.is_empty() {
                return Found::Nobody;
            }
            self.relatives.extend(found);
            Found::Somebody
        }

        /// Signals everybody that was found. One that is gone is no failure, and no other process can be
        /// hit in its place.
        pub(in super::super) fn signal(&self, signal: Signal) {
            for relative in self.relatives.values() {
                let _ = pidfd_send_signal(&relative.handle, signal);
            }
        }
    }

    fn everybody() -> BTreeMap<i32, Kin> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(|id| Some((id, kin(id)?))).collect()
    }

    fn kin(id: i32) -> Option<Kin> {
        let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
        // The name is in parentheses and may hold anything, also parentheses.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let fields = str::from_utf8(stat.get(after_name..)?).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // proc_pid_stat(5): the state is field 3, then parent, group and, as field 22, the start.
        Some(Kin {
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    fn hold(id: i32, start: u64) -> Option<Relative> {
        let handle = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
        (kin(id)?.start == start).then_some(Relative { handle, start })
    }
}
