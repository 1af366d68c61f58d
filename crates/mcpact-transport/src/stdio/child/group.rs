//! The process group of a child.

use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::process_tree::{Found, ProcessTree, TreeRoot};
use crate::lock;

/// Maximum number of searches for new processes before a kill. Each search stops the processes it finds, so a second
/// search finds none unless a process was just being started.
pub(super) const SEARCHES: usize = 8;

/// The process group that a child leads.
///
/// The group id stays valid until the leader is reaped. Signals are sent only until then, and the rest of the group is
/// killed before the leader is reaped.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    members: Mutex<Members>,
}

#[derive(Debug)]
struct Members {
    /// `None` after it was reaped.
    leader: Option<tokio::process::Child>,
    process_tree: ProcessTree,
}

impl Group {
    /// Creates the group of a child that was started as group leader.
    pub(super) fn of(leader: tokio::process::Child) -> io::Result<Self> {
        let id = leader
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let members = Mutex::new(Members {
            leader: Some(leader),
            process_tree: ProcessTree::default(),
        });
        Ok(Self { id, members })
    }

    /// Returns the id of the group and of its leader.
    pub(super) fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends `SIGTERM` to every member.
    pub(super) fn terminate(&self) {
        lock(&self.members).signal(self.id, Signal::TERM);
    }

    /// Kills every member.
    pub(super) fn kill(&self) {
        lock(&self.members).kill(self.id);
    }

    /// Records the members while the parents that connect them are alive.
    pub(super) fn record_tree(&self) {
        let mut members = lock(&self.members);
        if members.leader.is_some() {
            members.process_tree.find(TreeRoot::Group(self.id));
        }
    }

    /// Returns the state of the leader.
    pub(super) fn leader(&self) -> Leader {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.id), options) {
                Err(Errno::INTR) => {}
                Ok(None) => return Leader::Running,
                Ok(Some(_)) => return Leader::Exited,
                Err(_) => return Leader::Lost,
            }
        }
    }

    /// Kills the rest of the group and reaps the leader, which has exited.
    pub(super) fn reap(&self) -> io::Result<Option<ExitStatus>> {
        let mut members = lock(&self.members);
        members.kill(self.id);
        let leader = members.leader.take();
        members.process_tree = ProcessTree::default();
        drop(members);
        leader.map_or(Ok(None), |mut leader| leader.try_wait())
    }

    /// Drops a leader that was reaped elsewhere: its id may belong to another process.
    pub(super) fn forget_leader(&self) {
        let mut members = lock(&self.members);
        members.process_tree.signal(Signal::KILL);
        members.process_tree = ProcessTree::default();
        members.leader = None;
    }
}

/// State of a group leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader {
    /// Running.
    Running,
    /// Exited and not reaped yet.
    Exited,
    /// Reaped elsewhere.
    Lost,
}

impl Members {
    fn signal(&self, group: Pid, signal: Signal) {
        if self.leader.is_some()
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!(%error, ?signal, ?group, "the group cannot be signalled");
        }
    }

    fn kill(&mut self, group: Pid) {
        if self.leader.is_none() {
            return;
        }
        // A stopped process cannot start another one.
        self.signal(group, Signal::STOP);
        for _ in 0..SEARCHES {
            if self.process_tree.find(TreeRoot::Group(group)) == Found::Nothing {
                break;
            }
            self.process_tree.signal(Signal::STOP);
        }
        self.signal(group, Signal::KILL);
        self.process_tree.signal(Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let id = self.id;
        self.members
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .kill(id);
    }
}
