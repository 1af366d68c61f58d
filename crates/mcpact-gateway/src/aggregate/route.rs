//! Which server a request is for.

use crate::aggregate::not_found;
use crate::handover::subscriptions;
use crate::lists::merge;
use crate::lists::refresh;
use crate::tasks::aggregate_tasks;
use std::sync::Arc;

use crate::error::ServeError;
use mcpact_config::{listed, shortened};
use mcpact_spec::{Capability, ErrorCode, Method, Revision};
use mcpact_wire::envelope::Params;
use mcpact_wire::raw::ObjectWriter;
use mcpact_wire::scan::text;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::name_table::may_have_hash_suffix;
use crate::aggregate::not_found::listed_of;
use crate::aggregate::rewrite::{Subject, subject, subject_key, with_subject};
use crate::aggregate::sealed_state::ItemNames;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::uri_table::{UriLookup, UriTable, is_qualified};
use crate::downstream::client::DownstreamClient;
use crate::exchange::refusal;
use crate::lists::merge::MAX_REPLACEMENTS;
use crate::lists::merged::Routes;
use crate::lists::request::ListRequest;
use crate::lists::scope::ListScope;
use crate::sync::lock;

/// Server and original name or URI of an item.
type Target = (Arc<ServerEntry>, Box<str>);

impl Aggregator {
    /// The server that a request is for.
    pub(crate) async fn route(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        method: Method,
        params: &str,
        client: Revision,
    ) -> Result<(Arc<ServerEntry>, Option<String>), ServeError> {
        let found = self.find(guest, &subject(method, params), client).await;
        let Some(found) = found else {
            return self.only_one(method, client);
        };
        let (entry, inner) = found?;
        if let Some(missing) = entry.lacks(method) {
            let why = format!(
                "`{method}`: server `{}` did not declare `{}`",
                entry.name,
                missing.path()
            );
            let code = ErrorCode::MethodNotFound.code();
            return Err(refusal(code, why, None, client));
        }
        let params = with_subject(method, params, &inner);
        Ok((entry, params))
    }

    /// Returns the server of a subject; none if there is no subject.
    pub(crate) async fn find(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        subject: &Subject<'_>,
        client: Revision,
    ) -> Option<Result<Target, ServeError>> {
        let mut left = MAX_REPLACEMENTS;
        loop {
            left -= 1;
            let server_set = self.server_set();
            let found = match subject {
                Subject::Tool(name) => self.by_name(guest, ListKind::Tools, name, client).await,
                Subject::Prompt(name) => self.by_name(guest, ListKind::Prompts, name, client).await,
                Subject::Uri(uri) => self.by_uri(guest, uri, client).await,
                Subject::Task(task) => aggregate_tasks::by_task(self, task, client),
                Subject::Nothing => return None,
            };
            // Names and URIs are forgotten when servers are replaced, which may have happened meanwhile.
            if found.is_ok() || left == 0 || self.is_current(&server_set) {
                return Some(found);
            }
        }
    }

    /// A request that names nothing can go to a server that is alone.
    fn only_one(
        &self,
        method: Method,
        client: Revision,
    ) -> Result<(Arc<ServerEntry>, Option<String>), ServeError> {
        match self.server_set().entries.as_slice() {
            [entry] => Ok((Arc::clone(entry), None)),
            [] | [_, ..] => {
                let servers = self.server_names();
                let why = match subject_key(method) {
                    Some(key) => format!(
                        "`{method}` needs a text as `{key}` in its params: there is none. The servers are: {servers}"
                    ),
                    None => format!(
                        "`{method}` does not say which of the servers it is for; use `/servers/NAME/mcp` for one of them: {servers}"
                    ),
                };
                Err(refusal(ErrorCode::InvalidParams.code(), why, None, client))
            }
        }
    }

