//! Processes with a mark in their environment, anywhere in the process tree.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable of every server and its child processes.
pub(super) const MARK: &str = "MCPACT_CROWD";
/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The processes of one run.
pub(super) struct Marked {
    pub(super) value: String,
}

impl Marked {
    pub(super) fn new() -> Self {
        let value = std::process::id().to_string();
        Self { value }
    }

    /// Command lines of the running ones.
    pub(super) fn running(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.value);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let carries = |path: &std::path::Path| {
            let variables = fs::read(path.join("environ")).unwrap_or_default();
            variables
                .split(|byte| *byte == 0)
                .any(|one| one == mark.as_bytes())
        };
        let paths = entries
            .map(|entry| entry.path())
            .filter(|path| carries(path));
        paths
            .filter_map(|path| fs::read(path.join("cmdline")).ok())
            .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
            .collect()
    }

    /// Returns a finding if some still run after this time.
    pub(super) fn gone_within(&self, limit: Duration, trouble: &str) -> Option<String> {
        let start = Instant::now();
        loop {
            let running = self.running();
            if running.is_empty() {
                return None;
            }
            if start.elapsed() >= limit {
                return Some(format!("{trouble}: {}", running.join("; ")));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn marked_processes_are_found_until_they_have_ended() {
        let marked = Marked {
            value: format!("test-{}", std::process::id()),
        };
        assert_eq!(marked.gone_within(Duration::ZERO, "left"), None);
        let mut sleeper = Command::new("sleep");
        let mut child = sleeper.arg("600").env(MARK, &marked.value).spawn().unwrap();
        // A program has no variables yet in the moment in which it takes the place of its starter.
        let left = loop {
            if let Some(left) = marked.gone_within(Duration::ZERO, "left") {
                break left;
            }
        };
        assert!(left.contains("sleep 600"), "{left}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(marked.gone_within(Duration::ZERO, "left"), None);
    }
}
