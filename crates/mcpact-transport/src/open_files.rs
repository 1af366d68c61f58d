//! Limit of open files.

/// Open files kept free for servers, the config and the log.
const RESERVE: usize = 1024;

/// Open files that connections may use if the limit is unknown.
const UNKNOWN: usize = usize::MAX;

/// Soft limit that is enough for every other limit. Some programs close every possible descriptor when they start, so
/// children should not inherit more.
#[cfg(unix)]
const ENOUGH: u64 = 16 * 1024;

/// Raises the soft limit of this process and its children, as far as the hard limit allows it. A higher limit stays.
///
/// # Errors
/// The system refuses.
#[cfg(unix)]
pub fn raise() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit {
            current: Some(most),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(())
}

/// Returns the number of client connections that leave enough open files for servers: half of a low limit, and all but
/// a fixed number of a high one.
pub(crate) fn for_connections() -> usize {
    match soft_limit() {
        Some(files) => files - (files / 2).min(RESERVE),
        None => UNKNOWN,
    }
}

#[cfg(unix)]
fn soft_limit() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    usize::try_from(limit.current?).ok()
}

#[cfg(not(unix))]
const fn soft_limit() -> Option<usize> {
    None
}
