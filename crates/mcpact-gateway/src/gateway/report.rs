//! What a gateway tells about its servers.

use std::sync::Arc;

use futures_util::future::join_all;
use mcpact_spec::Revision;

use super::Gateway;
use crate::supervisor::ServerState;

/// One server, as people want to know it.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// Its name in the config.
    pub name: String,
    /// What was agreed on with it.
    pub revision: Option<Revision>,
    /// Who it says it is.
    pub calls_itself: Option<String>,
    /// Whether it runs; a server that is known from an earlier run sleeps until it is called.
    pub state: ServerState,
    /// Why it is missing, if it is.
    pub failure: Option<String>,
}

impl Gateway {
    /// Reaches every server of which nothing is known, and tells what is known of each.
    pub async fn meet(&self) -> Vec<ServerReport> {
        let members = self.state().members();
        let meeting = members.iter().map(|member| {
            let member = Arc::clone(member);
            async move {
                member.meet().await;
                member.report()
            }
        });
        join_all(meeting).await
    }
}