    async fn by_name(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        kind: ListKind,
        name: &str,
        client: Revision,
    ) -> Result<Target, ServeError> {
        if let Some(found) = self.listed_for(guest, kind, name) {
            return Ok(found);
        }
        // Without a list the prefix determines the server, which reports unknown names itself. The request does not
        // wait for the lists of other servers.
        let guessed = self.guessed(kind, name);
        let is_unseen =
            |entry: &ServerEntry| self.merges.shared.named(kind).is_none() || entry.is_coming(kind);
        if let Some(found) = guessed.clone().filter(|(entry, _)| is_unseen(entry)) {
            return Ok(found);
        }
        if let Some((entry, _)) = &guessed {
            self.look_into_own(guest, entry, kind).await;
        }
        let merged_list = merge::merged_list(self, guest, kind, client).await?;
        if let Some(found) = self.listed_for(guest, kind, name) {
            return Ok(found);
        }
        // It may be about to be there by now.
        let coming = guessed.filter(|(entry, _)| entry.is_coming(kind));
        coming.ok_or_else(|| not_found::not_found(self, kind, name, &merged_list, client))
    }

    /// Returns the server with the prefix of a name, if it is the only one, and the original name. None if the item has
    /// another public name, the name belongs to another item, or only lists can tell.
    pub(crate) fn guessed(&self, kind: ListKind, name: &str) -> Option<Target> {
        if may_have_hash_suffix(name) {
            return None;
        }
        let server_set = self.server_set();
        let prefixes = server_set.entries.iter().map(|entry| &*entry.prefix);
        let guessed = server_set.style.guess(name, prefixes.enumerate());
        let [only] = guessed.as_slice() else {
            return None;
        };
        let entry = server_set.entries.get(only.server)?;
        let is_served = entry.serves(kind, &only.name)
            && self.merges.may_be(kind, name, &entry.origin(), &only.name);
        is_served.then(|| (Arc::clone(entry), only.name.clone()))
    }

    /// Whether a thing that its server refused is one that it has. A name alone may have led there, or a list from
    /// before the server slept.
    pub(crate) async fn check_listed(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        entry: &Arc<ServerEntry>,
        kind: ListKind,
        names: &ItemNames,
        client: Revision,
    ) -> Result<(), ServeError> {
        let listing = refresh::filtered_method(self, entry, guest, kind).await;
        // Without a list the error of the server stands.
        if listing.is_none_or(|listing| listing.names().contains(&names.inner)) {
            return Ok(());
        }
        let merged_list = merge::merged_list(self, guest, kind, client).await?;
        Err(not_found::unknown(
            self,
            kind,
            &names.outer,
            &merged_list,
            client,
        ))
    }

    /// A client's own instance, which is started if it has none, may have what is in no list that the client was shown.
    async fn look_into_own(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        entry: &Arc<ServerEntry>,
        kind: ListKind,
    ) {
        if entry.list_scope(true) == ListScope::Own {
            // Failures are reported if the name is not found.
            let _ = refresh::asked_for(self, ListRequest::of_own(entry, guest, kind)).await;
        }
    }

    /// Returns the item of a shared list.
    pub(crate) fn listed(&self, kind: ListKind, name: &str) -> Option<Target> {
        self.merges.shared.named(kind)?.lookup(name)
    }

    /// The same of those that the client is shown.
    fn listed_for(&self, guest: &DownstreamClient, kind: ListKind, name: &str) -> Option<Target> {
        let own = guest.own.merges.named(kind);
        let own = own.filter(|named| self.is_current(&named.server_set));
        let found = own.and_then(|named| named.lookup(name));
        found.or_else(|| self.listed(kind, name))
    }

    /// Returns the server of a URI. A URI that the client is subscribed to keeps its server. An ambiguous URI is refused,
    /// since the client would not notice a wrong server.
    async fn by_uri(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        uri: &str,
        client: Revision,
    ) -> Result<Target, ServeError> {
        if let Some(found) = self.meant(guest, uri) {
            return Ok(found);
        }
        if let Some(found) = self.addressed_for(guest, uri) {
            return Ok(found);
        }
        let merged_list = merge::merged_list(self, guest, ListKind::Resources, client).await?;
        if let Some(found) = self.addressed_for(guest, uri) {
            return Ok(found);
        }
        self.check_clear(uri, client)?;
        let server_set = self.server_set();
        // An address that names a server is not for another one.
        let mut having = server_set
            .entries
            .iter()
            .filter(|entry| !is_qualified(uri) && entry.has(Capability::Resources));
        if let (Some(only), None) = (having.next(), having.next()) {
            return Ok((Arc::clone(only), Box::from(uri)));
        }
        let templates = merge::merged_list(self, guest, ListKind::Templates, client).await?;
        let mut all = merged_list.keys(ListKind::Resources);
        all.extend(templates.keys(ListKind::Templates));
        Err(not_found::unknown_resource(self, uri, &all, client))
    }

