//! Fetching of paginated lists from a server.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{ServeError, UpstreamErrorKind};
use bytestring::ByteString;
use mcpact::error::with_causes;
use mcpact::server::backend::ResponseMode;
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::ObjectWriter;

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::Page;
use crate::connection::UpstreamConnection;
use crate::connection::slot::Lease;
use crate::exchange::refusal::{RefusalKind, RefusalRecord, disagreed};
use crate::exchange::{DeclaredTasks, refusal, stamped, wire_error};
use crate::lists::scope::Audience;
use crate::lists::server_list::{ListError, ServerList};
use crate::retry::{Attempt, Retry, RetryPolicy};
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

/// Request for a list, its audience, and its effect on the idle timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListFetch {
    pub(crate) kind: ListKind,
    pub(crate) audience: Audience,
    pub(crate) mode: FetchMode,
}

/// Fetches a list page by page; none if the server is not running and `fetch` must not start it.
pub(crate) async fn fetch(
    server: &UpstreamServer,
    binding: &Arc<ServerBinding>,
    fetch: ListFetch,
) -> Result<Option<ServerList>, ListError> {
    let refusals = RefusalRecord::default();
    if fetch.mode == FetchMode::Background {
        let Some(connection) = binding.open_connection() else {
            return Ok(None);
        };
        let listing = list(&connection, binding, fetch, &refusals);
        return in_time(server, listing).await.map(Some);
    }
    let mut retries = 0;
    loop {
        let before = binding.open_connection();
        let was_modern =
            before.is_some_and(|connection| connection.revision().era() == Era::Modern);
        let listed = list_leased(server, binding, fetch, &refusals).await;
        let (refused, by) = match (&listed, refusals.take()) {
            (Err(_), Some(refused)) => refused,
            // A list request is safe to repeat.
            (Err(ListError::Lost(_)), None) if was_modern => {
                (RefusalKind::InDoubt, Arc::clone(binding))
            }
            _ => return listed.map(Some),
        };
        let attempt = Attempt {
            retries,
            ..refused.attempt()
        };
        let decision = RetryPolicy::REMOTE.decide(attempt);
        if retries >= RetryPolicy::REMOTE.renegotiations
            || decision != Retry::IfServerChanged
            || !refusal::is_another(refused, &by).await
        {
            return listed.map(Some);
        }
        retries += 1;
    }
}

async fn list_leased(
    server: &UpstreamServer,
    binding: &Arc<ServerBinding>,
    fetch: ListFetch,
    refusals: &RefusalRecord,
) -> Result<ServerList, ListError> {
    let current = rebind::current(server, Arc::clone(binding)).await;
    let (binding, _) = current.map_err(ListError::Lost)?;
    let lease = binding.acquire().await;
    let Lease { connection, guard } = lease.map_err(|error| ListError::Lost(error.into()))?;
    let listed = in_time(server, list(&connection, &binding, fetch, refusals)).await;
    if listed.is_ok() {
        guard.answered();
    }
    listed
}

/// Limits the time of a list request.
async fn in_time(
    server: &UpstreamServer,
    listing: impl Future<Output = Result<ServerList, ListError>>,
) -> Result<ServerList, ListError> {
    let limit = server.shared.run().call_timeout;
    let listed = tokio::time::timeout(limit, listing).await;
    listed.unwrap_or_else(|_| {
        let why = format!(
            "the server did not list anything within {limit:?}; raise `call_seconds` if it needs longer"
        );
        Err(ListError::Late(missing(why)))
    })
}

/// Fetches a list on one connection. A list for all clients must not depend on the answers of one: it is fetched again if a
/// client may have been asked during the request.
async fn list(
    connection: &Arc<UpstreamConnection>,
    binding: &Arc<ServerBinding>,
    fetch: ListFetch,
    refusals: &RefusalRecord,
) -> Result<ServerList, ListError> {
    if fetch.audience == Audience::Owner {
        return list_pages(connection, binding, fetch, refusals).await;
    }
    for _ in 0..MAX_ATTEMPTS {
        let common = connection.shared_lists.begin(fetch.mode == FetchMode::Call);
        let listed = list_pages(connection, binding, fetch, refusals).await;
        if !common.is_doubtful() {
            return listed;
        }
    }
    let why = "the server asks clients something whenever it is to list what it has";
    Err(ListError::Late(missing(String::from(why))))
}

