//! Cache of merged lists and of the routes of their items.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpact_spec::Revision;
use mcpact_translate::lifecycle::Fingerprint;

use crate::aggregate::aggregator::ServerSet;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::MergedList;
use crate::aggregate::name_table::NameTable;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::uri_table::UriTable;
use crate::lists::server_list::ServerList;
use crate::sync::lock;

/// Maximum number of cached merged lists.
const MAX_LISTS: usize = 64;

/// Lists of all servers, none for those without one.
pub(crate) type Sources = Vec<Option<Arc<ServerList>>>;

/// Cached merged lists, public names and URIs.
#[derive(Debug, Default)]
pub(crate) struct MergeCache {
    kept: Mutex<HashMap<MergedViewKey, (Sources, Arc<MergedList>)>>,
    named: Mutex<HashMap<ListKind, Arc<Routes<NameTable>>>>,
    pub(crate) addressed: Mutex<Option<Arc<Routes<UriTable>>>>,
}

/// Table of names or URIs, and the servers at its positions.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    pub(crate) server_set: Arc<ServerSet>,
    pub(crate) table: T,
}

impl Routes<NameTable> {
    /// Returns the server of a public name, and the original name.
    pub(crate) fn lookup(&self, name: &str) -> Option<(Arc<ServerEntry>, Box<str>)> {
        let route = self.table.route(name)?;
        let entry = self.server_set.entries.get(route.server)?;
        Some((Arc::clone(entry), route.name.clone()))
    }
}

/// Key of a merged list: clients with the same key see the same list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MergedViewKey {
    pub(crate) kind: ListKind,
    pub(crate) client: Revision,
    pub(crate) principal: Box<str>,
    pub(crate) fingerprint: Fingerprint,
}

impl MergeCache {
    pub(crate) fn clear(&self) {
        lock(&self.kept).clear();
        lock(&self.named).clear();
        *lock(&self.addressed) = None;
    }

    /// Returns the known public names.
    pub(crate) fn named(&self, kind: ListKind) -> Option<Arc<Routes<NameTable>>> {
        lock(&self.named).get(&kind).cloned()
    }

    /// Replaces the public names.
    pub(crate) fn name(&self, kind: ListKind, named: Arc<Routes<NameTable>>) {
        lock(&self.named).insert(kind, named);
    }

    /// Returns the known URIs.
    pub(crate) fn addressed(&self) -> Option<Arc<Routes<UriTable>>> {
        lock(&self.addressed).clone()
    }

    /// Returns the list merged from these sources, if its names or URIs are those of these servers.
    pub(crate) fn kept(
        &self,
        key: &MergedViewKey,
        sources: &Sources,
        server_set: &Arc<ServerSet>,
    ) -> Option<Arc<MergedList>> {
        let kept = lock(&self.kept).get(key).cloned();
        let (_, list) = kept.filter(|(before, _)| is_same(before, sources))?;
        let of = match key.kind {
            ListKind::Tools | ListKind::Prompts => Arc::clone(&self.named(key.kind)?.server_set),
            ListKind::Resources | ListKind::Templates => Arc::clone(&self.addressed()?.server_set),
        };
        Arc::ptr_eq(&of, server_set).then_some(list)
    }

    /// Caches a list unless the servers were replaced, in which case it returns false.
    pub(crate) fn keep(
        &self,
        key: MergedViewKey,
        sources: Sources,
        list: &Arc<MergedList>,
        is_current: impl FnOnce() -> bool,
    ) -> bool {
        let mut kept = lock(&self.kept);
        if !is_current() {
            return false;
        }
        if kept.len() >= MAX_LISTS && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.insert(key, (sources, Arc::clone(list)));
        true
    }
}

fn is_same(before: &[Option<Arc<ServerList>>], now: &[Option<Arc<ServerList>>]) -> bool {
    before.len() == now.len()
        && before.iter().zip(now).all(|pair| match pair {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        })
}
