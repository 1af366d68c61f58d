//! Fetching of paginated lists from a server.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{ServeError, UpstreamErrorKind, wire_error};
use bytestring::ByteString;
use mcpact::error::with_causes;
use mcpact::server::backend::ResponseMode;
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_transport::budget::MemoryExhausted;
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::ObjectWriter;

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::Page;
use crate::connection::UpstreamConnection;
use crate::connection::pool::Lease;
use crate::exchange::server_change::{self, disagreed};
use crate::exchange::{DeclaredTasks, refuse, stamped};
use crate::lists::scope::Audience;
use crate::lists::server_list::{ListError, ServerList};
use crate::retry::{Retries, Retry, ServerDoubt};
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::rebind;
use mcpact::connection::{AmbiguousRefusal, CallEvent, CallFailure, ServerResponse};

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 1000;

/// Total size of the pages, above which no further page is requested.
const MAX_BYTES: usize = 64 << 20;

/// Maximum number of requests for a list during which a client may have been asked something.
const MAX_ATTEMPTS: usize = 3;

/// Effect of a fetch on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchMode {
    /// Starts the server if needed, and counts as a call.
    Call,
    /// Uses a running server, and does not keep it from becoming idle.
    Background,
}

/// Request for a list at one server, its audience, and its effect on the idle timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListFetch<'a> {
    pub(crate) server: &'a UpstreamServer,
    pub(crate) binding: &'a Arc<ServerBinding>,
    pub(crate) kind: ListKind,
    pub(crate) audience: Audience,
    pub(crate) mode: FetchMode,
}

