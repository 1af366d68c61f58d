//! The lists of all servers, each fetched once, and what they are together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use mcpact_bridge::lifecycle::Fingerprint;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, Era, ErrorCode, Revision};
use mcpact_wire::raw::Object;
use tokio::sync::watch;
use tokio::time::Instant;

use super::guest::Guest;
use super::member::Member;
use super::{Hub, Roster, lock};
use crate::aggregate::kind::ListKind;
use crate::aggregate::merge::{self, Merged, Part, Prefixes};
use crate::aggregate::names::Names;
use crate::aggregate::uris::Uris;
use crate::bridge::{Listing, wire_error};

/// How many merged lists are kept.
const BOARDS: usize = 64;

/// Who sees the same list of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListKey {
    kind: ListKind,
    principal: Box<str>,
    /// None where it does not matter who asks.
    fingerprint: Option<Fingerprint>,
}

/// One list of one server.
#[derive(Debug, Default)]
pub(super) struct ListSlot {
    held: Mutex<Held>,
    /// Tells when whoever fetches it is done.
    fetched: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Held {
    listing: Option<Arc<Listing>>,
    /// How often the list had changed when it was fetched, and when that was.
    basis: Option<(u64, Instant)>,
    /// Since when somebody fetches it.
    fetching: Option<Instant>,
}

/// What is merged, for whoever sees the same.
#[derive(Debug, Default)]
pub(super) struct Boards {
    kept: Mutex<HashMap<BoardKey, Arc<Board>>>,
    tools: Mutex<Option<Arc<Named>>>,
    prompts: Mutex<Option<Arc<Named>>>,
    addressed: Mutex<Option<Arc<Addressed>>>,
}

/// Names, and the servers that they lead to.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) roster: Arc<Roster>,
    pub(super) names: Names,
}

/// Addresses, and the servers that they lead to.
#[derive(Debug)]
pub(super) struct Addressed {
    pub(super) roster: Arc<Roster>,
    pub(super) uris: Uris,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BoardKey {
    kind: ListKind,
    client: Revision,
    principal: Box<str>,
    fingerprint: Fingerprint,
}

/// A merged list, and what it was made of.
#[derive(Debug)]
pub(super) struct Board {
    of: Vec<Option<Arc<Listing>>>,
    list: Merged,
}

impl Boards {
    pub(super) fn clear(&self) {
        lock(&self.kept).clear();
        *lock(&self.tools) = None;
        *lock(&self.prompts) = None;
        *lock(&self.addressed) = None;
    }

    /// The names that are known.
    pub(super) fn named(&self, kind: ListKind) -> Option<Arc<Named>> {
        match kind {
            ListKind::Tools => lock(&self.tools).clone(),
            ListKind::Prompts => lock(&self.prompts).clone(),
            ListKind::Resources | ListKind::Templates => None,
        }
    }

    /// The addresses that are known.
    pub(super) fn addressed(&self) -> Option<Arc<Addressed>> {
        lock(&self.addressed).clone()
    }
}

impl Hub {
    /// Answers a request for a list.
    pub(super) async fn page(
        self: &Arc<Self>,
        guest: &Arc<Guest>,
        kind: ListKind,
        params: &str,
        client: Revision,
    ) -> Result<String, WireError> {
        let board = self.board(guest, kind, client).await;
        let params = Object::parse(params).unwrap_or_default();
        let cursor = params.get_str("cursor");
        let size = self.settings.front.page_size;
        let page = board.list.page(kind, cursor.as_deref(), size);
        let page = page.map_err(|_| {
            let why = "the cursor is not known, or the list has changed since; begin again without a cursor";
            wire_error(ErrorCode::InvalidParams.code(), why.to_owned(), None, client)
        })?;
        Ok(match client.era() {
            Era::Legacy => format!("{{{page}}}"),
            Era::Modern => {
                let hint = board.list.hint;
                let scope = if hint.is_public { "public" } else { "private" };
                let ttl = hint.ttl_ms;
                format!(
                    "{{\"resultType\":\"complete\",{page},\"ttlMs\":{ttl},\"cacheScope\":\"{scope}\"}}"
                )
            }
        })
    }

