//! Core dumps.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Disables core dumps of this process and its children, because they contain secrets. A child can raise its limit
/// again.
///
/// If the system pipes core dumps to a program, that program decides.
///
/// # Errors
/// The system refuses.
pub fn disable() -> std::io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: getrlimit(Resource::Core).maximum,
    };
    Ok(setrlimit(Resource::Core, none)?)
}
