//! Lists of several servers as one, and where what is in them leads.

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

/// How many merged lists are kept.
const BOARDS: usize = 64;

/// What is merged for whoever sees the same.
#[derive(Debug, Default)]
pub(crate) struct MergeCache {
    kept: Mutex<HashMap<MergedViewKey, Arc<MergedView>>>,
    named: Mutex<HashMap<ListKind, Arc<NameRoutes>>>,
    pub(crate) addressed: Mutex<Option<Arc<ResourceRoutes>>>,
}

/// Names, and the servers that they lead to.
#[derive(Debug)]
pub(crate) struct NameRoutes {
    pub(crate) server_set: Arc<ServerSet>,
    pub(crate) names: NameTable,
}

impl NameRoutes {
    /// The server that a name leads to, and what that calls the thing.
    pub(crate) fn lookup(&self, name: &str) -> Option<(Arc<ServerEntry>, Box<str>)> {
        let route = self.names.route(name)?;
        let entry = self.server_set.entries.get(route.server)?;
        Some((Arc::clone(entry), route.name.clone()))
    }
}

/// Addresses, and the servers that they lead to.
#[derive(Debug)]
pub(crate) struct ResourceRoutes {
    pub(crate) server_set: Arc<ServerSet>,
    pub(crate) uris: UriTable,
}

/// ClientRef sees the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MergedViewKey {
    pub(crate) kind: ListKind,
    pub(crate) client: Revision,
    pub(crate) principal: Box<str>,
    pub(crate) fingerprint: Fingerprint,
}

/// A merged list, and what it was made of.
#[derive(Debug)]
pub(crate) struct MergedView {
    pub(crate) of: Vec<Option<Arc<ServerList>>>,
    pub(crate) list: MergedList,
}

impl MergedView {
    /// The names or addresses of what is in it.
    pub(crate) fn keys(&self, kind: ListKind) -> Vec<String> {
        self.list.keys(kind)
    }
}

impl MergeCache {
    pub(crate) fn clear(&self) {
        lock(&self.kept).clear();
        lock(&self.named).clear();
        *lock(&self.addressed) = None;
    }

    /// The names that are known.
    pub(crate) fn named(&self, kind: ListKind) -> Option<Arc<NameRoutes>> {
        lock(&self.named).get(&kind).cloned()
    }

    /// From here on these are the names.
    pub(crate) fn name(&self, kind: ListKind, named: Arc<NameRoutes>) {
        lock(&self.named).insert(kind, named);
    }

    /// The addresses that are known.
    pub(crate) fn addressed(&self) -> Option<Arc<ResourceRoutes>> {
        lock(&self.addressed).clone()
    }

    /// The list that was made of these, if what is in it leads to these servers. It may be forgotten while a list is
    /// made.
    pub(crate) fn kept(
        &self,
        key: &MergedViewKey,
        of: &[Option<Arc<ServerList>>],
        server_set: &Arc<ServerSet>,
    ) -> Option<Arc<MergedView>> {
        let kept = lock(&self.kept).get(key).cloned();
        kept.filter(|merged_view| {
            is_same(&merged_view.of, of) && self.lead_among(key.kind, server_set)
        })
    }

    fn lead_among(&self, kind: ListKind, server_set: &Arc<ServerSet>) -> bool {
        let of = match kind {
            ListKind::Tools | ListKind::Prompts => {
                self.named(kind).map(|named| Arc::clone(&named.server_set))
            }
            ListKind::Resources | ListKind::Templates => {
                self.addressed().map(|known| Arc::clone(&known.server_set))
            }
        };
        of.is_some_and(|of| Arc::ptr_eq(&of, server_set))
    }

    /// Keeps a list, if the servers are what they were; whether they are.
    pub(crate) fn keep(
        &self,
        key: MergedViewKey,
        merged_view: &Arc<MergedView>,
        are_current: impl FnOnce() -> bool,
    ) -> bool {
        let mut kept = lock(&self.kept);
        if !are_current() {
            return false;
        }
        if kept.len() >= BOARDS && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.insert(key, Arc::clone(merged_view));
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
