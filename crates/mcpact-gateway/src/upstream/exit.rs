//! How the program behind a connection has ended, in words.

use std::process::ExitStatus;

/// What a shell adds to the number of a signal that has ended a program.
#[cfg(unix)]
const BY_SIGNAL: i32 = 128;

/// How a process has ended. A guard tells of a signal as a shell would: by a status beyond all others.
pub(super) fn in_words(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(number @ 1..=64) = status.code().map(|code| code - BY_SIGNAL) {
        use std::os::unix::process::ExitStatusExt as _;
        return format!("{status}, as after {}", ExitStatus::from_raw(number));
    }
    status.to_string()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_signal_is_told_whoever_tells_it() {
        let cells = [
            (0x0300, "exit status: 3"),
            (9, "signal: 9 (SIGKILL)"),
            (137 << 8, "exit status: 137, as after signal: 9 (SIGKILL)"),
            (0xff00, "exit status: 255"),
        ];
        for (raw, expected) in cells {
            assert_eq!(in_words(ExitStatus::from_raw(raw)), expected);
        }
    }
}
