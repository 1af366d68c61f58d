//! `mcpact guard`: ends a server process when the gateway is killed.

use mcpact_transport::stdio::child::{Confinement, Sandbox, stand_guard};

use crate::args::GuardArgs;
use crate::error::{CliError, Exit};

pub(super) fn run(args: &GuardArgs) -> Result<Exit, CliError> {
    let Some((program, rest)) = args.command.split_first() else {
        return Ok(Exit::Usage);
    };
    let confinement = Confinement {
        no_new_privileges: args.no_new_privileges,
        open_files: args.open_files,
        memory: args.memory,
        sandbox: Sandbox {
            level: args.sandbox,
            folder: args.folder.clone(),
            read: args.allow_read.clone(),
            write: args.allow_write.clone(),
            ports: args.allow_port.clone(),
        },
    };
    match stand_guard(args.owner, confinement, program, rest) {
        Ok(status) => Ok(Exit::Child(status)),
        Err(source) => Err(CliError::Guard {
            program: program.to_string_lossy().into_owned(),
            source,
        }),
    }
}
