//! Prediction of the model for the next message, given the state of both machines.

use mcpact_engine::server::Phase;
use mcpact_spec::{Kind, Revision, Side};

use super::params::{level, names_the_resource};
use super::{Handed, Setting};
use crate::event::{Event, Seen};
use crate::model::{may_carry, may_send};
use crate::pair::Pair;

const MODERN: Revision = Revision::V2026_07_28;

/// A view of a pair.
pub(super) struct Forecast<'a> {
    setting: &'a Setting,
    pair: &'a Pair,
}

impl<'a> Forecast<'a> {
    pub(super) const fn of(setting: &'a Setting, pair: &'a Pair) -> Self {
        Self { setting, pair }
    }

    fn may_send(&self, revision: Revision, by: Side, kind: Kind, method: &str) -> bool {
        let Setting {
            client_caps,
            server_caps,
            ..
        } = self.setting;
        may_send(revision, client_caps, server_caps, by, kind, method)
    }

    fn server_has_legacy(&self) -> bool {
        self.setting.server.iter().any(|r| r != MODERN)
    }

    /// Returns whether the server has served a modern request.
    fn has_served_modern(&self) -> bool {
        self.pair.events_since_start().iter().any(is_modern_service)
    }

    /// Returns whether a request is written.
    pub(super) fn may_ask(&self, by: Side, method: &str, params: Option<&str>) -> bool {
        if !is_object(params) {
            return false;
        }
        let is_ping = method == "ping";
        let revision = match by {
            Side::Client => self.pair.client().pact().map(|pact| pact.revision()),
            Side::Server => match self.pair.server().phase() {
                Phase::Ready(pact) => Some(pact.revision()),
                Phase::AwaitInitialized(pact) => Some(pact.revision()).filter(|_| is_ping),
                // 2025-11-25 basic/lifecycle#initialization: only pings go before the handshake,
                // and a modern conversation has none.
                Phase::AwaitInit => {
                    return is_ping && self.server_has_legacy() && !self.has_served_modern();
                }
                Phase::Closed => None,
            },
        };
        let Setting {
            client_caps,
            server_caps,
            ..
        } = self.setting;
        revision.is_some_and(|revision| {
            self.may_send(revision, by, Kind::Request, method)
                && may_carry(revision, client_caps, server_caps, method, params)
        })
    }

    /// Returns whether a notification without related request is written.
    pub(super) fn may_note(&self, by: Side, method: &str, params: Option<&str>) -> bool {
        let is_early = matches!(method, "notifications/message" | "notifications/progress");
        let revision = match by {
            Side::Client => self.pair.client().pact().map(|pact| pact.revision()),
            Side::Server => match self.pair.server().phase() {
                Phase::Ready(pact) => Some(pact.revision()),
                Phase::AwaitInitialized(pact) => Some(pact.revision()).filter(|_| is_early),
                Phase::AwaitInit | Phase::Closed => None,
            },
        };
        is_object(params)
            && revision.is_some_and(|r| self.may_send(r, by, Kind::Notification, method))
            && (by == Side::Client || self.is_wanted(method, params))
    }

