//! Routing: maps the subject of a request to a server and its original name or URI.

use std::sync::Arc;

use mcpact::server::backend::RawParams;
use mcpact_config::listed;
use mcpact_spec::{Capability, ErrorCode, Method, Revision};
use mcpact_wire::envelope::Params;
use mcpact_wire::raw::ObjectWriter;
use mcpact_wire::scan::text;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::gateway_tools;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::name_table::may_have_hash_suffix;
use crate::aggregate::not_found;
use crate::aggregate::rewrite::{Subject, subject, subject_key, with_subject};
use crate::aggregate::sealed_state::ItemNames;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::uri_table::{UriTable, VIEWS, is_qualified, qualified};
use crate::downstream::client::DownstreamClient;
use crate::error::ServeError;
use crate::exchange::{refusal, refuse};
use crate::handover::subscriptions;
use crate::lists::merged::{MAX_REPLACEMENTS, Routes, merged_list};
use crate::lists::request::ListRequest;
use crate::lists::scope::ListScope;
use crate::sync::lock;
use crate::tasks::aggregate_tasks;

/// Server and original name or URI of an item.
type Target = (Arc<ServerEntry>, Box<str>);

/// Returns the subject of a request. Only a call that is not plain is parsed.
fn subject_of(method: Method, params: &RawParams) -> Subject<'_> {
    match (method, params.is_plain_call()) {
        (Method::ToolsCall, true) => params.name().map_or(Subject::Nothing, Subject::Tool),
        (Method::PromptsGet, true) => params.name().map_or(Subject::Nothing, Subject::Prompt),
        _ => subject(method, params),
    }
}

impl Aggregator {
    /// Returns the server of a request, and the parameters with the names of that server if they differ.
    pub(crate) async fn select(
        self: &Arc<Self>,
        client: &Arc<DownstreamClient>,
        method: Method,
        params: &RawParams,
        revision: Revision,
    ) -> Result<(Arc<ServerEntry>, Option<RawParams>), ServeError> {
        let subject = subject_of(method, params);
        let found = self.find(client, &subject, revision).await;
        let Some(found) = found else {
            return self.only_one(method, revision);
        };
        let (entry, inner) = found?;
        if let Some(missing) = entry.lacks(method) {
            let why = format!(
                "`{method}`: server `{}` did not declare `{}`",
                entry.name,
                missing.path()
            );
            return Err(refuse(ErrorCode::MethodNotFound, why, revision));
        }
        if !entry.extends(method) {
            let why = format!(
                "server `{}` does not serve `{method}` for this URI",
                entry.name
            );
            return Err(refuse(ErrorCode::InvalidParams, why, revision));
        }
        let renamed = params.with_name(&inner);
        let params = renamed.or_else(|| Some(with_subject(method, params, &inner)?.into()));
        Ok((entry, params))
    }

    /// Returns the server of a subject; none if there is no subject.
    pub(crate) async fn find(
        self: &Arc<Self>,
        client: &Arc<DownstreamClient>,
        subject: &Subject<'_>,
        revision: Revision,
    ) -> Option<Result<Target, ServeError>> {
        let mut left = MAX_REPLACEMENTS;
        loop {
            left -= 1;
            let server_set = self.server_set();
            let found = match subject {
                Subject::Tool(name) => self.by_name(client, ListKind::Tools, name, revision).await,
                Subject::Prompt(name) => {
                    self.by_name(client, ListKind::Prompts, name, revision)
                        .await
                }
                Subject::Uri(uri) => self.by_uri(client, uri, revision).await,
                Subject::Task(task) => aggregate_tasks::by_task(self, task, revision),
                Subject::Nothing => return None,
            };
            // A replacement of the servers, which may have happened meanwhile, discards names and URIs.
            if found.is_ok() || left == 0 || self.is_current(&server_set) {
                return Some(found);
            }
        }
    }

