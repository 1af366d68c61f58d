//! Whole lists of a server, for whoever shows several servers as one.

use std::sync::Arc;

use bytes::Bytes;
use mcpact::server::backend::{Opening, Reach, Welcome};
use mcpact_bridge::shape::{lower_result, raise_result};
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Capability, Era, ErrorCode, Method, Revision};
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::ObjectWriter;

use super::Bridge;
use super::acquaintance::{Herald, Met};
use super::caller::Caller;
use super::crossing::{Told, stamped, wire_error};
use super::lane::Lane;
use super::port::{Boarded, Shared};
use crate::aggregate::kind::ListKind;
use crate::aggregate::merge::{CacheHint, Page, Part};
use crate::upstream::{Event, Loss, Ordered, Reply, text};

/// How many pages a list may have.
const PAGES: usize = 1000;

/// A whole list as the server gave it.
#[derive(Debug)]
pub(crate) struct Listing {
    kind: ListKind,
    revision: Revision,
    pages: Vec<Bytes>,
}

impl Listing {
    /// A list of which the server has nothing.
    pub(crate) const fn empty(kind: ListKind, revision: Revision) -> Self {
        Self {
            kind,
            revision,
            pages: Vec::new(),
        }
    }

    /// Its items in the words of a client of this revision.
    pub(crate) fn part(&self, server: usize, client: Revision) -> Part {
        let mut part = Part {
            server,
            items: Vec::new(),
            hint: CacheHint::default(),
        };
        for (at, page) in self.pages.iter().enumerate() {
            let raw = text(page);
            let method = self.kind.method();
            let shaped = match client.era() {
                _ if client == self.revision => Ok(raw.into()),
                Era::Legacy => lower_result(method, raw, client),
                Era::Modern => raise_result(method, raw, client, None),
            };
            let Some(page) = shaped
                .as_deref()
                .ok()
                .and_then(|r| Page::parse(self.kind, r))
            else {
                tracing::warn!(%method, "a page of the server cannot be shown");
                continue;
            };
            if at == 0 {
                part.hint = page.hint;
            }
            part.items.extend(page.items.into_iter().map(Box::from));
        }
        part
    }
}

impl Bridge {
    /// A client that comes by way of somebody else.
    pub(crate) async fn receive(
        &self,
        opening: Opening<'_>,
        principal: &str,
    ) -> Result<Arc<Caller>, WireError> {
        let Welcome { state, .. } = self.admit(opening, principal).await?;
        let caller = state.and_then(|state| state.downcast::<Caller>().ok());
        caller.ok_or_else(|| {
            let why = String::from("the client did not introduce itself in a way that can be read");
            wire_error(ErrorCode::InvalidParams.code(), why, None, Revision::LATEST)
        })
    }

    /// What the server last said about itself.
    pub(crate) fn met(&self) -> Option<Arc<Met>> {
        self.shared.acquaintance.met()
    }

    /// From here on this one hears of changes.
    pub(crate) fn tell_of_changes(&self, herald: std::sync::Weak<dyn Herald>) {
        self.shared.acquaintance.tell_to(herald);
    }

    /// A whole list, page by page.
    pub(crate) async fn list(&self, caller: &Caller, kind: ListKind) -> Result<Listing, WireError> {
        let boarded = caller.board().await.map_err(|error| error.on_wire())?;
        let Boarded {
            lane,
            in_use: _in_use,
        } = boarded;
        let mut pages = Vec::new();
        let mut params = String::from("{}");
        while pages.len() < PAGES {
            let page = lane.page(caller, kind, &params).await?;
            let next = Page::parse(kind, text(&page)).and_then(|page| page.next);
            if kind == ListKind::Tools {
                lane.learn_tools(text(&page));
            }
            pages.push(page);
            match next {
                Some(cursor) => params = ObjectWriter::new().text("cursor", &cursor).finish(),
                None => break,
            }
        }
        Ok(Listing {
            kind,
            revision: lane.revision(),
            pages,
        })
    }
}

