//! Check of an approval right before a launch.

use mcpact::connection::ConnectError;
use mcpact_config::{Approval, ApprovalSubject, Launch};
use mcpact_transport::error::TransportError;
use mcpact_transport::stdio::child::LaunchProblem;

use crate::error::UpstreamErrorKind;

/// Refuses a launch that is not approved. The program is read and hashed on a blocking thread.
pub(crate) async fn check(approval: &Approval) -> Result<(), UpstreamErrorKind> {
    let launch = &approval.launch;
    let approval = approval.clone();
    match tokio::task::spawn_blocking(move || approval.missing()).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(ApprovalSubject {
            kind, digest: mark, ..
        }))) => Err(UpstreamErrorKind::NotApproved { kind, mark }),
        Ok(Err(source)) => Err(match launch {
            Launch::Command(command) if LaunchProblem::of(&source).is_some() => {
                let program = command.program.to_string();
                ConnectError::from(TransportError::Spawn { program, source }).into()
            }
            _ => UpstreamErrorKind::ApprovalUnreadable(source),
        }),
        Err(_) => Err(UpstreamErrorKind::Retired),
    }
}
