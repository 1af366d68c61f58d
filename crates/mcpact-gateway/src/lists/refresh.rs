//! The lists of the servers: fetched once, kept, and looked at again without waking anybody.

use crate::lists::own;
use crate::lists::pages::{self, FetchMode, ListFetch};
use crate::lists::server_list;
use crate::subscriptions::list_changes;
use std::sync::{Arc, Weak};

use crate::error::ServeError;
use futures_util::future::join_all;
use mcpact_spec::{Capability, ErrorCode};
use tokio::time::Instant;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::lists::cache::{CacheEntry, FetchOutcome, Freshness, ListVersion};
use crate::lists::request::ListRequest;
use crate::lists::scope::{Audience, ListScope};
use crate::lists::server_list::{ListError, ServerList};
use crate::metrics::Outcome;

/// Returns the audience of these lists, and records that the client is shown them.
fn note_all_shown(
    aggregator: &Aggregator,
    errands: &[ListRequest],
    listings: &[Option<Arc<ServerList>>],
) -> Audience {
    let mut audience = Audience::All;
    for (errand, listing) in errands.iter().zip(listings) {
        audience = audience.or(errand.audience_of(listing.as_ref()));
        if let Some(listing) = listing {
            note_shown(aggregator, errand, listing);
        }
    }
    audience
}

/// Returns the list of each server, none for those without one, and the audience of all of them. Missing lists are
/// fetched.
pub(crate) async fn listings(
    aggregator: &Arc<Aggregator>,
    server_set: &ServerSet,
    guest: &Arc<DownstreamClient>,
    kind: ListKind,
) -> (Vec<Option<Arc<ServerList>>>, Audience) {
    let entries = server_set.entries.iter();
    let errands: Vec<_> = entries
        .map(|entry| ListRequest::new(entry, guest, kind))
        .collect();
    let fetching = errands.iter().map(|errand| {
        errand.slot.wanted_by(guest);
        let shown = shown(aggregator, errand);
        let metrics = errand.entry.server.metrics();
        metrics.list_requested(shown.is_some());
        async move {
            match shown {
                Some(listing) => Some(listing),
                None => fetched(aggregator, errand).await,
            }
        }
    });
    let listings = join_all(fetching).await;
    let audience = note_all_shown(aggregator, &errands, &listings);
    (listings, audience)
}

/// What there is of a list.
fn look(aggregator: &Aggregator, errand: &ListRequest) -> Freshness {
    let age = aggregator.settings.list_age;
    errand.slot.look(errand.basis(), |when| {
        when.is_some_and(|when| when.elapsed() < age)
            || (errand.entry.tells_of(errand.kind) && errand.awake().is_some())
    })
}

/// The list of a server that has just answered, as it is now; as it was if it does not come.
pub(crate) async fn filtered_method(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    guest: &Arc<DownstreamClient>,
    kind: ListKind,
) -> Option<Arc<ServerList>> {
    let errand = ListRequest::new(entry, guest, kind);
    match look(aggregator, &errand) {
        Freshness::Fresh(listing) => Some(listing),
        Freshness::Old(_) | Freshness::Missing => asked_for(aggregator, errand).await,
    }
}

/// The list as the server has it now; as it was if it does not come.
pub(crate) async fn asked_for(
    aggregator: &Arc<Aggregator>,
    errand: ListRequest,
) -> Option<Arc<ServerList>> {
    let slot = Arc::clone(&errand.slot);
    let mut done = slot.subscribe();
    if slot.begin() {
        tokio::spawn(fetch(Arc::clone(aggregator), errand, FetchMode::Call));
    }
    // A list that failed lately is not requested again; clients are notified when a late list arrives.
    if slot.fetching_since().is_some() {
        let _ = tokio::time::timeout(aggregator.settings.list_wait, done.changed()).await;
    }
    slot.listing()
}

/// Returns a list that can be shown at once. An old one is refreshed in the background if the server is running;
/// clients are notified of changes.
fn shown(aggregator: &Arc<Aggregator>, errand: &ListRequest) -> Option<Arc<ServerList>> {
    let listing = match look(aggregator, errand) {
        Freshness::Fresh(listing) => return Some(listing),
        Freshness::Old(listing) => listing,
        Freshness::Missing => return None,
    };
    fetch_meanwhile(aggregator, errand);
    Some(listing)
}

/// Refreshes a list that may be outdated, or was never fetched, if the server is running.
pub(crate) fn look_anew(aggregator: &Arc<Aggregator>, errand: &ListRequest) {
    match look(aggregator, errand) {
        Freshness::Fresh(_) => {}
        Freshness::Old(_) | Freshness::Missing => fetch_meanwhile(aggregator, errand),
    }
}