async fn list_pages(
    connection: &Arc<UpstreamConnection>,
    binding: &Arc<ServerBinding>,
    fetch: ListFetch,
    refusals: &RefusalRecord,
) -> Result<ServerList, ListError> {
    let kind = fetch.kind;
    let mut pages = Vec::new();
    let mut params = String::from("{}");
    let (mut followed, mut bytes) = (HashSet::new(), 0);
    loop {
        let page = page(connection, binding, fetch, &params, refusals).await?;
        let parsed = Page::parse(kind, &page);
        if parsed.is_none() && pages.is_empty() {
            let why = format!("the answer has no list `{}`", kind.member());
            return Err(ListError::Refused(missing(why)));
        }
        let next = parsed.and_then(|page| page.next.cursor());
        if kind == ListKind::Tools {
            connection.learn_tools(&page);
        }
        bytes += page.len();
        pages.push(page);
        let goes_on = pages.len() < MAX_PAGES && bytes < MAX_BYTES;
        // A repeated cursor would lead to pages that are known already.
        match next.filter(|next| goes_on && followed.insert(next.clone())) {
            Some(cursor) => params = ObjectWriter::new().text("cursor", &cursor).finish(),
            None => return Ok(ServerList::new(kind, connection.revision(), pages)),
        }
    }
}

async fn page(
    connection: &Arc<UpstreamConnection>,
    binding: &Arc<ServerBinding>,
    fetch: ListFetch,
    params: &str,
    refusals: &RefusalRecord,
) -> Result<ByteString, ListError> {
    let stamped = match connection.revision().era() {
        Era::Legacy => None,
        Era::Modern => {
            let tasks = DeclaredTasks::AsDeclared;
            let revision = connection.revision();
            let stamped = stamped(binding, ResponseMode::Stream, tasks, revision, params);
            // Modern clients identify themselves in each request; a list is for all of them.
            let own = || own_stamp(connection, params);
            Some(stamped.ok().flatten().unwrap_or_else(own))
        }
    };
    let params = stamped.as_deref().unwrap_or(params);
    let mut call = connection.call(fetch.kind.method(), params).await;
    loop {
        match call.next().await {
            CallEvent::Response(ServerResponse::Result(raw)) => return Ok(raw),
            CallEvent::Response(ServerResponse::Error(raw)) => {
                return Err(ListError::Refused(server_error(&raw)));
            }
            CallEvent::Failed(loss) => {
                refusals.note_loss(&loss, connection.revision(), binding);
                return Err(list_error(connection, binding, &loss));
            }
            CallEvent::Notification(_) => {}
            CallEvent::Request(ask) if fetch.audience == Audience::Owner => connection.asked(ask),
            CallEvent::Request(ask) => connection.answer_for_shared_list(ask).await,
        }
    }
}

/// Returns the error for a failed request of a page.
fn list_error(
    connection: &UpstreamConnection,
    binding: &ServerBinding,
    loss: &CallFailure,
) -> ListError {
    let refused = |kind| ListError::Refused(binding.error(kind).into());
    let why = match loss {
        CallFailure::RevisionRefused => return refused(disagreed(connection.revision())),
        CallFailure::ResponseTooLarge(limit) => {
            return refused(UpstreamErrorKind::ResponseTooLarge { limit: *limit });
        }
        CallFailure::Ambiguous(AmbiguousRefusal {
            error: Some(raw), ..
        }) => return ListError::Refused(server_error(raw)),
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
    ListError::Lost(missing(why))
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
    match ErrorBody::parse(raw) {
        Some(body) => {
            let data = body.data.map(str::to_owned);
            let message = body.message.into_owned();
            ServeError::Response(wire_error(
                body.code,
                message,
                data,
                Revision::newest(Era::Modern),
            ))
        }
        None => missing(String::from("its error cannot be read")),
    }
}

/// Returns the error for a list that could not be fetched.
fn missing(why: String) -> ServeError {
    refusal(
        ErrorCode::InternalError.code(),
        why,
        None,
        Revision::newest(Era::Modern),
    )
}