impl Lane {
    async fn page(
        &self,
        caller: &Caller,
        kind: ListKind,
        params: &str,
    ) -> Result<Bytes, WireError> {
        let stamped = match self.revision().era() {
            Era::Legacy => None,
            Era::Modern => {
                let told = Told::AsDeclared;
                let stamped = stamped(caller, Reach::Stream, told, self.revision(), params);
                // Modern clients say themselves who they are; a list is everybody's.
                let own = || self.own_stamp(params);
                Some(stamped.ok().flatten().unwrap_or_else(own))
            }
        };
        let order = Ordered {
            method: Some(kind.method()),
            name: kind.method().as_str(),
            params: stamped.as_deref().unwrap_or(params),
            trace: None,
        };
        let number = self.upstream.next_id();
        let mut call = self.upstream.call(number, order, &self.book).await;
        loop {
            match call.next().await {
                Event::Done(Reply::Result(raw)) => return Ok(raw),
                Event::Done(Reply::Error(raw)) => return Err(told(text(&raw))),
                Event::Lost(loss) => return Err(lost(&loss)),
                Event::Note(_) => {}
                Event::Ask(ask) => self.refuse_during(&ask, Some(kind.method())).await,
            }
        }
    }

    /// Parameters for a modern server on nobody's behalf.
    fn own_stamp(&self, params: &str) -> String {
        let stamp = Stamp {
            version: self.revision().as_str(),
            capabilities: "{}",
            client_info: None,
            log_level: None,
        };
        stamp
            .apply(Some(params))
            .unwrap_or_else(|_| params.to_owned())
    }

    /// Hears of changed lists of a modern server, as long as the connection lives. A legacy server
    /// tells without being asked.
    pub(super) fn watch(self: &Arc<Self>, shared: &Arc<Shared>) {
        let declared = self.upstream.introduction.capabilities.declared();
        let filter = ListenFilter {
            tools: declared.has(Capability::ToolsListChanged),
            prompts: declared.has(Capability::PromptsListChanged),
            resources: declared.has(Capability::ResourcesListChanged),
            ..ListenFilter::default()
        };
        if self.revision().era() == Era::Legacy || filter == ListenFilter::default() {
            return;
        }
        let (lane, shared) = (Arc::downgrade(self), Arc::downgrade(shared));
        let watching = tokio::spawn(async move {
            let Some(here) = lane.upgrade() else {
                return;
            };
            let params = ObjectWriter::new().raw("notifications", &filter.encode());
            let params = here.own_stamp(&params.finish());
            let order = Ordered {
                method: Some(Method::SubscriptionsListen),
                name: Method::SubscriptionsListen.as_str(),
                params: &params,
                trace: None,
            };
            let number = here.upstream.next_id();
            let mut call = here.upstream.call(number, order, &here.book).await;
            // The connection may end while somebody listens.
            drop(here);
            loop {
                match call.next().await {
                    Event::Note(note) => match shared.upgrade() {
                        Some(shared) => shared.acquaintance.tell(note.method),
                        None => return,
                    },
                    Event::Ask(_) => {}
                    Event::Done(_) | Event::Lost(_) => return,
                }
            }
        });
        // It is called once for each connection.
        let _ = self.watching.set(watching.abort_handle());
    }
}

/// An error of the server as it came.
fn told(raw: &str) -> WireError {
    match ErrorBody::parse(raw) {
        Some(body) => {
            let data = body.data.map(str::to_owned);
            wire_error(body.code, body.message.into_owned(), data, Revision::LATEST)
        }
        None => lost(&Loss::Connection(String::from("its error cannot be read"))),
    }
}

fn lost(loss: &Loss) -> WireError {
    let why = match loss {
        Loss::Session => String::from("the server forgot the session"),
        Loss::Unsent(why) | Loss::Connection(why) => why.clone(),
        Loss::Status(status) => format!("the server answered with status {status}"),
    };
    wire_error(ErrorCode::InternalError.code(), why, None, Revision::LATEST)
}
