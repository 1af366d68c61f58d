//! Filters of listen requests, and subscriptions of legacy clients.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Extension, Kind, Method, Side};
use mcpact_wire::envelope::Request;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};
use mcpact_wire::scan::text;

use super::Server;
use super::outgoing::level_of;
use crate::capability::CapabilityBits;
use crate::pact::Pact;
use crate::refusal::{Misbehaviour, Refusal};

/// The change notifications that a client wants on a stream of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenFilter {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource list.
    pub resources: bool,
    /// Updates of these resources.
    pub uris: Vec<Box<str>>,
    /// Changes of these tasks.
    pub tasks: Vec<Box<str>>,
}

impl ListenFilter {
    /// Reads `params.notifications`; none when it is not an object.
    #[must_use]
    pub fn parse(params: Option<&str>) -> Option<Self> {
        let params = Object::parse(params?).ok()?;
        let wanted = Object::parse(params.get("notifications")?).ok()?;
        let flag = |key: &str| wanted.get(key) == Some("true");
        let list = |key: &str| -> Vec<Box<str>> {
            wanted
                .get(key)
                .filter(|raw| JsonKind::of(raw) == JsonKind::Array)
                .and_then(|raw| elements(raw).ok())
                .unwrap_or_default()
                .into_iter()
                .filter_map(|raw| text(raw).map(|t| Box::from(t.as_ref())))
                .collect()
        };
        Some(Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            uris: list("resourceSubscriptions"),
            tasks: list("taskIds"),
        })
    }

    /// The lists whose changes a server with these capabilities announces.
    #[must_use]
    pub fn lists(declared: CapabilityBits) -> Self {
        Self {
            tools: declared.has(Capability::ToolsListChanged),
            prompts: declared.has(Capability::PromptsListChanged),
            resources: declared.has(Capability::ResourcesListChanged),
            ..Self::default()
        }
    }

    /// Granted part of a request.
    ///
    /// `ext-tasks#task-status-notifications`: what a server lacks is left out, but a client that wants
    /// to hear of tasks must have declared them.
    ///
    /// # Errors
    /// It names tasks, and only the client stands in the way of them.
    pub(super) fn agree(params: Option<&str>, pact: &Pact) -> Result<Self, Refusal> {
        let wanted = Self::parse(params).unwrap_or_default();
        if !wanted.tasks.is_empty() && pact.lacking(Extension::Tasks) == Some(Side::Client) {
            return Err(Misbehaviour::Method {
                method: Box::from(Method::SubscriptionsListen.as_str()),
                ruling: pact.rule_on(Side::Server, Kind::Notification, Method::TasksChanged),
            }
            .into());
        }
        Ok(wanted.granted(pact))
    }

    /// The part that the server declared.
    ///
    /// `2026-07-28 basic/patterns/subscriptions`: what is not supported is left out of the
    /// acknowledgement; the stream opens all the same.
    #[must_use]
    pub fn granted(self, pact: &Pact) -> Self {
        let keep =
            |list: Vec<Box<str>>, is_granted: bool| if is_granted { list } else { Vec::new() };
        let offered = Self::lists(pact.effective());
        Self {
            tools: self.tools && offered.tools,
            prompts: self.prompts && offered.prompts,
            resources: self.resources && offered.resources,
            uris: keep(self.uris, pact.declares(Capability::ResourcesSubscribe)),
            tasks: keep(self.tasks, pact.lacking(Extension::Tasks).is_none()),
        }
    }

    /// Returns whether the stream asked for this notification.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "nothing else may go on a listen stream"
    )]
    pub fn wants(&self, method: Method, params: Option<&str>) -> bool {
        match method {
            Method::ToolsListChanged => self.tools,
            Method::PromptsListChanged => self.prompts,
            Method::ResourcesListChanged => self.resources,
            Method::ResourcesUpdated => {
                member(params, "uri").is_some_and(|uri| self.uris.iter().any(|of| covers(of, &uri)))
            }
            Method::TasksChanged => {
                member(params, "taskId").is_some_and(|id| self.tasks.iter().any(|of| **of == *id))
            }
            _ => false,
        }
    }

    /// The filter as it stands in the acknowledgement: only what is granted.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = ObjectWriter::new();
        for (key, is_granted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if is_granted {
                out = out.raw(key, "true");
            }
        }
        for (key, list) in [
            ("resourceSubscriptions", &self.uris),
            ("taskIds", &self.tasks),
        ] {
            if !list.is_empty() {
                out = out.texts(key, list.iter().map(AsRef::as_ref));
            }
        }
        out.finish()
    }
}