    /// The merged list that a client sees.
    pub(super) async fn board(
        self: &Arc<Self>,
        guest: &Arc<Guest>,
        kind: ListKind,
        client: Revision,
    ) -> Arc<Board> {
        let roster = self.roster();
        let listings = self.listings(&roster, guest, kind).await;
        let key = BoardKey {
            kind,
            client,
            principal: guest.principal.clone(),
            fingerprint: guest.fingerprint.clone(),
        };
        let kept = lock(&self.boards.kept).get(&key).cloned();
        if let Some(board) = kept.filter(|board| is_same(&board.of, &listings)) {
            return board;
        }
        let mut parts = parts(&listings, client);
        roster.leave_out(kind, &mut parts);
        let board = match kind {
            ListKind::Tools | ListKind::Prompts => {
                self.merge_named(&roster, kind, listings, &parts)
            }
            ListKind::Resources | ListKind::Templates => {
                self.merge_addressed(&roster, guest, kind, listings, &parts, client)
                    .await
            }
        };
        let board = Arc::new(board);
        let mut kept = lock(&self.boards.kept);
        if kept.len() >= BOARDS && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&board));
        board
    }

    fn merge_named(
        &self,
        roster: &Arc<Roster>,
        kind: ListKind,
        of: Vec<Option<Arc<Listing>>>,
        parts: &[Part],
    ) -> Board {
        let prefixes: Vec<Box<str>> = roster.members.iter().map(|m| m.prefix.clone()).collect();
        let names = merge::names(parts, Prefixes(&prefixes), &self.style);
        for clash in names.clashes() {
            tracing::warn!(
                server = roster.members.get(clash.server).map_or("", |member| &*member.name),
                name = %clash.name,
                instead = %clash.instead,
                "two servers would have had the same name for a thing"
            );
        }
        let known = self.boards.addressed();
        let none = Uris::default();
        let uris = known.as_ref().map_or(&none, |known| &known.uris);
        let list = merge::merged(kind, parts, &names, uris);
        let named = Arc::new(Named {
            roster: Arc::clone(roster),
            names,
        });
        match kind {
            ListKind::Prompts => *lock(&self.boards.prompts) = Some(named),
            ListKind::Tools | ListKind::Resources | ListKind::Templates => {
                *lock(&self.boards.tools) = Some(named);
            }
        }
        Board { of, list }
    }

    /// Who has an address is told by both lists together.
    async fn merge_addressed(
        self: &Arc<Self>,
        roster: &Arc<Roster>,
        guest: &Arc<Guest>,
        kind: ListKind,
        of: Vec<Option<Arc<Listing>>>,
        parts: &[Part],
        client: Revision,
    ) -> Board {
        let other = match kind {
            ListKind::Resources => ListKind::Templates,
            ListKind::Templates | ListKind::Tools | ListKind::Prompts => ListKind::Resources,
        };
        let others = self.listings(roster, guest, other).await;
        let others = self::parts(&others, client);
        let mut uris = Uris::new(roster.members.iter().map(|member| &*member.name));
        merge::note_uris(kind, parts, &mut uris);
        merge::note_uris(other, &others, &mut uris);
        let list = merge::merged(kind, parts, &Names::default(), &uris);
        *lock(&self.boards.addressed) = Some(Arc::new(Addressed {
            roster: Arc::clone(roster),
            uris,
        }));
        Board { of, list }
    }

    /// The list of every server, fetched where it has to be; none for those that are missing.
    async fn listings(
        self: &Arc<Self>,
        roster: &Roster,
        guest: &Arc<Guest>,
        kind: ListKind,
    ) -> Vec<Option<Arc<Listing>>> {
        let fresh: Vec<_> = roster
            .members
            .iter()
            .map(|member| {
                let slot = member.slot(key(member, guest, kind));
                let fresh = slot.fresh(self, member, kind);
                member.bridge.figures().list_needed(fresh.is_some());
                (slot, fresh)
            })
            .collect();
        if fresh.iter().all(|(_, listing)| listing.is_some()) {
            return fresh.into_iter().map(|(_, listing)| listing).collect();
        }
        let fetching = roster
            .members
            .iter()
            .zip(fresh)
            .map(|(member, (slot, fresh))| async move {
                match fresh {
                    Some(listing) => Some(listing),
                    None => self.fetched(member, guest, kind, slot).await,
                }
            });
        join_all(fetching).await
    }

    /// Fetches a list, or waits for whoever does.
    async fn fetched(
        self: &Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
        slot: Arc<ListSlot>,
    ) -> Option<Arc<Listing>> {
        let mut done = slot.fetched.subscribe();
        done.mark_unchanged();
        if slot.begin() {
            let (hub, member, guest) = (Arc::clone(self), Arc::clone(member), Arc::clone(guest));
            let slot = Arc::clone(&slot);
            // Whoever waits may go away; the others need it all the same.
            tokio::spawn(async move { hub.fetch(&member, &guest, kind, &slot).await });
        }
        // Nobody waits again for a server that has kept others waiting.
        let since = slot.held().fetching.unwrap_or_else(Instant::now);
        let until = since + self.settings.list_wait;
        let waited = tokio::time::timeout_at(until, done.changed()).await;
        if waited.is_err() {
            member.judge(Some("it has not answered yet"));
        }
        // An old list is better than none.
        slot.held().listing.clone()
    }

    async fn fetch(
        self: Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
        slot: &ListSlot,
    ) {
        let before = member.changes_of(kind);
        let since = Instant::now();
        let fetched = self.fetch_list(member, guest, kind).await;
        let is_late = since.elapsed() > self.settings.list_wait;
        let outcome = match fetched {
            Ok(listing) => Some(Arc::new(listing)),
            Err(error) => {
                member.judge(Some(&error.message));
                None
            }
        };
        let is_new = outcome.is_some();
        slot.end(outcome, before);
        if is_late && is_new {
            member.judge(None);
            self.announce(kind.changed());
        }
    }

    async fn fetch_list(
        self: &Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
    ) -> Result<Listing, WireError> {
        let caller = guest.part(self, member).await?;
        let revision = member.known().map_or(Revision::LATEST, |met| met.revision);
        if !member.may_have(needed(kind)) {
            return Ok(Listing::empty(kind, revision));
        }
        match member.bridge.list(&caller, kind).await {
            // G6: it declares more than it has.
            Err(error) if error.code == ErrorCode::MethodNotFound.code() => {
                Ok(Listing::empty(kind, revision))
            }
            outcome => outcome,
        }
    }
}