impl ListFetch<'_> {
    /// Fetches a list page by page; none if the server is not running and must not be started.
    pub(crate) async fn run(self) -> Result<Option<ServerList>, ListError> {
        if self.mode == FetchMode::Background {
            return match self.binding.open_connection() {
                Some(connection) => self.in_time(&connection).await.map(Some),
                None => Ok(None),
            };
        }
        let mut retries = Retries::default();
        loop {
            let before = self.binding.open_connection();
            let was_modern = before.is_some_and(|before| before.revision().era() == Era::Modern);
            let error = match self.with_lease().await {
                Ok(list) => return Ok(Some(list)),
                Err(error) => error,
            };
            let doubt = match &error {
                // A list request is safe to repeat.
                ListError::Lost(lost) if was_modern => {
                    lost.doubt().or(Some(ServerDoubt::Ambiguous))
                }
                ListError::Lost(error) | ListError::Late(error) | ListError::Refused(error) => {
                    error.doubt()
                }
            };
            let decision = doubt.map(|doubt| retries.decide(doubt.attempt()));
            if decision != Some(Retry::IfServerChanged)
                || !server_change::is_changed(doubt, self.binding).await
            {
                return Err(error);
            }
        }
    }

    async fn with_lease(self) -> Result<ServerList, ListError> {
        let current = rebind::current(self.server, Arc::clone(self.binding)).await;
        let (binding, _) = current.map_err(ListError::Lost)?;
        let lease = binding.acquire().await.map_err(ServeError::from);
        let Lease { connection, guard } = lease.map_err(ListError::Lost)?;
        let fetch = ListFetch {
            binding: &binding,
            ..self
        };
        let listed = fetch.in_time(&connection).await;
        if listed.is_ok() {
            guard.answered();
        }
        listed
    }

    /// Fetches a list on one connection within the time limit.
    async fn in_time(self, connection: &Arc<UpstreamConnection>) -> Result<ServerList, ListError> {
        let limit = self.server.shared.run().call_timeout;
        let listed = tokio::time::timeout(limit, self.on_connection(connection)).await;
        listed.unwrap_or_else(|_| {
            let why = format!(
                "the server did not list anything within {limit:?}; raise `call_seconds` if it needs longer"
            );
            Err(ListError::Late(missing(why)))
        })
    }

    /// Fetches a list on one connection. A list for all clients must not depend on the answers of one: it is fetched
    /// again if a client may have been asked during the request.
    async fn on_connection(
        self,
        connection: &Arc<UpstreamConnection>,
    ) -> Result<ServerList, ListError> {
        if self.audience == Audience::Owner {
            return self.pages(connection).await;
        }
        for _ in 0..MAX_ATTEMPTS {
            let common = connection.shared_lists.begin(self.mode == FetchMode::Call);
            let listed = self.pages(connection).await;
            if !common.is_doubtful() {
                return listed;
            }
        }
        let why = "the server needs client input to list its items";
        Err(ListError::Late(missing(why)))
    }

    async fn pages(self, connection: &Arc<UpstreamConnection>) -> Result<ServerList, ListError> {
        let kind = self.kind;
        let mut pages = Vec::new();
        let mut params = String::from("{}");
        let (mut followed, mut bytes) = (HashSet::new(), 0);
        loop {
            let page = self.page(connection, &params).await?;
            let parsed = Page::parse(kind, &page);
            if parsed.is_none() && pages.is_empty() {
                let why = format!("the result has no array `{}`", kind.member());
                return Err(ListError::Refused(missing(why)));
            }
            let next = parsed.and_then(|page| page.cursor);
            if kind == ListKind::Tools {
                connection.learn_tools(&page);
            }
            bytes += page.len();
            // A copy: a kept list has its own limit, and would keep the charge of the message to the memory budget.
            pages.push(ByteString::from(&*page));
            let goes_on = pages.len() < MAX_PAGES && bytes < MAX_BYTES;
            // A repeated cursor would lead to pages that are known already.
            match next.filter(|next| goes_on && followed.insert(next.clone())) {
                Some(cursor) => params = ObjectWriter::new().text("cursor", &cursor).finish(),
                None => return Ok(ServerList::new(kind, connection.revision(), pages)),
            }
        }
    }

    async fn page(
        self,
        connection: &Arc<UpstreamConnection>,
        params: &str,
    ) -> Result<ByteString, ListError> {
        let revision = connection.revision();
        let stamped = (revision.era() == Era::Modern).then(|| {
            let tasks = DeclaredTasks::AsDeclared;
            let stamped = stamped(self.binding, ResponseMode::Stream, tasks, revision, params);
            // Modern clients identify themselves in each request; a list is for all of them.
            let own = || own_stamp(connection, params);
            stamped.ok().flatten().unwrap_or_else(own)
        });
        let params = stamped.as_deref().unwrap_or(params);
        let mut call = connection.call(self.kind.method(), params).await;
        loop {
            match call.next().await {
                CallEvent::Response(ServerResponse::Result(raw)) => return Ok(raw.into_text()),
                CallEvent::Response(ServerResponse::Error(raw)) => {
                    return Err(ListError::Refused(server_error(&raw)));
                }
                CallEvent::Failed(loss) => return Err(self.failure(revision, &loss)),
                CallEvent::Notification(_) => {}
                CallEvent::Request(ask) if self.audience == Audience::Owner => {
                    connection.dispatch_question(ask)
                }
                CallEvent::Request(ask) => connection.answer_for_shared_list(ask).await,
            }
        }
    }

    /// Returns the error for a failed request of a page.
    fn failure(self, revision: Revision, loss: &CallFailure) -> ListError {
        let doubt = match loss {
            // A replaced server does not know the session. The pool may hold several such connections.
            CallFailure::SessionLost => Some(ServerDoubt::NotSent),
            _ => server_change::doubt(loss, revision),
        };
        let refused = |error: ServeError| ListError::Refused(error.with_doubt(doubt));
        let why = match loss {
            CallFailure::RevisionRefused => {
                return refused(self.binding.error(disagreed(revision)).into());
            }
            CallFailure::ResponseTooLarge(limit) => {
                let kind = UpstreamErrorKind::ResponseTooLarge { limit: *limit };
                return refused(self.binding.error(kind).into());
            }
            CallFailure::MemoryExhausted => {
                let kind = UpstreamErrorKind::MemoryExhausted(MemoryExhausted);
                return refused(self.binding.error(kind).into());
            }
            CallFailure::Ambiguous(AmbiguousRefusal {
                error: Some(raw), ..
            }) => return refused(server_error(raw)),
            CallFailure::Ambiguous(AmbiguousRefusal { status, .. })
            | CallFailure::HttpStatus(status) => {
                format!("the server answered with status {status}")
            }
            CallFailure::SessionLost => String::from("the server no longer knows the session"),
            CallFailure::NotSent(why) | CallFailure::ConnectionLost(why) => why.to_string(),
            CallFailure::ProtocolViolation(why) => why.clone(),
            CallFailure::Unreachable(error) => {
                with_causes(&UpstreamErrorKind::Transport(Arc::clone(error)))
            }
            CallFailure::LoopDetected => UpstreamErrorKind::Loop.to_string(),
        };
        ListError::Lost(missing(why).with_doubt(doubt))
    }
}

/// Returns parameters for a modern server, with the capabilities of the gateway itself.
pub(crate) fn own_stamp(connection: &UpstreamConnection, params: &str) -> String {
    let answered = connection.answered_here();
    let stamp = Stamp {
        version: connection.revision().as_str(),
        capabilities: answered.raw(),
        client_info: None,
        log_level: None,
    };
    stamp
        .apply(Some(params))
        .unwrap_or_else(|_| params.to_owned())
}

/// Returns an error response of the server as it is.
fn server_error(raw: &str) -> ServeError {
    let Some(body) = ErrorBody::parse(raw) else {
        return missing("its error cannot be read");
    };
    let data = body.data.map(str::to_owned);
    let (message, revision) = (body.message.into_owned(), Revision::newest(Era::Modern));
    ServeError::response(wire_error(body.code, message, data, revision))
}

/// Returns the error for a list that could not be fetched.
fn missing(why: impl Into<String>) -> ServeError {
    let revision = Revision::newest(Era::Modern);
    refuse(ErrorCode::InternalError, why, revision)
}