    /// The server of which a client has subscribed to an address, as long as it is there.
    fn meant(&self, guest: &DownstreamClient, uri: &str) -> Option<Target> {
        let meant = guest.watched.get(uri)?;
        Some((subscriptions::numbered(self, meant.server()?)?, meant.inner))
    }

    fn addressed(&self, uri: &str) -> Option<Target> {
        let known = match self.merges.shared.addressed() {
            Some(known) => known,
            // A qualified URI names its server; no list is necessary.
            None if is_qualified(uri) => {
                let server_set = self.server_set();
                let table = server_set.uris();
                Arc::new(Routes { server_set, table })
            }
            None => return None,
        };
        self.lookup(&known, uri)
    }

    /// The same by what the client is shown.
    fn addressed_for(&self, guest: &DownstreamClient, uri: &str) -> Option<Target> {
        let own = guest.own.merges.addressed();
        let own = own.filter(|known| self.is_current(&known.server_set));
        let found = own.and_then(|known| self.lookup(&known, uri));
        found.or_else(|| self.addressed(uri))
    }

    fn lookup(&self, known: &Routes<UriTable>, uri: &str) -> Option<Target> {
        match known.table.lookup(uri, &self.seen_at(known, uri)) {
            UriLookup::Found { server, uri } => {
                let entry = known.server_set.entries.get(server)?;
                Some((Arc::clone(entry), Box::from(uri)))
            }
            UriLookup::Unknown | UriLookup::Ambiguous(_) => None,
        }
    }

    /// The server of the thing that a request names, if that can be told without asking anybody.
    pub(crate) fn named_by(&self, params: &Params<'_>) -> Option<Arc<ServerEntry>> {
        let found = match (params.name.and_then(text), params.uri.and_then(text)) {
            (Some(name), _) => {
                let mut kinds = [ListKind::Tools, ListKind::Prompts].into_iter();
                let known = kinds.clone().find_map(|kind| self.listed(kind, &name));
                known.or_else(|| kinds.find_map(|kind| self.guessed(kind, &name)))
            }
            (None, Some(uri)) => self.addressed(&uri),
            (None, None) => None,
        };
        found.map(|(entry, _)| entry)
    }

    /// Refuses an address that leaves open which server is meant.
    fn check_clear(&self, uri: &str, client: Revision) -> Result<(), ServeError> {
        let Some(known) = self.merges.shared.addressed() else {
            return Ok(());
        };
        let UriLookup::Ambiguous(forms) = known.table.lookup(uri, &self.seen_at(&known, uri))
        else {
            return Ok(());
        };
        let why = format!(
            "Several servers have the resource `{}`; say which one is meant: {}",
            shortened(uri),
            listed_of(uri, &forms)
        );
        let data = ObjectWriter::new().text("uri", uri).finish();
        let code = ErrorCode::InvalidParams.code();
        Err(refusal(code, why, Some(data), client))
    }

    /// Where the servers stand that have mentioned an address.
    fn seen_at(&self, known: &Routes<UriTable>, uri: &str) -> Vec<usize> {
        known.server_set.places(lock(&self.seen).owners(uri))
    }

    pub(crate) fn server_names(&self) -> String {
        let server_set = self.server_set();
        let names: Vec<&str> = server_set
            .entries
            .iter()
            .map(|entry| &*entry.name)
            .collect();
        listed("", &names)
    }
}

impl ServerSet {
    /// Where the server of a number stands.
    pub(crate) fn place(&self, number: u64) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.number == number)
    }

    /// Where the servers of these numbers stand that are there.
    pub(crate) fn places(&self, numbers: &[u64]) -> Vec<usize> {
        let numbers = numbers.iter();
        numbers.filter_map(|number| self.place(*number)).collect()
    }
}