/// The resources that a legacy client wants to hear of.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions {
    uris: BTreeSet<Box<str>>,
}

impl Subscriptions {
    /// Takes note of a request if it subscribes or unsubscribes, and gives back what is new; none when
    /// there are too many.
    #[expect(clippy::option_option, reason = "what is new may be nothing")]
    pub(super) fn note(
        &mut self,
        method: Method,
        params: Option<&str>,
        limit: usize,
    ) -> Option<Option<Box<str>>> {
        let is_subscribing = method == Method::ResourcesSubscribe;
        if !is_subscribing && method != Method::ResourcesUnsubscribe {
            return Some(None);
        }
        let Some(uri) = member(params, "uri") else {
            return Some(None);
        };
        if !is_subscribing {
            self.forget(&uri);
            return Some(None);
        }
        if self.uris.contains(&uri) {
            return Some(None);
        }
        if self.uris.len() >= limit {
            return None;
        }
        self.uris.insert(uri.clone());
        Some(Some(uri))
    }

    /// Removes a subscription that ended or was refused.
    pub(super) fn forget(&mut self, uri: &str) {
        self.uris.remove(uri);
    }

    /// Returns whether an update is one of those that the client wants to hear of.
    pub(super) fn want(&self, params: Option<&str>) -> bool {
        member(params, "uri").is_some_and(|uri| self.uris.iter().any(|of| covers(of, &uri)))
    }
}

impl Server {
    /// Records the log level or subscription that a request sets, and returns a new resource.
    pub(super) fn note(
        &mut self,
        method: Option<Method>,
        request: &Request<'_>,
    ) -> Result<Option<Box<str>>, Refusal> {
        let params = request.params.raw;
        if method == Some(Method::LoggingSetLevel) {
            self.log_threshold = level_of(params).or(self.log_threshold);
        }
        let limit = self.terms.subscription_limit;
        let Some(method) = method else {
            return Ok(None);
        };
        let noted = self.subscriptions.note(method, params, limit);
        noted.ok_or_else(|| {
            let what = "subscriptions";
            Misbehaviour::TooMany { limit, what }.into()
        })
    }
}

/// Returns whether a resource is the one subscribed to or a part of it.
///
/// `2025-11-25 schema#resourceupdatednotificationparams`: it may be a sub-resource.
#[must_use]
pub fn covers(subscribed: &str, uri: &str) -> bool {
    let of = subscribed.strip_suffix('/').unwrap_or(subscribed);
    match uri.strip_prefix(of) {
        Some(rest) => rest.is_empty() || rest.starts_with(['/', '#', '?']),
        None => false,
    }
}

fn member(params: Option<&str>, key: &str) -> Option<Box<str>> {
    let params = Object::parse(params?).ok()?;
    params.get_str(key).map(|found| Box::from(found.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSUBSCRIBE: Method = Method::ResourcesUnsubscribe;

    #[test]
    fn a_subscription_covers_a_resource_and_its_parts() {
        for (uri, is_covered) in [
            ("file:///a", true),
            ("file:///a/b", true),
            ("file:///a#part", true),
            ("file:///ab", false),
            ("file:///", false),
        ] {
            assert_eq!(covers("file:///a", uri), is_covered, "{uri}");
            assert_eq!(covers("file:///a/", uri), is_covered, "{uri}");
        }
    }

    #[test]
    fn subscriptions_are_counted_and_ended() {
        let mut all = Subscriptions::default();
        let note = |all: &mut Subscriptions, method, uri| all.note(method, Some(uri), 1).is_some();
        let (a, b) = (r#"{"uri":"x://a"}"#, r#"{"uri":"x://b"}"#);
        assert!(note(&mut all, Method::ResourcesSubscribe, a));
        assert!(note(&mut all, Method::ResourcesSubscribe, a), "the same");
        assert!(!note(&mut all, Method::ResourcesSubscribe, b), "too many");
        assert!(all.want(Some(a)) && !all.want(Some(b)) && !all.want(None));
        assert!(note(&mut all, UNSUBSCRIBE, a));
        assert!(!all.want(Some(a)));
    }
}
