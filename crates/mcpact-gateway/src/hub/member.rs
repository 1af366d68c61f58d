//! One server of a hub.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use mcpact::server::backend::Opening;
use mcpact_spec::{Capability, Era, Method};
use mcpact_wire::envelope::{Meta, Params};

use super::lists::{ListKey, ListSlot};
use super::{Hub, lock};
use crate::aggregate::kind::ListKind;
use crate::bridge::{Bridge, Herald, Met};
use crate::catalog::ToolFilter;
use crate::gateway::ServerReport;

/// How many lists are kept of one server; clients that declare the same share them.
const LISTS: usize = 64;

/// A server, its name, and what is remembered of it.
#[derive(Debug)]
pub struct Member {
    pub(super) name: Box<str>,
    pub(super) prefix: Box<str>,
    pub(super) tags: Vec<Box<str>>,
    tools: ToolFilter,
    pub(super) bridge: Arc<Bridge>,
    /// Tells this server from one that had its name before.
    pub(super) number: u64,
    lists: Mutex<HashMap<ListKey, Arc<ListSlot>>>,
    /// How often each list has changed.
    changes: [AtomicU64; ListKind::ALL.len()],
    failure: Mutex<Option<Box<str>>>,
    hubs: Mutex<Vec<Weak<Hub>>>,
}

/// What tells servers from each other, even those of the same name.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl Member {
    /// A server under this name, which its things are prefixed with.
    #[must_use]
    pub fn new(name: &str, bridge: Arc<Bridge>) -> Arc<Self> {
        Self::with(name, name, Vec::new(), ToolFilter::default(), bridge)
    }

    /// A server with another prefix than its name, tags by which it can be selected, and only some of its
    /// tools.
    #[must_use]
    pub fn with(
        name: &str,
        prefix: &str,
        tags: Vec<Box<str>>,
        tools: ToolFilter,
        bridge: Arc<Bridge>,
    ) -> Arc<Self> {
        let member = Arc::new(Self {
            name: Box::from(name),
            prefix: Box::from(prefix),
            tags,
            tools,
            bridge,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            lists: Mutex::default(),
            changes: [const { AtomicU64::new(0) }; ListKind::ALL.len()],
            failure: Mutex::default(),
            hubs: Mutex::default(),
        });
        let herald: Weak<Self> = Arc::downgrade(&member);
        member.bridge.tell_of_changes(herald);
        member
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// By what it can be selected.
    #[must_use]
    pub fn tags(&self) -> &[Box<str>] {
        &self.tags
    }

    /// The way to it alone.
    #[must_use]
    pub const fn bridge(&self) -> &Arc<Bridge> {
        &self.bridge
    }

    /// Whether a thing of it is served.
    pub(super) fn serves(&self, kind: ListKind, name: &str) -> bool {
        match kind {
            ListKind::Tools => self.tools.admits(name),
            ListKind::Prompts | ListKind::Resources | ListKind::Templates => true,
        }
    }

    pub(super) fn belong_to(&self, hub: &Arc<Hub>) {
        let mut hubs = lock(&self.hubs);
        hubs.retain(|other| other.strong_count() > 0);
        hubs.push(Arc::downgrade(hub));
    }

    /// What it last said about itself.
    pub(super) fn known(&self) -> Option<Arc<Met>> {
        self.bridge.met()
    }

    /// Reaches the server, so that something is known about it.
    pub async fn meet(&self) -> bool {
        if self.known().is_some() {
            return true;
        }
        let params = Params {
            raw: Some("{}"),
            meta: Meta {
                client_capabilities: Some("{}"),
                ..Meta::default()
            },
            name: None,
            uri: None,
            task_id: None,
        };
        let met = self.bridge.receive(Opening::Request(&params), "").await;
        self.judge(met.as_ref().err().map(|error| error.message.as_str()));
        met.is_ok()
    }

    /// Remembers whether it could be used.
    pub(super) fn judge(&self, failure: Option<&str>) {
        let mut known = lock(&self.failure);
        if known.as_deref() == failure {
            return;
        }
        *known = failure.map(Box::from);
        drop(known);
        match failure {
            Some(error) => {
                tracing::warn!(event = "route_error", server = %self.name, error, "a server is missing");
            }
            None => tracing::info!(server = %self.name, "a server is back"),
        }
    }

    /// Why it is missing, if it is.
    #[must_use]
    pub fn failure(&self) -> Option<Box<str>> {
        lock(&self.failure).clone()
    }

    /// What is known about it.
    pub(crate) fn report(&self) -> ServerReport {
        let met = self.known();
        ServerReport {
            name: self.name.to_string(),
            revision: met.as_ref().map(|met| met.revision),
            calls_itself: met.map(|met| met.introduction.server_info.name().to_owned()),
            failure: self.failure().map(String::from),
        }
    }

    /// Whether it declares something; a server that nobody has met may.
    pub(super) fn may_have(&self, capability: Capability) -> bool {
        self.known()
            .is_none_or(|met| met.introduction.capabilities.declared().has(capability))
    }

    /// Whether it tells when a list changes.
    pub(super) fn tells_of(&self, kind: ListKind) -> bool {
        self.may_have(match kind {
            ListKind::Tools => Capability::ToolsListChanged,
            ListKind::Prompts => Capability::PromptsListChanged,
            ListKind::Resources | ListKind::Templates => Capability::ResourcesListChanged,
        })
    }

    /// Whether its lists are the same for all clients.
    pub(super) fn is_modern(&self) -> bool {
        self.known()
            .is_some_and(|met| met.revision.era() == Era::Modern)
    }

    pub(super) fn slot(&self, key: ListKey) -> Arc<ListSlot> {
        let mut lists = lock(&self.lists);
        if lists.len() >= LISTS && !lists.contains_key(&key) {
            lists.clear();
        }
        Arc::clone(lists.entry(key).or_default())
    }

    /// How often a list has changed.
    pub(super) fn changes_of(&self, kind: ListKind) -> u64 {
        self.changes[kind as usize].load(Ordering::Acquire)
    }
}

impl Herald for Member {
    fn changed(&self, method: Method) {
        let mut is_list = false;
        for kind in ListKind::ALL {
            if kind.changed() == method {
                is_list = true;
                self.changes[kind as usize].fetch_add(1, Ordering::AcqRel);
            }
        }
        if !is_list {
            return;
        }
        let hubs = lock(&self.hubs).clone();
        for hub in hubs.iter().filter_map(Weak::upgrade) {
            hub.announce(method);
        }
    }
}