fn fetch_meanwhile(aggregator: &Arc<Aggregator>, errand: &ListRequest) {
    let (mode, hold) = match errand.awake() {
        // The client that started the server may finish before this request.
        Some(binding) => (FetchMode::Background, binding.hold()),
        None if server_list::is_remote(&errand.entry.server) => (FetchMode::Call, None),
        None => return,
    };
    if errand.slot.begin() {
        let (aggregator, errand) = (Arc::clone(aggregator), errand.clone());
        tokio::spawn(async move {
            fetch(aggregator, errand, mode).await;
            drop(hold);
        });
    }
}

/// Fetches a list, or waits for the fetch in progress.
async fn fetched(aggregator: &Arc<Aggregator>, errand: &ListRequest) -> Option<Arc<ServerList>> {
    let ListRequest {
        entry, kind, slot, ..
    } = errand;
    // A server is not started for a list that it is known not to have.
    if entry.known().is_some() && !entry.has(needed(*kind)) && slot.begin() {
        let none = Arc::new(ServerList::empty(*kind, entry.revision()));
        let basis = ListVersion {
            when: None,
            ..errand.basis()
        };
        hand_on(aggregator, errand, slot.end(Some(none), basis));
        return slot.listing();
    }
    let mut done = slot.subscribe();
    // A server that has just failed is retried later; clients do not wait for it.
    let is_resting = entry.server.is_resting() || slot.was_late();
    if slot.begin() {
        // The client may disconnect; other clients still need the list.
        tokio::spawn(fetch(
            Arc::clone(aggregator),
            errand.clone(),
            FetchMode::Call,
        ));
    }
    if is_resting {
        slot.miss();
        return errand.meanwhile();
    }
    // The waiting time counts from the first client that waits.
    let since = match errand.scope {
        ListScope::Own => slot.fetching_since(),
        ListScope::Kind | ListScope::Internal => entry.waited_for_since(),
    };
    let until = since.unwrap_or_else(Instant::now) + aggregator.settings.list_wait;
    let waited = tokio::time::timeout_at(until, done.changed()).await;
    if waited.is_err() {
        errand.is_late();
    }
    if slot.unchanged(errand.basis().changes).is_none() {
        slot.miss();
    }
    errand.meanwhile()
}

async fn fetch(aggregator: Arc<Aggregator>, errand: ListRequest, mode: FetchMode) {
    let (entry, slot) = (&errand.entry, &errand.slot);
    let basis = errand.basis();
    let is_first = !slot.is_of(basis.wakes);
    let fetched = fetch_list(&aggregator, &errand, mode).await;
    let mut is_full = false;
    let listing = match fetched {
        Ok(listing) => listing,
        // It may have fallen asleep meanwhile.
        Err(ListError::Lost(error)) if mode == FetchMode::Background => {
            let error = entry.server.covered(error.message().into_owned());
            tracing::debug!(server = %entry.name, error, "a list could not be looked at again");
            None
        }
        // It works for others, and is not missing.
        Err(ListError::Lost(error)) if has_no_room(&error) && entry.known().is_some() => {
            is_full = true;
            slot.miss();
            errand.do_without(&error);
            None
        }
        Err(ListError::Lost(error)) => {
            entry.judge(Some(&error));
            entry.server.did_without();
            None
        }
        Err(ListError::Late(error)) => {
            slot.rest();
            errand.do_without(&error);
            None
        }
        Err(ListError::Refused(error)) => {
            entry.judge(None);
            errand.do_without(&error);
            None
        }
    };
    if listing.is_some() {
        entry.judge(None);
    }
    let listing = listing.map(|listing| errand.taken(listing));
    hand_on(&aggregator, &errand, slot.end(listing, basis));
    if is_first && errand.scope == ListScope::Own {
        doubt_common(&aggregator, &errand);
    }
    // A client with its own instance has capacity there.
    if is_full && errand.scope != ListScope::Own {
        try_soon(&aggregator, &errand);
    }
}

/// Notifies all clients of a changed list, or only the client that owns it.
fn hand_on(aggregator: &Aggregator, errand: &ListRequest, news: FetchOutcome) {
    let ListRequest {
        entry,
        guest,
        kind,
        scope,
        slot,
    } = errand;
    if *scope != ListScope::Own {
        return entry.spread(*kind, news);
    }
    let own = &guest.own;
    let is_other = slot
        .listing()
        .is_some_and(|listing| own.is_news(entry.number, *kind, &listing));
    if is_other || news == FetchOutcome::Changed {
        list_changes::notify_client(aggregator, guest, kind.changed());
    }
}

/// A client is shown this. What its own instance has may have come meanwhile.
fn note_shown(aggregator: &Aggregator, errand: &ListRequest, listing: &ServerList) {
    let ListRequest {
        entry,
        guest,
        kind,
        scope,
        ..
    } = errand;
    if *scope == ListScope::Kind {
        return;
    }
    guest.own.shows(entry.number, *kind, listing);
    let own = guest.own_slot(entry, *kind);
    let own = own.and_then(|slot| slot.listing());
    if own.is_some_and(|own| guest.own.is_news(entry.number, *kind, &own)) {
        list_changes::notify_client(aggregator, guest, kind.changed());
    }
}

