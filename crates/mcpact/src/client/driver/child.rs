//! Servers as child processes.

use std::time::Duration;

use mcpact_engine::shutdown::Grace;
use mcpact_transport::stdio::child::{Child, ChildCommand};

use super::lines::{Ended, GOODBYE, converse, say_goodbye};
use crate::client::client_error::ClientError;
use crate::client::core::{Core, Next};
use crate::log::{ProcessEvent, ProcessLog};

/// Time to collect stderr after a process has closed its output.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(in crate::client) async fn run(mut core: Core, command: ChildCommand) {
    let mut process_log = ProcessLog::new(&core.shared.target);
    loop {
        process_log.record(ProcessEvent::StartAttempt);
        let Child { mut link, process } = match command.spawn() {
            Ok(child) => child,
            Err(source) => {
                let target = core.shared.target.clone();
                process_log.record(ProcessEvent::StartFailure(&source));
                core.fail(ClientError::Unreachable {
                    target,
                    stderr: String::new(),
                    source,
                });
                break;
            }
        };
        let heard = process.first_byte();
        let first_byte = async move {
            if !heard.await {
                // The process ended without output, which the link reports, too.
                std::future::pending::<()>().await;
            }
        };
        process_log.started(process.id());
        let ended = converse(&mut core, &mut link, first_byte).await;
        let next = match ended {
            Ended::HangUp => Next::HangUp,
            Ended::Respawn => Next::Respawn,
            Ended::Gone => {
                let _ = tokio::time::timeout(LAST_WORDS, process.wait()).await;
                core.stderr = process.stderr_tail();
                core.closed().next
            }
        };
        if !core.is_open() && next != Next::Respawn {
            process_log.record(ProcessEvent::InitializeFailure);
        }
        process_log.record(ProcessEvent::StopAttempt);
        // Closing its input asks it to exit; otherwise it is killed.
        let (_, ended) = tokio::join!(
            tokio::time::timeout(GOODBYE, say_goodbye(&mut link)),
            process.shutdown(Grace::default()),
        );
        match ended {
            Ok(_) => process_log.record(ProcessEvent::StopSuccess),
            Err(error) => process_log.record(ProcessEvent::StopFailure(&error)),
        }
        if next != Next::Respawn {
            break;
        }
    }
    core.finish();
}
