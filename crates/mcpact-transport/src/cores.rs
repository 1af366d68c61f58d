//! What a process leaves behind when it crashes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// From here on neither this process nor what it starts leaves its memory on the disk when it crashes: secrets
/// are in it. A program that wants it otherwise can raise its limit again.
///
/// Where the system hands such memory to a program instead of the disk, that program decides.
///
/// # Errors
/// The system refuses.
pub fn leave_none() -> std::io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: getrlimit(Resource::Core).maximum,
    };
    Ok(setrlimit(Resource::Core, none)?)
}
