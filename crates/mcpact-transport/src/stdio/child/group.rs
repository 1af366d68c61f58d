//! The process group of a child.

use std::io;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process, waitid,
};

use super::family::{Family, Found, Kinship};

/// How often new relatives are looked for before everybody is killed; each search stops those it finds,
/// so that a second one finds nobody unless a process was just being started.
pub(super) const SEARCHES: usize = 8;

/// The group that a child leads.
///
/// The number of a group stays ours as long as its leader has not been reaped, so signals are sent only
/// until then, and what is left of the group is killed before the leader is reaped.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    members: Mutex<Members>,
}

#[derive(Debug)]
struct Members {
    /// Gone once reaped.
    leader: Option<tokio::process::Child>,
    family: Family,
}

impl Group {
    /// The group of a child that was started as the leader of its own.
    pub(super) fn of(leader: tokio::process::Child) -> io::Result<Self> {
        let id = leader
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let members = Mutex::new(Members {
            leader: Some(leader),
            family: Family::default(),
        });
        Ok(Self { id, members })
    }

    /// The number of the group and of its leader.
    pub(super) fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks every member to end.
    pub(super) fn terminate(&self) {
        self.lock().signal(self.id, Signal::TERM);
    }

    /// Ends every member.
    pub(super) fn kill(&self) {
        self.lock().kill(self.id);
    }

    /// Notes who belongs to it, while the parents that show it are alive.
    pub(super) fn note_family(&self) {
        let mut members = self.lock();
        if members.leader.is_some() {
            members.family.find(Kinship::Group(self.id));
        }
    }

    /// What the leader is doing.
    pub(super) fn leader(&self) -> Leader {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.id), options) {
                Err(Errno::INTR) => {}
                Ok(None) => return Leader::Runs,
                Ok(Some(_)) => return Leader::HasExited,
                Err(_) => return Leader::IsLost,
            }
        }
    }

    /// Kills what is left of the group and reaps the leader, which has exited.
    pub(super) fn reap(&self) -> io::Result<Option<ExitStatus>> {
        let mut members = self.lock();
        members.kill(self.id);
        let leader = members.leader.take();
        members.family = Family::default();
        drop(members);
        leader.map_or(Ok(None), |mut leader| leader.try_wait())
    }

    /// Gives up a leader that somebody else has reaped: its number is not ours any more.
    pub(super) fn give_up(&self) {
        let mut members = self.lock();
        members.family.signal(Signal::KILL);
        members.family = Family::default();
        members.leader = None;
    }
}

/// What a leader is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader {
    /// It runs.
    Runs,
    /// It has exited and waits to be reaped.
    HasExited,
    /// Somebody else has reaped it.
    IsLost,
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
        // Who is stopped can start nobody new.
        self.signal(group, Signal::STOP);
        for _ in 0..SEARCHES {
            if self.family.find(Kinship::Group(group)) == Found::Nobody {
                break;
            }
            self.family.signal(Signal::STOP);
        }
        self.signal(group, Signal::KILL);
        self.family.signal(Signal::KILL);
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

/// Whether there is such a process, whoever owns it.
#[must_use]
pub fn is_running(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}