    /// Returns the server of a request without a subject, if there is only one.
    fn only_one(
        &self,
        method: Method,
        revision: Revision,
    ) -> Result<(Arc<ServerEntry>, Option<RawParams>), ServeError> {
        if let [entry] = self.server_set().entries.as_slice() {
            return Ok((Arc::clone(entry), None));
        }
        let servers = self.server_names();
        let why = match subject_key(method) {
            Some(key) => {
                format!("`{method}` needs the string `{key}` in its params; servers: {servers}")
            }
            None => format!(
                "`{method}` does not name a server; use `/servers/NAME/mcp` for one of: {servers}"
            ),
        };
        Err(refuse(ErrorCode::InvalidParams, why, revision))
    }

    async fn by_name(
        self: &Arc<Self>,
        client: &Arc<DownstreamClient>,
        kind: ListKind,
        name: &str,
        revision: Revision,
    ) -> Result<Target, ServeError> {
        if let Some(found) = self.listed_for(client, kind, name) {
            return Ok(found);
        }
        // Without a list the prefix determines the server, which reports unknown names itself. The request does not
        // wait for the lists of other servers.
        let by_prefix = self.by_prefix(kind, name);
        let is_unlisted =
            |entry: &ServerEntry| self.merges.shared.names(kind).is_none() || entry.is_coming(kind);
        if let Some(found) = by_prefix.clone().filter(|(entry, _)| is_unlisted(entry)) {
            return Ok(found);
        }
        // The client's own instance may have items that the client was not shown. It is started if necessary.
        if let Some((entry, _)) = &by_prefix
            && entry.list_scope(true) == ListScope::Own
        {
            let request = ListRequest::new(self, entry, client, kind).own();
            // Failures are reported if the name is not found.
            let _ = request.refetched().await;
        }
        let list = merged_list(self, client, kind, revision).await?;
        if let Some(found) = self.listed_for(client, kind, name) {
            return Ok(found);
        }
        // The server may be starting by now.
        if let Some(coming) = by_prefix.filter(|(entry, _)| entry.is_coming(kind)) {
            return Ok(coming);
        }
        let original = self.by_original_name(client, kind, name, revision)?;
        original.ok_or_else(|| not_found::not_found(self, kind, name, &list, revision))
    }

    /// Returns the only item with this original name, by which a view calls the tools of its own server. An ambiguous name
    /// is refused. A name that clients know as a public one never gets another meaning.
    fn by_original_name(
        &self,
        client: &DownstreamClient,
        kind: ListKind,
        name: &str,
        revision: Revision,
    ) -> Result<Option<Target>, ServeError> {
        let own = client.own_lists.merges.names(kind);
        let own = own.filter(|names| self.is_current(&names.server_set));
        let names = own.or_else(|| self.merges.shared.names(kind));
        let Some(names) = names.filter(|_| !self.merges.is_taken(kind, name)) else {
            return Ok(None);
        };
        let entries = names.server_set.entries.iter().enumerate();
        let prefixed = entries.filter(|(_, entry)| !entry.prefix.is_empty());
        let having =
            prefixed.filter_map(|(at, entry)| Some((entry, names.table.public_name(at, name)?)));
        let having: Vec<_> = having.collect();
        match having.as_slice() {
            [] => Ok(None),
            [(only, _)] => Ok(Some((Arc::clone(only), Box::from(name)))),
            several => {
                let forms: Vec<_> = several.iter().map(|(_, public)| (*public).into()).collect();
                let why = not_found::ambiguous(not_found::word(kind), name, &forms);
                Err(refuse(ErrorCode::InvalidParams, why, revision))
            }
        }
    }

    /// Returns the server with the prefix of a name, if it is the only one, and the original name. None if the item has
    /// another public name, the name belongs to another item, or only lists can tell.
    pub(crate) fn by_prefix(&self, kind: ListKind, name: &str) -> Option<Target> {
        if may_have_hash_suffix(name) {
            return None;
        }
        let server_set = self.server_set();
        let [(entry, inner)] = *server_set.by_prefix(name) else {
            return None;
        };
        let is_served =
            entry.serves(kind, inner) && self.merges.may_be(kind, name, &entry.origin(), inner);
        is_served.then(|| (Arc::clone(entry), Box::from(inner)))
    }

