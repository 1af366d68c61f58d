//! What a gateway tells about its servers.

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use mcpact_spec::Revision;

use super::Gateway;
use crate::filters::FilterReport;
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
    /// Reaches every server of which nothing is known, and tells of each as soon as it has introduced itself
    /// or is known to be missing.
    pub fn meet(&self) -> impl Stream<Item = ServerReport> + Send + use<> {
        let members = self.state().members().into_iter();
        let meeting = members.map(|member| async move {
            member.meet().await;
            member.report()
        });
        meeting.collect::<FuturesUnordered<_>>()
    }

    /// The filters that are not asked because nobody has approved them.
    pub async fn unapproved_filters(&self) -> Vec<FilterReport> {
        self.filters.unapproved().await
    }

    /// What is known of every server.
    #[must_use]
    pub fn reports(&self) -> Vec<ServerReport> {
        let members = self.state().members();
        members.iter().map(|member| member.report()).collect()
    }
}
