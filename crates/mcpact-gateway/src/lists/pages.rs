//! The pages of a list, one after the other.

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
use crate::exchange::DeclaredTasks;
use crate::exchange::refusal;
use crate::exchange::refusal::RefusalRecord;
use crate::exchange::refusal::disagreed;
use crate::exchange::stamped;
use crate::exchange::wire_error;
use crate::lists::server_list::ListAudience;
use crate::lists::server_list::ListError;
use crate::lists::server_list::ServerList;
use crate::upstream::binding::ServerBinding;
use mcpact::connection::{AmbiguousRefusal, CallEvent, CallFailure, ServerResponse};

/// How many pages a list may have.
const PAGES: usize = 1000;

/// How many bytes its pages may have together, beyond which no further one is asked for.
const BYTES: usize = 64 << 20;

/// How often a list is asked for during which a client may have been asked for it.
const DOUBTS: usize = 3;

/// What is asked for, for whom, and whether that counts as a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListFetch {
    pub(crate) kind: ListKind,
    pub(crate) readers: ListAudience,
    pub(crate) is_call: bool,
}

/// What many are shown rests on no client's answers: a list that may do is asked for again.
pub(crate) async fn list(
    connection: &Arc<UpstreamConnection>,
    binding: &Arc<ServerBinding>,
    errand: ListFetch,
    refusals: &RefusalRecord,
) -> Result<ServerList, ListError> {
    if errand.readers == ListAudience::One {
        return list_pages(connection, binding, errand, refusals).await;
    }
    for _ in 0..DOUBTS {
        let common = connection.shared_lists.begin(errand.is_call);
        let listed = list_pages(connection, binding, errand, refusals).await;
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
    errand: ListFetch,
    refusals: &RefusalRecord,
) -> Result<ServerList, ListError> {
    let kind = errand.kind;
    let mut pages = Vec::new();
    let mut params = String::from("{}");
    let (mut followed, mut bytes) = (HashSet::new(), 0);
    loop {
        let page = page(connection, binding, errand, &params, refusals).await?;
        let parsed = Page::parse(kind, &page);
        if parsed.is_none() && pages.is_empty() {
            return Err(ListError::RefusalKind(no_list(kind)));
        }
        let next = parsed.and_then(|page| page.next.cursor());
        if kind == ListKind::Tools {
            connection.learn_tools(&page);
        }
        bytes += page.len();
        pages.push(page);
        let goes_on = pages.len() < PAGES && bytes < BYTES;
        // A cursor that comes again leads to what was there before.
        match next.filter(|next| goes_on && followed.insert(next.clone())) {
            Some(cursor) => params = ObjectWriter::new().text("cursor", &cursor).finish(),
            None => return Ok(ServerList::new(kind, connection.revision(), pages)),
        }
    }
}

async fn page(
    connection: &Arc<UpstreamConnection>,
    binding: &Arc<ServerBinding>,
    errand: ListFetch,
    params: &str,
    refusals: &RefusalRecord,
) -> Result<ByteString, ListError> {
    let stamped = match connection.revision().era() {
        Era::Legacy => None,
        Era::Modern => {
            let told = DeclaredTasks::AsDeclared;
            let stamped = stamped(
                binding,
                ResponseMode::Stream,
                told,
                connection.revision(),
                params,
            );
            // Modern clients say themselves who they are; a list is everybody's.
            let own = || own_stamp(connection, params);
            Some(stamped.ok().flatten().unwrap_or_else(own))
        }
    };
    let params = stamped.as_deref().unwrap_or(params);
    let mut call = connection.call(errand.kind.method(), params).await;
    loop {
        match call.next().await {
            CallEvent::Response(ServerResponse::Result(raw)) => return Ok(raw),
            CallEvent::Response(ServerResponse::Error(raw)) => {
                return Err(ListError::RefusalKind(told(&raw)));
            }
            CallEvent::Failed(loss) => {
                refusals.note_loss(&loss, connection.revision(), binding);
                return Err(unlisted(connection, binding, &loss));
            }
            CallEvent::Notification(_) => {}
            CallEvent::Request(ask) if errand.readers == ListAudience::One => connection.asked(ask),
            CallEvent::Request(ask) => connection.answer_for_shared_list(ask).await,
        }
    }
}

/// Why there is no page, if its request was lost.
fn unlisted(
    connection: &UpstreamConnection,
    binding: &ServerBinding,
    loss: &CallFailure,
) -> ListError {
    let refused = |trouble| ListError::RefusalKind(binding.error(trouble).into());
    let why = match loss {
        CallFailure::RevisionRefused => return refused(disagreed(connection.revision())),
        CallFailure::ResponseTooLarge(limit) => {
            return refused(UpstreamErrorKind::ResponseTooLarge { limit: *limit });
        }
        CallFailure::Ambiguous(AmbiguousRefusal {
            error: Some(raw), ..
        }) => return ListError::RefusalKind(told(raw)),
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

/// Parameters for a modern server on nobody's behalf.
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

/// What is told of an answer that is no list.
fn no_list(kind: ListKind) -> ServeError {
    missing(format!("the answer has no list `{}`", kind.member()))
}

/// An error of the server as it came.
fn told(raw: &str) -> ServeError {
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

/// What is told of something that went wrong with a list.
pub(crate) fn missing(why: String) -> ServeError {
    refusal(
        ErrorCode::InternalError.code(),
        why,
        None,
        Revision::newest(Era::Modern),
    )
}