    /// Checks that an item that its server refused is listed. The request may have been routed by the prefix, or by an
    /// outdated list.
    pub(crate) async fn check_listed(
        self: &Arc<Self>,
        client: &Arc<DownstreamClient>,
        entry: &Arc<ServerEntry>,
        kind: ListKind,
        names: &ItemNames,
        revision: Revision,
    ) -> Result<(), ServeError> {
        let request = ListRequest::new(self, entry, client, kind);
        // Without a list the error of the server is returned.
        let list = request.current().await;
        if list.is_none_or(|list| list.names().contains(&names.inner)) {
            return Ok(());
        }
        let list = merged_list(self, client, kind, revision).await?;
        let name = &names.outer;
        Err(not_found::unknown(self, kind, name, &list, revision))
    }

    /// Returns the item of a shared list.
    pub(crate) fn listed(&self, kind: ListKind, name: &str) -> Option<Target> {
        self.merges.shared.names(kind)?.lookup(name)
    }

    /// Returns the item of the list that the client is shown.
    fn listed_for(&self, client: &DownstreamClient, kind: ListKind, name: &str) -> Option<Target> {
        let own = client.own_lists.merges.names(kind);
        let own = own.filter(|names| self.is_current(&names.server_set));
        let found = own.and_then(|names| names.lookup(name));
        found.or_else(|| self.listed(kind, name))
    }

    /// Returns the server of a URI. A URI that the client is subscribed to keeps its server. An ambiguous URI is refused,
    /// since the client would not notice a wrong server.
    async fn by_uri(
        self: &Arc<Self>,
        client: &Arc<DownstreamClient>,
        uri: &str,
        revision: Revision,
    ) -> Result<Target, ServeError> {
        let known = self.subscribed_for(client, uri);
        if let Some(found) = known.or_else(|| self.resource_for(client, uri)) {
            return Ok(found);
        }
        if uri.starts_with(VIEWS) {
            // Servers need not list the views that their tools name.
            merged_list(self, client, ListKind::Tools, revision).await?;
        }
        let resources = merged_list(self, client, ListKind::Resources, revision).await?;
        if let Some(found) = self.resource_for(client, uri) {
            return Ok(found);
        }
        // Instructions name the files of skills by their original URIs, which no list of resources needs to have.
        merged_list(self, client, ListKind::Skills, revision).await?;
        if let Some(found) = self.resource_for(client, uri) {
            return Ok(found);
        }
        self.check_unambiguous(uri, revision)?;
        let server_set = self.server_set();
        let segment = server_set.uris().segment(uri);
        let in_scheme = segment.and_then(|(server, inner)| {
            let entry = server_set.entries.get(server)?;
            Some((Arc::clone(entry), Box::from(inner)))
        });
        // Neither lists of skills nor those of their files are complete.
        let has_skills = |(entry, _): &Target| entry.extends(Method::SkillsGet);
        if let Some(found) = in_scheme.clone().filter(has_skills)
            && !uri.starts_with(VIEWS)
        {
            return Ok(found);
        }
        // A qualified URI belongs to the named server only.
        let entries = server_set.entries.iter();
        let mut having = entries.filter(|entry| entry.has(Capability::Resources));
        if !is_qualified(uri)
            && let (Some(only), None) = (having.next(), having.next())
        {
            return Ok((Arc::clone(only), Box::from(uri)));
        }
        // The result of a call may have named a view that is in no list.
        if let Some(found) = in_scheme.filter(|_| uri.starts_with(VIEWS)) {
            return Ok(found);
        }
        let templates = merged_list(self, client, ListKind::Templates, revision).await?;
        let mut all = resources.keys(ListKind::Resources);
        all.extend(templates.keys(ListKind::Templates));
        Err(not_found::unknown_resource(self, uri, &all, revision))
    }

