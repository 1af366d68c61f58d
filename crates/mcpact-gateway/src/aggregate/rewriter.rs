//! Rewriting of the messages of one server for a client of the aggregator.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use mcpact::connection::RawResult;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, Method};
use mcpact_wire::raw::Object;
use mcpact_wire::scan::{SeenKeys, text};
use smallvec::{SmallVec, smallvec};

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::{UriMap, edit, edit_questions, quoted};
use crate::aggregate::sealed_state::ItemNames;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::task_ids::{TaskMap, qualified_id};
use crate::aggregate::uri_table::{MentionedUris, in_scheme, is_reserved, qualified};
use crate::downstream::sink::MessageRewriter;
use crate::handover::subscriptions;
use crate::subscriptions::watched_uris::WatchedUris;
use crate::sync::lock;

/// Rewriter of the messages of one server: public URIs, qualified task ids, and the server name in questions and logs.
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

    /// Returns a result with public URIs and task ids. What is read in the scheme of the server keeps the form of the request.
    pub(crate) fn result(
        &self,
        method: Method,
        mut raw: RawResult,
        names: impl Fn() -> ItemNames,
    ) -> RawResult {
        if raw.may_have(SeenKeys::TASK_ID)
            && let Some(with_tasks) = self.tasks().result(method, &raw)
        {
            raw = with_tasks.into();
        }
        let questions = || edit_questions(&raw, |method, params| self.rewritten(method, params));
        let may_ask = raw.may_have(SeenKeys::INPUT_REQUESTS);
        let with_questions = may_ask.then(questions).flatten();
        if with_questions.is_none() && !raw.may_have(SeenKeys::URI) {
            return raw;
        }
        let is_read = matches!(
            method,
            Method::ResourcesRead | Method::ResourcesDirectoryRead
        );
        let is_in_scheme = |read: ItemNames| in_scheme(&self.entry.name, &read.inner) == read.outer;
        let is_of_skill = method == Method::SkillsGet || (is_read && is_in_scheme(names()));
        let mut uris = UriMap(|uri: &str| match is_of_skill {
            true => Some(self.public_skill(uri)),
            false => self.public_uri(uri),
        });
        let changed = with_questions.or_else(|| uris.result(method, &raw));
        changed.map_or(raw, Into::into)
    }

    /// Returns an error with public URIs. The requested URI has the form of the request. The URIs are not recorded, since
    /// the resource may not exist.
    pub(crate) fn error(&self, mut error: WireError, requested: Option<&str>) -> WireError {
        let public = |uri: &str| {
            let qualified = qualified(&self.entry.name, uri);
            if requested == Some(uri) {
                return None;
            }
            let aggregator = self.aggregator.upgrade()?;
            let is_plain = || self.is_plain(&aggregator, &lock(&aggregator.mentioned), uri);
            (requested == Some(&qualified) || is_plain() == Some(false)).then_some(qualified)
        };
        if let Some(data) = &error.data
            && let Some(data) = UriMap(public).member(data)
        {
            error.data = Some(data);
        }
        error
    }

    /// Returns the public form of a file of a skill. Its server is recorded, since instructions may name the original URI.
    fn public_skill(&self, uri: &str) -> String {
        if let Some(aggregator) = self.aggregator.upgrade() {
            lock(&aggregator.mentioned).record(self.entry.number, uri);
        }
        in_scheme(&self.entry.name, uri)
    }

    /// Returns the public form of a URI, if it differs. The server of an unqualified URI is recorded, since the URI may
    /// be unlisted.
    fn public_uri(&self, uri: &str) -> Option<String> {
        let aggregator = self.aggregator.upgrade()?;
        let mut mentioned = lock(&aggregator.mentioned);
        if !self.is_plain(&aggregator, &mentioned, uri)? {
            return Some(qualified(&self.entry.name, uri));
        }
        mentioned.record(self.entry.number, uri);
        None
    }

    /// Returns true if the URI is shown unqualified: it leads to this server, or clients can open it directly. None if
    /// the server was removed.
    fn is_plain(
        &self,
        aggregator: &Aggregator,
        mentioned: &MentionedUris,
        uri: &str,
    ) -> Option<bool> {
        if is_web_uri(uri) {
            return Some(true);
        }
        let Some(known) = aggregator.merges.shared.uris() else {
            return Some(!is_reserved(uri) && !self.may_share_uris(aggregator));
        };
        let at = known.server_set.position(self.entry.number)?;
        let mentioned = known.server_set.positions(mentioned.owners(uri));
        Some(known.table.is_plain(at, uri, &mentioned))
    }

    /// Returns true if another server may have the same URIs.
    fn may_share_uris(&self, aggregator: &Aggregator) -> bool {
        let server_set = aggregator.server_set();
        let mut others = server_set.entries.iter();
        others.any(|entry| {
            entry.number != self.entry.number
                && (entry.profile().is_none() || entry.has(Capability::Resources))
        })
    }

    /// Returns the notifications of an updated resource: one for each URI that the client subscribed to.
    fn updates<'a>(&self, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]> {
        let number = self.entry.number;
        let aggregator = self.aggregator.upgrade();
        // A removed server only finishes its calls.
        if aggregator.is_none_or(|of| subscriptions::numbered(&of, number).is_none()) {
            return SmallVec::new();
        }
        let updates = with_each_uri(params, |uri| self.watched.public_uris(number, uri));
        if !updates.is_empty() {
            return updates;
        }
        let public = UriMap(|uri: &str| self.public_uri(uri)).member(params);
        smallvec![public.map_or(Cow::Borrowed(params), Cow::Owned)]
    }

    /// Returns the rewriter of task ids, which qualifies them with the server name.
    fn tasks(&self) -> TaskMap<impl Fn(&str) -> String> {
        TaskMap(|task: &str| qualified_id(&self.entry.name, task))
    }

    /// Returns the parameters of a question or log message with qualified task ids and the name of the server, since
    /// users see only the gateway. None if nothing changes.
    fn rewritten(&self, method: Method, params: &str) -> Option<String> {
        let with_tasks = self.tasks().params(method, params);
        let params = with_tasks.as_deref().unwrap_or(params);
        let name = &self.entry.name;
        let changed = match method {
            Method::ElicitationCreate => edit(params, "message", |raw| {
                Some(quoted(&format!("[{name}] {}", text(raw)?)))
            }),
            Method::LoggingMessage => edit(params, "logger", |raw| {
                Some(quoted(&format!("{name}/{}", text(raw)?)))
            }),
            _ => None,
        };
        changed.or(with_tasks)
    }
}

