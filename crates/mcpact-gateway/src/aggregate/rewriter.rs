//! What a client sees of one server among several.

use crate::handover::subscriptions;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use bytestring::ByteString;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, Method};
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;
use smallvec::{SmallVec, smallvec};

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::{UriMap, edit, edit_questions, quoted};
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::task_ids::{TaskMap, qualified_id};
use crate::aggregate::uri_table::{MentionedUris, is_qualified, qualified};
use crate::downstream::sink::MessageRewriter;
use crate::subscriptions::watched_uris::WatchedUris;
use crate::sync::lock;

/// One server, as part of a aggregator.
#[derive(Clone, Debug)]
pub(crate) struct Rewriter {
    aggregator: Weak<Aggregator>,
    entry: Arc<ServerEntry>,
    watched: Arc<WatchedUris>,
}

impl Rewriter {
    pub(crate) fn new(
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
        watched: &Arc<WatchedUris>,
    ) -> Self {
        Self {
            aggregator: Arc::downgrade(aggregator),
            entry: Arc::clone(entry),
            watched: Arc::clone(watched),
        }
    }

    /// A result with the addresses that clients use.
    pub(crate) fn result(&self, method: Method, raw: ByteString) -> ByteString {
        let asks = |method: Method, params: &str| self.asked(method, params);
        let shown = self.tasks().result(method, &raw);
        let raw = shown.map_or(raw, Into::into);
        if let Some(asking) = edit_questions(&raw, asks) {
            return asking.into();
        }
        match UriMap(|uri: &str| self.shown(uri)).result(method, &raw) {
            Cow::Owned(shown) => shown.into(),
            Cow::Borrowed(_) => raw,
        }
    }

    /// An error with the addresses that clients use: the one that was asked for as it was. What is in an
    /// error need not be there, so that nothing is remembered of it.
    pub(crate) fn error(&self, mut error: WireError, asked: Option<&str>) -> WireError {
        let shown = |uri: &str| {
            let named = qualified(&self.entry.name, uri);
            if asked == Some(uri) {
                return None;
            }
            let aggregator = self.aggregator.upgrade()?;
            let is_plain = || self.is_plain(&aggregator, &lock(&aggregator.seen), uri);
            (asked == Some(&named) || is_plain() == Some(false)).then_some(named)
        };
        if let Some(data) = &error.data
            && let Some(shown) = UriMap(shown).member(data)
        {
            error.data = Some(shown);
        }
        error
    }

    /// Returns the public form of a URI, if it differs. The server of an unqualified URI is recorded, since the URI may
    /// be unlisted.
    fn shown(&self, uri: &str) -> Option<String> {
        let aggregator = self.aggregator.upgrade()?;
        let mut seen = lock(&aggregator.seen);
        match self.is_plain(&aggregator, &seen, uri)? {
            true => {
                seen.record(self.entry.number, uri);
                None
            }
            false => Some(qualified(&self.entry.name, uri)),
        }
    }

    /// Returns true if the URI is shown unqualified: it leads to this server, or clients can open it directly. None if
    /// the server was removed.
    fn is_plain(&self, aggregator: &Aggregator, seen: &MentionedUris, uri: &str) -> Option<bool> {
        if is_of_the_web(uri) {
            return Some(true);
        }
        let Some(known) = aggregator.merges.shared.addressed() else {
            return Some(!is_qualified(uri) && !self.has_rivals(aggregator));
        };
        let at = known.server_set.place(self.entry.number)?;
        let seen = known.server_set.places(seen.owners(uri));
        Some(known.table.is_plain(at, uri, &seen))
    }

    /// Whether the server is one of those that the client sees.
    fn is_there(&self) -> bool {
        let aggregator = self.aggregator.upgrade();
        aggregator.is_some_and(|aggregator| {
            subscriptions::numbered(&aggregator, self.entry.number).is_some()
        })
    }

    /// Whether another server may have the same addresses, as far as anybody knows.
    fn has_rivals(&self, aggregator: &Aggregator) -> bool {
        let server_set = aggregator.server_set();
        let mut others = server_set.entries.iter();
        others.any(|entry| {
            entry.number != self.entry.number
                && (entry.known().is_none() || entry.has(Capability::Resources))
        })
    }

    /// A resource has changed: under every address by which the client has subscribed to it.
    fn updates<'a>(&self, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]> {
        // A removed server only finishes its calls.
        if !self.is_there() {
            return SmallVec::new();
        }
        let number = self.entry.number;
        let told = with_each_uri(params, |uri| self.watched.public_uris(number, uri));
        if !told.is_empty() {
            return told;
        }
        let shown = UriMap(|uri: &str| self.shown(uri)).member(params);
        smallvec![shown.map_or(Cow::Borrowed(params), Cow::Owned)]
    }

    /// Returns the rewriter of task ids, which qualifies them with the server name.
    fn tasks(&self) -> TaskMap<impl Fn(&str) -> String> {
        TaskMap(|task: &str| qualified_id(&self.entry.name, task))
    }

    /// Returns a question with the name of the server, since users see only the gateway.
    fn asked(&self, method: Method, params: &str) -> Option<String> {
        let of_task = self.tasks().params(method, params);
        let params = of_task.as_deref().unwrap_or(params);
        let signed = match method {
            Method::ElicitationCreate => edit(params, "message", |raw| self.signed(raw)),
            _ => None,
        };
        signed.or(of_task)
    }

    /// The same text with the server's name before it.
    fn signed(&self, raw: &str) -> Option<String> {
        Some(quoted(&format!("[{}] {}", self.entry.name, text(raw)?)))
    }

    /// The name of a log, with the server's name before it.
    fn logger(&self, params: &str) -> Option<String> {
        edit(params, "logger", |raw| {
            Some(quoted(&format!("{}/{}", self.entry.name, text(raw)?)))
        })
    }
}

/// What names an address, for each of the addresses that the client has for it.
pub(crate) fn with_each_uri(
    params: &str,
    addresses: impl FnOnce(&str) -> BTreeSet<String>,
) -> SmallVec<[Cow<'_, str>; 1]> {
    let named = Object::parse(params).unwrap_or_default();
    let addresses = named.get_str("uri").map(|uri| addresses(&uri));
    let addresses = addresses.unwrap_or_default();
    let each = addresses.iter();
    each.filter_map(|address| edit(params, "uri", |_| Some(quoted(address))))
        .map(Cow::Owned)
        .collect()
}

/// Returns true if clients can open the URI directly, so that it has the same meaning for all servers (`2025-11-25
/// server/resources#common-uri-schemes`).
fn is_of_the_web(uri: &str) -> bool {
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
    let is = |known| scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(known));
    is("https") || is("http")
}

impl MessageRewriter for Rewriter {
    fn notes<'a>(&self, method: Method, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]> {
        // The aggregator tells of lists itself, once for all servers.
        if ListKind::changed_by(method).is_some() {
            return SmallVec::new();
        }
        if method == Method::ResourcesUpdated {
            return self.updates(params);
        }
        let of_task = self.tasks().params(method, params);
        let inner = of_task.as_deref().unwrap_or(params);
        let changed = match method {
            Method::LoggingMessage => self.logger(inner),
            Method::TasksChanged => edit_questions(inner, |method, raw| self.asked(method, raw)),
            _ => None,
        };
        let changed = changed.or(of_task);
        smallvec![changed.map_or(Cow::Borrowed(params), Cow::Owned)]
    }

    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str> {
        let asked = self.asked(method, params);
        asked.map_or(Cow::Borrowed(params), Cow::Owned)
    }
}
