//! Processes, seen from outside.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::RowError;

/// Timeout of any step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Polling interval.
const LOOK: Duration = Duration::from_millis(2);

/// Sends a signal; no effect if the process is gone.
pub(crate) fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, signal));
}

/// The state letter and the parent of a process.
fn stat(id: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
    let state = fields.next()?.to_owned();
    Some((state, fields.next()?.parse().ok()?))
}

/// Returns whether a process runs; zombies do not.
pub(crate) fn is_alive(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| !matches!(state.as_str(), "Z" | "X"))
}

/// Every process with its parent and whether it is a zombie.
fn all_processes() -> Vec<(u32, u32, bool)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| stat(id).map(|(state, parent)| (id, parent, state == "Z")))
        .collect()
}

/// All descendants of a process, zombies included.
pub(crate) fn descendants(id: u32) -> BTreeSet<u32> {
    let all = all_processes();
    let mut family = BTreeSet::new();
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|(child, parent, _)| {
                (*parent == id || family.contains(parent)) && !family.contains(child)
            })
            .map(|(child, ..)| *child)
            .collect();
        if more.is_empty() {
            return family;
        }
        family.extend(more);
    }
}

/// Processes with this text in their environment, anywhere in the tree.
pub(crate) fn marked(mark: &str) -> BTreeSet<u32> {
    let has_mark = |id: &u32| {
        let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let mut parts = variables.windows(mark.len());
        parts.any(|part| part == mark.as_bytes())
    };
    let all = all_processes().into_iter();
    all.map(|(id, ..)| id).filter(has_mark).collect()
}

/// A value in kibibytes of `/proc/ID/status`, in bytes.
pub(crate) fn memory(id: u32, key: &str) -> Result<u64, RowError> {
    let text = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let kibibytes = number.ok_or_else(|| RowError::stage(format!("process {id} has no {key}")))?;
    Ok(kibibytes * 1024)
}

/// Time that a process has spent on processors.
pub(crate) fn processor_time(id: u32) -> Result<Duration, RowError> {
    let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    // User and system time are the 14th and 15th field; the name is the second.
    let times = fields.split_ascii_whitespace().skip(11).take(2);
    let ticks: u64 = times.filter_map(|time| time.parse::<u64>().ok()).sum();
    let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    Ok(Duration::from_secs_f64(seconds))
}

/// Number of open files of a process.
pub(crate) fn files(id: u32) -> Result<usize, RowError> {
    Ok(fs::read_dir(format!("/proc/{id}/fd"))?.count())
}

/// Waits until something is so, and tells how long that took.
pub(crate) async fn until(
    what: &'static str,
    mut is_so: impl FnMut() -> bool,
) -> Result<Duration, RowError> {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > PATIENCE {
            return Err(RowError::Patience(what));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(begin.elapsed())
}
