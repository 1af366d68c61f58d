//! Check of an approval right before a launch.

use mcpact::connection::ConnectError;
use mcpact_config::{Approval, ApprovalState, Launch};
use mcpact_transport::error::TransportError;
use mcpact_transport::stdio::child::{LaunchProblem, StartCheck};

use crate::error::UpstreamErrorKind;

/// Refuses a launch that is not approved. Program and script are read and hashed on a blocking thread. The returned
/// check finds files that are exchanged from now on.
pub(crate) async fn check(approval: &Approval) -> Result<Option<StartCheck>, UpstreamErrorKind> {
    let launch = &approval.launch;
    let approval = approval.clone();
    match tokio::task::spawn_blocking(move || approval.check()).await {
        Ok(Ok(ApprovalState::Approved(start_check))) => Ok(start_check),
        Ok(Ok(ApprovalState::Missing(subject))) => Err(UpstreamErrorKind::NotApproved {
            kind: subject.kind,
            mark: subject.digest,
        }),
        Ok(Err(source)) => Err(match launch {
            Launch::Command(command) if LaunchProblem::of(&source).is_some() => {
                let program = command.program.to_string();
                start_failure(TransportError::Spawn { program, source })
            }
            _ => UpstreamErrorKind::ApprovalUnreadable(source),
        }),
        Err(_) => Err(UpstreamErrorKind::Retired),
    }
}

/// Checks a server that has answered the handshake: an interpreter reads its script after the start.
pub(crate) async fn check_started(
    start_check: Option<StartCheck>,
    program: &str,
) -> Result<(), UpstreamErrorKind> {
    let Some(start_check) = start_check else {
        return Ok(());
    };
    match tokio::task::spawn_blocking(move || start_check.run()).await {
        Ok(checked) => checked.map_err(|source| {
            let program = program.to_owned();
            start_failure(TransportError::Spawn { program, source })
        }),
        Err(_) => Err(UpstreamErrorKind::Retired),
    }
}

/// Returns the error for a failed start.
pub(crate) fn start_failure(error: TransportError) -> UpstreamErrorKind {
    match error {
        TransportError::Spawn { source, .. }
            if matches!(
                LaunchProblem::of(&source),
                Some(LaunchProblem::Exchanged(_))
            ) =>
        {
            UpstreamErrorKind::CodeExchanged(source)
        }
        error => ConnectError::from(error).into(),
    }
}
