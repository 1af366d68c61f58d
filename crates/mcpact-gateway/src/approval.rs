//! Check of an approval right before a launch.

use mcpact_config::{Approval, ApprovalSubject};

use crate::error::UpstreamErrorKind;

/// Refuses a launch that is not approved. The program is read and hashed on a blocking thread.
pub(crate) async fn check(approval: &Approval) -> Result<(), UpstreamErrorKind> {
    let approval = approval.clone();
    match tokio::task::spawn_blocking(move || approval.missing()).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(ApprovalSubject {
            kind, digest: mark, ..
        }))) => Err(UpstreamErrorKind::NotApproved { kind, mark }),
        Ok(Err(source)) => Err(UpstreamErrorKind::ApprovalUnreadable(source)),
        Err(_) => Err(UpstreamErrorKind::Retired),
    }
}