/// Returns parameters with each of the URIs that replace the one in `params`.
pub(crate) fn with_each_uri(
    params: &str,
    replace: impl FnOnce(&str) -> BTreeSet<String>,
) -> SmallVec<[Cow<'_, str>; 1]> {
    let object = Object::parse(params).unwrap_or_default();
    let uris = object.get_str("uri").map(|uri| replace(&uri));
    let with_uri = |uri: String| Some(edit(params, "uri", |_| Some(quoted(&uri)))?.into());
    uris.into_iter().flatten().filter_map(with_uri).collect()
}

/// Returns true if clients can open the URI directly, so that it has the same meaning for all servers (`2025-11-25
/// server/resources#common-uri-schemes`).
fn is_web_uri(uri: &str) -> bool {
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
    let is = |known| scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(known));
    is("https") || is("http")
}

impl MessageRewriter for Rewriter {
    fn notifications<'a>(&self, method: Method, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]> {
        // The aggregator announces changed lists itself, once for all servers.
        if ListKind::changed_by(method).is_some() {
            return SmallVec::new();
        }
        if method == Method::ResourcesUpdated {
            return self.updates(params);
        }
        let rewritten = self.rewritten(method, params);
        let inner = rewritten.as_deref().unwrap_or(params);
        let with_questions = match method {
            Method::TasksChanged => edit_questions(inner, |of, raw| self.rewritten(of, raw)),
            _ => None,
        };
        let changed = with_questions.or(rewritten);
        smallvec![changed.map_or(Cow::Borrowed(params), Cow::Owned)]
    }

    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str> {
        let rewritten = self.rewritten(method, params);
        rewritten.map_or(Cow::Borrowed(params), Cow::Owned)
    }
}