    /// Legacy clients ask for updates of a resource, and set the level of log messages.
    fn is_wanted(&self, method: &str, params: Option<&str>) -> bool {
        let served = |names: &'static [&'static str]| {
            self.pair
                .events_since_start()
                .iter()
                .filter_map(move |event| match event {
                    Event::Served {
                        side: Side::Server,
                        method,
                        params,
                        ..
                    } if names.contains(&method.as_str()) => Some((method, params.as_deref())),
                    _ => None,
                })
        };
        match method {
            "notifications/resources/updated" => {
                let mut all = served(&["resources/subscribe", "resources/unsubscribe"]);
                let last = all.rfind(|(_, params)| names_the_resource(*params));
                names_the_resource(params)
                    && last.is_some_and(|(method, _)| method == "resources/subscribe")
            }
            "notifications/message" => {
                let set = served(&["logging/setLevel"]);
                let mut set = set.filter_map(|(_, params)| level(params, "level"));
                match (set.next_back(), level(params, "level")) {
                    (Some(threshold), Some(own)) => own >= threshold,
                    _ => true,
                }
            }
            _ => true,
        }
    }

    /// Returns whether a notification of a request is written; `None` if an observer cannot know.
    pub(super) fn may_note_on(
        &self,
        by: Side,
        request: &Handed,
        method: &str,
        params: Option<&str>,
    ) -> Option<bool> {
        if by == Side::Client || request.revision != MODERN {
            return Some(self.may_note(by, method, params));
        }
        let is_over = self
            .pair
            .events_since_start()
            .iter()
            .any(|event| match event {
                Event::Observed {
                    side: Side::Server,
                    method,
                } => method == "notifications/cancelled",
                Event::Wrote {
                    from: Side::Server,
                    text,
                    ..
                } => {
                    Seen::of(text) == Seen::Answer
                        && text.contains(&format!("\"id\":{},", request.id))
                }
                _ => false,
            });
        if is_over {
            return None;
        }
        let asked_for = if request.method == "subscriptions/listen" {
            let wants = |flag: &str| request.params.as_ref().is_some_and(|p| p.contains(flag));
            match method {
                "notifications/tools/list_changed" => wants("toolsListChanged"),
                "notifications/prompts/list_changed" => wants("promptsListChanged"),
                "notifications/resources/list_changed" => wants("resourcesListChanged"),
                "notifications/resources/updated" => {
                    wants("resourceSubscriptions") && names_the_resource(params)
                }
                _ => false,
            }
        } else {
            match method {
                "notifications/progress" => true,
                "notifications/message" => {
                    let wanted = level(
                        request.params.as_deref(),
                        "io.modelcontextprotocol/logLevel",
                    );
                    match (wanted, level(params, "level")) {
                        (Some(wanted), Some(own)) => own >= wanted,
                        _ => false,
                    }
                }
                _ => false,
            }
        };
        let may = self.may_send(MODERN, by, Kind::Notification, method);
        Some(is_object(params) && asked_for && may)
    }

    /// Checks that every message on the wire was covered by declared capabilities.
    pub(super) fn all_declared(&self) -> Result<(), String> {
        let mut agreed: [Option<Revision>; 2] = [None, None];
        let mut has_modern_request = false;
        for event in self.pair.events() {
            has_modern_request |= is_modern_service(event);
            match event {
                Event::Respawned => has_modern_request = false,
                Event::Concluded { side, revision } => agreed[super::at(*side)] = Some(*revision),
                Event::Wrote { from, text, .. } => {
                    let own = agreed[super::at(*from)];
                    let modern =
                        Some(MODERN).filter(|_| has_modern_request && *from == Side::Server);
                    let revisions: Vec<_> = own.into_iter().chain(modern).collect();
                    if !self.is_declared(*from, &Seen::of(text), &revisions) {
                        return Err(format!("{from} wrote what was not declared: {text}"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_declared(&self, from: Side, seen: &Seen, revisions: &[Revision]) -> bool {
        let (kind, method) = match seen {
            Seen::Answer => return true,
            Seen::Noise => return false,
            Seen::Request(_, method) => (Kind::Request, method.as_str()),
            Seen::Notification(method) => (Kind::Notification, method.as_str()),
        };
        let opens = match (from, method) {
            (Side::Client, "initialize") => self.setting.client.iter().any(|r| r != MODERN),
            (Side::Client, "server/discover") => self.setting.client.contains(MODERN),
            (Side::Server, "ping") => self.server_has_legacy() && revisions.is_empty(),
            // Cancelling an own request needs no capability.
            (_, "notifications/cancelled") => true,
            _ => false,
        };
        opens
            || revisions
                .iter()
                .any(|revision| self.may_send(*revision, from, kind, method))
    }
}

/// Returns whether a modern request was served: passed to the owner, or answered with a discover result.
fn is_modern_service(event: &Event) -> bool {
    match event {
        Event::Served { side, revision, .. } => *side == Side::Server && *revision == MODERN,
        Event::Wrote { from, text, .. } => {
            *from == Side::Server && text.contains("\"supportedVersions\":")
        }
        _ => false,
    }
}

fn is_object(params: Option<&str>) -> bool {
    params.is_none_or(|raw| raw.starts_with('{'))
}
