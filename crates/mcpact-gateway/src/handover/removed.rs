//! Servers that are not in the config any more, and clients that come back for what runs there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use crate::error::{ServeError, UpstreamError, UpstreamErrorKind};
use bytestring::ByteString;
use mcpact::server::backend::BackendRequest;
use mcpact_spec::Method;
use mcpact_transport::stdio::child::Masks;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::aggregator::ServerSet;
use crate::aggregate::aggregator::lock;
use crate::aggregate::rewrite::{Subject, subject, with_subject};
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::task_ids::split_id;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::exchange::Inbound;

/// How many are remembered.
const MOST: usize = 64;

/// The servers that have left, the latest first; their calls may still run.
#[derive(Debug, Default)]
pub(crate) struct RemovedServers(Mutex<VecDeque<RemovedServer>>);

#[derive(Debug)]
struct RemovedServer {
    name: Box<str>,
    member: Weak<ServerEntry>,
}

impl RemovedServers {
    /// The servers are others than before.
    pub(crate) fn note(&self, before: &ServerSet, after: &ServerSet) {
        let is_in = |roster: &ServerSet, name: &str| {
            let mut members = roster.members.iter();
            members.any(|member| *member.name == *name)
        };
        let mut gone = lock(&self.0);
        gone.retain(|gone| !is_in(after, &gone.name));
        for member in &before.members {
            if !is_in(after, &member.name) {
                gone.push_front(RemovedServer {
                    name: member.name.clone(),
                    member: Arc::downgrade(member),
                });
            }
        }
        gone.truncate(MOST);
    }

    /// A server that has left; none inside if its calls are over, too.
    fn find(&self, name: &str) -> Option<Option<Arc<ServerEntry>>> {
        let gone = lock(&self.0);
        let gone = gone.iter().find(|gone| *gone.name == *name)?;
        Some(gone.member.upgrade())
    }
}

impl Aggregator {
    /// What is told of something whose server has left, if it is: of tasks, the gateway knows of those that it hosts
    /// itself; a call that waits for a client's answers gets them while it runs. Everything else is lost.
    pub(crate) async fn ask_departed(
        self: &Arc<Self>,
        job: &BackendRequest,
        method: Method,
        guest: &DownstreamClient,
        ear: &ClientSink,
    ) -> Option<Result<ByteString, ServeError>> {
        let carried = self.carried_in(guest.principal(), &job.params);
        let (server, sent) = match (&carried, subject(method, &job.params)) {
            (Some(carried), _) => {
                let sent = carried.given_to_server(method, &job.params);
                (carried.server.clone(), sent)
            }
            (None, Subject::Task(task)) => {
                let (server, inner) = split_id(&task)?;
                (server.to_owned(), with_subject(method, &job.params, inner))
            }
            (None, _) => return None,
        };
        let member = self.departed.find(&server)?;
        if let (Some(member), Some(sent)) = (member, sent) {
            let view = Rewriter::new(self, &member, &guest.watched);
            let ear = ear.clone().seeing(Arc::new(view.clone()));
            let job = BackendRequest {
                params: sent.into(),
                ..job.clone()
            };
            let waiter = Inbound { job, ear };
            let told = match &carried {
                Some(_) => member.bridge.come_back(waiter).await,
                None if member.bridge.hosts(&waiter.job, &waiter.ear) => {
                    Some(member.bridge.about_hosted(&waiter).await)
                }
                None => None,
            };
            if let Some(told) = told {
                let called = || carried.map(|carried| carried.called).unwrap_or_default();
                let sealed = |raw| self.sealed(&member, guest.principal(), called, raw);
                let shown = told.map(|raw| view.result(method, sealed(raw)));
                return Some(
                    shown.map_err(|error| error.map_wire(|error| view.error(error, None))),
                );
            }
        }
        let lost = UpstreamError {
            target: format!("`{server}`"),
            kind: UpstreamErrorKind::Stopped,
            masks: Masks::default(),
        };
        Some(Err(lost.into()))
    }
}
