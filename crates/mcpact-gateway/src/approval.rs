//! Check of an approval right before a launch.

use mcpact_config::{Approval, Deed};

use crate::error::Trouble;

/// Refuses a launch that is not approved. The program is read and hashed on a blocking thread.
pub(crate) async fn check(approval: &Approval) -> Result<(), Trouble> {
    let approval = approval.clone();
    match tokio::task::spawn_blocking(move || approval.missing()).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(Deed { kind, mark, .. }))) => Err(Trouble::Unapproved { kind, mark }),
        Ok(Err(source)) => Err(Trouble::Unapprovable(source)),
        Err(_) => Err(Trouble::Closed),
    }
}
