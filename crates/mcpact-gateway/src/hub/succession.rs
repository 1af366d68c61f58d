//! Servers that take the place of others: whoever wanted to hear of resources goes on hearing of them.

use std::sync::Arc;

use mcpact_engine::server::Scope;
use mcpact_spec::Method;
use mcpact_wire::raw::ObjectWriter;

use super::guest::Guest;
use super::member::Member;
use super::view::PartView;
use super::{Hub, Roster};
use crate::bridge::Ear;

impl Hub {
    /// The server that has taken the place of another; none if that one is there, or nobody has.
    pub(super) fn successor(&self, of: &Member) -> Option<Arc<Member>> {
        let roster = self.roster();
        let mut members = roster.members.iter();
        let named = members.find(|member| member.name == of.name)?;
        // What runs on under other settings tells what it told before.
        (!Arc::ptr_eq(&named.bridge, &of.bridge)).then(|| Arc::clone(named))
    }

    /// Until another server has taken the place of this one.
    pub(super) async fn succeeded(&self, member: &Member) {
        let mut turns = self.changes.turns();
        while self.successor(member).is_none() {
            if turns.changed().await.is_err() {
                return;
            }
        }
    }

    /// Subscribes legacy clients to what they had subscribed to at servers that others have replaced.
    pub(super) fn follow(self: &Arc<Self>, before: &Roster) {
        self.changes.turn();
        let members = before.members.iter();
        let replaced: Vec<(u64, Arc<Member>)> = members
            .filter_map(|member| Some((member.number, self.successor(member)?)))
            .collect();
        if replaced.is_empty() {
            return;
        }
        for ear in self.changes.staying() {
            let Some(guest) = ear.state::<Guest>() else {
                continue;
            };
            let (hub, replaced) = (Arc::clone(self), replaced.clone());
            tokio::spawn(async move {
                for (gone, member) in replaced {
                    guest.leave(gone);
                    hub.subscribe_again(&guest, gone, &member, &ear).await;
                }
            });
        }
    }

    async fn subscribe_again(
        self: &Arc<Self>,
        guest: &Arc<Guest>,
        gone: u64,
        member: &Arc<Member>,
        ear: &Ear,
    ) {
        for shared in guest.watched.pass(gone, member.number) {
            let Some(job) = guest.subscription(&shared.inner) else {
                return;
            };
            let subscribed = async {
                let caller = guest.part(self, member).await?;
                let view = PartView::new(self, member, &guest.watched);
                let ear = ear.clone().seeing(Arc::new(view));
                member.bridge.carry(job, caller, ear).await
            };
            match subscribed.await {
                Ok(_) => {
                    let scope = Scope::Connection;
                    ear.hint(scope, Method::ResourcesUpdated, &updated(&shared.outer));
                }
                Err(error) => {
                    guest.watched.remove(&shared.outer);
                    let (server, error) = (&member.name, error.message);
                    tracing::warn!(event = "route_error", %server, error, "a subscription is lost");
                }
            }
        }
    }
}

/// Tells that a resource may have changed.
pub(super) fn updated(uri: &str) -> String {
    ObjectWriter::new().text("uri", uri).finish()
}
