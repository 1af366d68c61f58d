//! Lists of several servers as one, and where what is in them leads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpact_spec::Revision;
use mcpact_translate::lifecycle::Fingerprint;

use super::member::Member;
use super::{Roster, lock};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::MergedList;
use crate::aggregate::name_table::NameTable;
use crate::aggregate::uri_table::UriTable;
use crate::bridge::Listing;

/// How many merged lists are kept.
const BOARDS: usize = 64;

/// What is merged for whoever sees the same.
#[derive(Debug, Default)]
pub(super) struct Merges {
    kept: Mutex<HashMap<BoardKey, Arc<Board>>>,
    named: Mutex<HashMap<ListKind, Arc<Named>>>,
    pub(super) addressed: Mutex<Option<Arc<Addressed>>>,
}

/// Names, and the servers that they lead to.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) roster: Arc<Roster>,
    pub(super) names: NameTable,
}

impl Named {
    /// The server that a name leads to, and what that calls the thing.
    pub(super) fn lookup(&self, name: &str) -> Option<(Arc<Member>, Box<str>)> {
        let route = self.names.route(name)?;
        let member = self.roster.members.get(route.server)?;
        Some((Arc::clone(member), route.name.clone()))
    }
}

/// Addresses, and the servers that they lead to.
#[derive(Debug)]
pub(super) struct Addressed {
    pub(super) roster: Arc<Roster>,
    pub(super) uris: UriTable,
}

/// Who sees the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BoardKey {
    pub(super) kind: ListKind,
    pub(super) client: Revision,
    pub(super) principal: Box<str>,
    pub(super) fingerprint: Fingerprint,
}

/// A merged list, and what it was made of.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) of: Vec<Option<Arc<Listing>>>,
    pub(super) list: MergedList,
}

impl Board {
    /// The names or addresses of what is in it.
    pub(super) fn keys(&self, kind: ListKind) -> Vec<String> {
        self.list.keys(kind)
    }
}

impl Merges {
    pub(super) fn clear(&self) {
        lock(&self.kept).clear();
        lock(&self.named).clear();
        *lock(&self.addressed) = None;
    }

    /// The names that are known.
    pub(super) fn named(&self, kind: ListKind) -> Option<Arc<Named>> {
        lock(&self.named).get(&kind).cloned()
    }

    /// From here on these are the names.
    pub(super) fn name(&self, kind: ListKind, named: Arc<Named>) {
        lock(&self.named).insert(kind, named);
    }

    /// The addresses that are known.
    pub(super) fn addressed(&self) -> Option<Arc<Addressed>> {
        lock(&self.addressed).clone()
    }

    /// The list that was made of these, if what is in it leads to these servers. It may be forgotten while a list is
    /// made.
    pub(super) fn kept(
        &self,
        key: &BoardKey,
        of: &[Option<Arc<Listing>>],
        roster: &Arc<Roster>,
    ) -> Option<Arc<Board>> {
        let kept = lock(&self.kept).get(key).cloned();
        kept.filter(|board| is_same(&board.of, of) && self.lead_among(key.kind, roster))
    }

    fn lead_among(&self, kind: ListKind, roster: &Arc<Roster>) -> bool {
        let of = match kind {
            ListKind::Tools | ListKind::Prompts => {
                self.named(kind).map(|named| Arc::clone(&named.roster))
            }
            ListKind::Resources | ListKind::Templates => {
                self.addressed().map(|known| Arc::clone(&known.roster))
            }
        };
        of.is_some_and(|of| Arc::ptr_eq(&of, roster))
    }

    /// Keeps a list, if the servers are what they were; whether they are.
    pub(super) fn keep(
        &self,
        key: BoardKey,
        board: &Arc<Board>,
        are_current: impl FnOnce() -> bool,
    ) -> bool {
        let mut kept = lock(&self.kept);
        if !are_current() {
            return false;
        }
        if kept.len() >= BOARDS && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.insert(key, Arc::clone(board));
        true
    }
}

fn is_same(before: &[Option<Arc<Listing>>], now: &[Option<Arc<Listing>>]) -> bool {
    before.len() == now.len()
        && before.iter().zip(now).all(|pair| match pair {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        })
}
