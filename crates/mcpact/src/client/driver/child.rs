//! A program that we start.

use std::time::Duration;

use mcpact_engine::shutdown::Grace;
use mcpact_transport::stdio::child::{Child, ChildCommand};

use super::lines::{Ended, GOODBYE, converse, say_goodbye};
use crate::client::core::{Core, Next};
use crate::client::error::ClientError;
use crate::log::{Life, Turn};

/// How long the log of a program that has closed its output is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(in crate::client) async fn run(mut core: Core, command: ChildCommand) {
    let mut life = Life::new(&core.shared.target);
    loop {
        life.tell(Turn::StartAttempt);
        let Child { mut link, process } = match command.spawn() {
            Ok(child) => child,
            Err(source) => {
                let target = core.shared.target.clone();
                life.tell(Turn::StartFailure(&source));
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
                // It ended without one, which the link tells, too.
                std::future::pending::<()>().await;
            }
        };
        life.runs_as(process.id());
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
            life.tell(Turn::InitializeFailure);
        }
        life.tell(Turn::StopAttempt);
        // Closing its input asks it to end; what does not heed that is made to.
        let (_, ended) = tokio::join!(
            tokio::time::timeout(GOODBYE, say_goodbye(&mut link)),
            process.shutdown(Grace::default()),
        );
        match ended {
            Ok(_) => life.tell(Turn::StopSuccess),
            Err(error) => life.tell(Turn::StopFailure(&error)),
        }
        if next != Next::Respawn {
            break;
        }
    }
    core.finish();
}