impl ListSlot {
    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        lock(&self.held)
    }

    /// The list, if it is as good as new.
    fn fresh(&self, hub: &Hub, member: &Member, kind: ListKind) -> Option<Arc<Listing>> {
        let held = self.held();
        let (changes, when) = held.basis?;
        let is_current = changes == member.changes_of(kind);
        let is_young = member.tells_of(kind) || when.elapsed() < hub.settings.list_age;
        held.listing.clone().filter(|_| is_current && is_young)
    }

    /// Whether it is ours to fetch.
    fn begin(&self) -> bool {
        let mut held = self.held();
        let is_ours = held.fetching.is_none();
        held.fetching.get_or_insert_with(Instant::now);
        is_ours
    }

    fn end(&self, listing: Option<Arc<Listing>>, changes: u64) {
        let mut held = self.held();
        held.fetching = None;
        if let Some(listing) = listing {
            held.listing = Some(listing);
            held.basis = Some((changes, Instant::now()));
        }
        drop(held);
        self.fetched.send_modify(|times| *times += 1);
    }
}

fn key(member: &Member, guest: &Guest, kind: ListKind) -> ListKey {
    ListKey {
        kind,
        principal: guest.principal.clone(),
        fingerprint: (!member.is_modern()).then(|| guest.fingerprint.clone()),
    }
}

const fn needed(kind: ListKind) -> Capability {
    match kind {
        ListKind::Tools => Capability::Tools,
        ListKind::Prompts => Capability::Prompts,
        ListKind::Resources | ListKind::Templates => Capability::Resources,
    }
}

impl Roster {
    /// Takes out what is not served.
    fn leave_out(&self, kind: ListKind, parts: &mut [Part]) {
        for part in parts {
            let Some(member) = self.members.get(part.server) else {
                continue;
            };
            part.items.retain(|item| {
                let item = Object::parse(item).unwrap_or_default();
                let name = item.get_str("name");
                name.is_none_or(|name| member.serves(kind, &name))
            });
        }
    }
}

fn parts(listings: &[Option<Arc<Listing>>], client: Revision) -> Vec<Part> {
    let there = listings.iter().enumerate();
    there
        .filter_map(|(server, listing)| Some(listing.as_ref()?.part(server, client)))
        .collect()
}

fn is_same(before: &[Option<Arc<Listing>>], now: &[Option<Arc<Listing>>]) -> bool {
    before.len() == now.len()
        && before.iter().zip(now).all(|pair| match pair {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        })
}
