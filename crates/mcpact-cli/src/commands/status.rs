//! `mcpact status`: how a gateway that runs and its servers are.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use mcpact_gateway::control::{Answer, Request};

use super::{control, front};
use crate::args::Status;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, status};

pub(super) fn run(args: &Status) -> Result<Exit, CliError> {
    if let Some(file) = &args.bundle {
        return bundle(args, file);
    }
    let request = Request::Status {
        server: args.server.clone(),
    };
    let answer = front::block_on(control::answer(&args.which, &request))?;
    let Answer::Status(found) = answer else {
        return Err(CliError::Answer);
    };
    report::print(&match (args.which.json, &args.server) {
        (true, _) => status::json(&found),
        (false, None) => status::text(&found),
        (false, Some(_)) => status::one(&found),
    })?;
    Ok(Exit::Ok)
}

/// Everything that helps to find out what is wrong, in a file that may be shown to others.
fn bundle(args: &Status, file: &Path) -> Result<Exit, CliError> {
    let answer = front::block_on(control::answer(&args.which, &Request::Bundle {}))?;
    let Answer::Bundle(found) = answer else {
        return Err(CliError::Answer);
    };
    let text = status::bundle(&found);
    if file == Path::new("-") {
        report::print(&text)?;
        return Ok(Exit::Ok);
    }
    write_privately(file, &text).map_err(|source| CliError::Write {
        path: file.to_owned(),
        source,
    })?;
    report::hint(&format!(
        "look through `{}` before you show it to others: the secrets of the config are covered, what servers told of their own is not",
        file.display()
    ));
    Ok(Exit::Ok)
}

/// What servers told of their own may hold secrets, so that nobody else may read it, whoever could before.
fn write_privately(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut opened = options.open(file)?;
    #[cfg(unix)]
    if opened.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt as _;
        opened.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    opened.write_all(text.as_bytes())
}