/// An instance that has just been started has something else than those are shown who have none: that is looked at
/// again, if it may be the list of an earlier version of the server.
fn doubt_common(aggregator: &Arc<Aggregator>, errand: &ListRequest) {
    let common = errand.common();
    let (Freshness::Old(shown), Some(own)) = (look(aggregator, &common), errand.slot.listing())
    else {
        return;
    };
    if !own.is_same(&shown) && common.slot.begin() {
        tokio::spawn(fetch(Arc::clone(aggregator), common, FetchMode::Call));
    }
}

/// None if it would have to be woken, and is not to be.
async fn fetch_list(
    aggregator: &Arc<Aggregator>,
    errand: &ListRequest,
    mode: FetchMode,
) -> Result<Option<ServerList>, ListError> {
    let (entry, kind) = (&errand.entry, errand.kind);
    let binding = match mode {
        FetchMode::Call => Some(errand.binding(aggregator).await.map_err(ListError::Lost)?),
        FetchMode::Background => errand.awake(),
    };
    let Some(binding) = binding else {
        return Ok(None);
    };
    if !entry.has(needed(kind)) {
        return Ok(Some(ServerList::empty(kind, entry.revision())));
    }
    let fetch = ListFetch {
        kind,
        audience: errand.audience(),
        mode,
    };
    match pages::fetch(&entry.server, &binding, fetch).await {
        // The server declares more than it has.
        Err(ListError::Refused(error)) if error.code() == ErrorCode::MethodNotFound.code() => {
            Ok(Some(ServerList::empty(kind, entry.revision())))
        }
        outcome => outcome,
    }
}

/// Refreshes lists of a server that may be outdated, if it is running.
pub(crate) fn look_again(aggregator: &Arc<Aggregator>, entry: &Arc<ServerEntry>) {
    for (kind, slot) in entry.slots() {
        if let Some(guest) = slot.patron() {
            // The result is not used; only the refresh matters.
            let errand = ListRequest {
                slot,
                ..ListRequest::of_many(entry, &guest, kind)
            };
            let _ = shown(aggregator, &errand);
        }
    }
}

/// Fetches the missing lists of a server again.
pub(crate) fn try_again(aggregator: &Arc<Aggregator>, entry: &Arc<ServerEntry>) {
    for (kind, slot) in entry.slots() {
        fetch_missed(aggregator, entry, kind, slot);
    }
}

fn fetch_missed(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    kind: ListKind,
    slot: Arc<CacheEntry>,
) {
    let Some(guest) = slot.patron().filter(|_| slot.is_missed()) else {
        return;
    };
    if slot.begin() {
        let errand = ListRequest {
            slot,
            ..ListRequest::of_many(entry, &guest, kind)
        };
        tokio::spawn(fetch(Arc::clone(aggregator), errand, FetchMode::Call));
    }
}

/// Tries again to get a list for which the server had no room, in a while.
fn try_soon(aggregator: &Arc<Aggregator>, errand: &ListRequest) {
    let ListRequest {
        entry, slot, kind, ..
    } = errand;
    let (pause, kind) = (entry.server.pauses().pause(slot.found_no_room()), *kind);
    let (aggregator, entry) = (Arc::downgrade(aggregator), Arc::downgrade(entry));
    let slot = Arc::downgrade(slot);
    tokio::spawn(async move {
        tokio::time::sleep(pause).await;
        let still = (aggregator.upgrade(), entry.upgrade(), slot.upgrade());
        if let (Some(aggregator), Some(entry), Some(slot)) = still {
            fetch_missed(&aggregator, &entry, kind, slot);
        }
    });
}

/// Polls servers that send no change notifications, while clients listen for changes.
pub(crate) fn watch(aggregator: &Arc<Aggregator>) {
    let age = aggregator.settings.list_age;
    let aggregator = Arc::downgrade(aggregator);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(age).await;
            let Some(aggregator) = Weak::upgrade(&aggregator) else {
                return;
            };
            if !aggregator.changes.has_receivers() {
                continue;
            }
            for entry in &aggregator.server_set().entries {
                look_again(&aggregator, entry);
                try_again(&aggregator, entry);
                for guest in own::guests(&aggregator) {
                    own::look_at_own_again(&aggregator, entry, &guest);
                }
            }
        }
    });
}

/// Whether a server is there, and has no room for a request.
fn has_no_room(error: &ServeError) -> bool {
    error.outcome() == Outcome::Busy
}

const fn needed(kind: ListKind) -> Capability {
    match kind {
        ListKind::Tools => Capability::Tools,
        ListKind::Prompts => Capability::Prompts,
        ListKind::Resources | ListKind::Templates => Capability::Resources,
    }
}