    /// Returns the server at which a client subscribed to a URI, if it still exists.
    fn subscribed_for(&self, client: &DownstreamClient, uri: &str) -> Option<Target> {
        let watched = client.watched.get(uri)?;
        let entry = subscriptions::numbered(self, watched.server()?)?;
        Some((entry, watched.inner))
    }

    /// Returns the resource of a shared list.
    fn resource(&self, uri: &str) -> Option<Target> {
        let known = match self.merges.shared.uris() {
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

    /// Returns the resource of the list that the client is shown.
    fn resource_for(&self, client: &DownstreamClient, uri: &str) -> Option<Target> {
        let own = client.own_lists.merges.uris();
        let own = own.filter(|known| self.is_current(&known.server_set));
        let found = own.and_then(|known| self.lookup(&known, uri));
        found.or_else(|| self.resource(uri))
    }

    fn lookup(&self, known: &Routes<UriTable>, uri: &str) -> Option<Target> {
        let (servers, uri) = known.table.lookup(uri, &self.mentioned_at(known, uri));
        let [server] = *servers else {
            return None;
        };
        let entry = known.server_set.entries.get(server)?;
        Some((Arc::clone(entry), uri.into()))
    }

    /// Returns the server of the item that a request names, without requests to servers.
    pub(crate) fn named_by(&self, params: &Params<'_>) -> Option<Arc<ServerEntry>> {
        let name = gateway_tools::called(&self.settings.tools, params);
        let found = match (name.and_then(text), params.uri.and_then(text)) {
            (Some(name), _) => {
                let mut kinds = [ListKind::Tools, ListKind::Prompts].into_iter();
                let known = kinds.clone().find_map(|kind| self.listed(kind, &name));
                known.or_else(|| kinds.find_map(|kind| self.by_prefix(kind, &name)))
            }
            (None, Some(uri)) => self.resource(&uri),
            (None, None) => None,
        };
        found.map(|(entry, _)| entry)
    }

    /// Refuses a URI of several servers.
    fn check_unambiguous(&self, uri: &str, revision: Revision) -> Result<(), ServeError> {
        let Some(known) = self.merges.shared.uris() else {
            return Ok(());
        };
        let (servers, uri) = known.table.lookup(uri, &self.mentioned_at(&known, uri));
        if servers.len() < 2 {
            return Ok(());
        }
        let entries = &known.server_set.entries;
        let servers = servers.iter().filter_map(|server| entries.get(*server));
        let forms: Vec<_> = servers.map(|entry| qualified(&entry.name, &uri)).collect();
        let why = not_found::ambiguous("resource", &uri, &forms);
        let data = ObjectWriter::new().text("uri", &uri).finish();
        let code = ErrorCode::InvalidParams.code();
        Err(refusal(code, why, Some(data), revision))
    }

    /// Returns the positions of the servers that mentioned a URI.
    fn mentioned_at(&self, known: &Routes<UriTable>, uri: &str) -> Vec<usize> {
        let mentioned = lock(&self.mentioned);
        known.server_set.positions(mentioned.owners(uri))
    }

    /// Returns the names of all servers.
    pub(crate) fn server_names(&self) -> String {
        let server_set = self.server_set();
        let names = server_set.entries.iter().map(|entry| &*entry.name);
        listed("", &names.collect::<Vec<_>>())
    }
}

impl ServerSet {
    /// Returns the servers with a matching prefix and the original name, the longest prefix first.
    pub(crate) fn by_prefix<'a>(&'a self, name: &'a str) -> Vec<(&'a Arc<ServerEntry>, &'a str)> {
        let prefixes = self.entries.iter().map(|entry| (entry, &*entry.prefix));
        self.style.routes_by_prefix(name, prefixes)
    }

    /// Returns the position of the server with this number.
    pub(crate) fn position(&self, number: u64) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.number == number)
    }

    /// Returns the positions of the servers with these numbers.
    pub(crate) fn positions(&self, numbers: &[u64]) -> Vec<usize> {
        let positions = numbers.iter().filter_map(|number| self.position(*number));
        positions.collect()
    }
}
