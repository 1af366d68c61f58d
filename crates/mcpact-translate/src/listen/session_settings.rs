//! Settings of a legacy client at a legacy server, to be replayed after a lost session.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::server::listen::{ListenFilter, covers};
use mcpact_spec::Method;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::{LISTS, uri_in};

/// The settings that a server has taken from its only client.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// The raw parameters of the last `logging/setLevel`.
    level: Option<String>,
    uris: BTreeSet<Box<str>>,
    limit: usize,
}

impl SessionSettings {
    /// Nothing yet; of more than `limit` subscriptions the latest are forgotten.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            level: None,
            uris: BTreeSet::new(),
            limit,
        }
    }

    /// The server answered a request with a result.
    pub fn record(&mut self, method: Method, params: &str) {
        let names_resource = matches!(
            method,
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe
        );
        // Every call passes here, and its parameters may be long.
        let uri = uri_in(Some(params).filter(|_| names_resource));
        match (method, uri) {
            (Method::ResourcesSubscribe, Some(uri)) if self.uris.len() < self.limit => {
                self.uris.insert(uri.as_ref().into());
            }
            (Method::ResourcesUnsubscribe, Some(uri)) => {
                self.uris.remove(uri.as_ref());
            }
            (Method::LoggingSetLevel, _) => {
                let level = Object::parse(params).unwrap_or_default();
                let level = level.get_str("level");
                self.level = level.map(|level| ObjectWriter::new().text("level", &level).finish());
            }
            (_, _) => {}
        }
    }

    /// Returns whether the client has subscriptions, which need a session.
    #[must_use]
    pub fn has_subscriptions(&self) -> bool {
        !self.uris.is_empty()
    }

    /// Returns whether the client has subscribed to this resource.
    #[must_use]
    pub fn wants(&self, uri: &str) -> bool {
        self.uris.contains(uri)
    }

    /// Subscribed resources.
    pub fn uris(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(AsRef::as_ref)
    }

    /// Returns whether the client has subscribed to the resource that parameters name, or to what it is a part of.
    #[must_use]
    pub fn covers_update(&self, params: &str) -> bool {
        let wanted = |uri: &str| self.uris.iter().any(|wanted| covers(wanted, uri));
        uri_in(Some(params)).is_some_and(|uri| wanted(&uri))
    }

    /// Returns the requests that restore the state of the lost session in a new one.
    #[must_use]
    pub fn replay(&self) -> Vec<(Method, String)> {
        let level = self.level.iter().cloned();
        let level = level.map(|params| (Method::LoggingSetLevel, params));
        level
            .chain(self.with_each_uri(Method::ResourcesSubscribe))
            .collect()
    }

    /// The notifications of everything that may have changed while there was no session.
    #[must_use]
    pub fn possible_changes(&self, server: &CapabilitySet) -> Vec<(Method, String)> {
        let announced = ListenFilter::lists(server.declared());
        let lists = LISTS
            .into_iter()
            .filter(|method| announced.wants(*method, None));
        lists
            .map(|method| (method, String::from("{}")))
            .chain(self.with_each_uri(Method::ResourcesUpdated))
            .collect()
    }

    fn with_each_uri(&self, method: Method) -> impl Iterator<Item = (Method, String)> {
        let params = |uri: &str| ObjectWriter::new().text("uri", uri).finish();
        self.uris.iter().map(move |uri| (method, params(uri)))
    }
}

#[cfg(test)]
mod tests {
    use mcpact_engine::policy::Reading;
    use mcpact_spec::Side;

    use super::*;

    fn subscribe(settings: &mut SessionSettings, uri: &str) {
        let params = ObjectWriter::new().text("uri", uri).finish();
        settings.record(Method::ResourcesSubscribe, &params);
    }

    #[test]
    fn a_new_session_gets_what_the_lost_one_had() {
        let mut settings = SessionSettings::new(2);
        assert!(settings.replay().is_empty() && !settings.has_subscriptions());
        settings.record(
            Method::LoggingSetLevel,
            r#"{"level":"debug","_meta":{"x":1}}"#,
        );
        settings.record(Method::LoggingSetLevel, r#"{"level":"error"}"#);
        for uri in ["a:1", "a:2", "a:3"] {
            subscribe(&mut settings, uri);
        }
        settings.record(Method::ResourcesUnsubscribe, r#"{"uri":"a:1"}"#);
        settings.record(Method::ToolsCall, r#"{"uri":"a:4"}"#);
        let expected = [
            (
                Method::LoggingSetLevel,
                String::from(r#"{"level":"error"}"#),
            ),
            (Method::ResourcesSubscribe, String::from(r#"{"uri":"a:2"}"#)),
        ];
        assert_eq!(settings.replay(), expected);
        assert!(settings.has_subscriptions());
        assert!(settings.uris().eq(["a:2"]));
        assert_eq!(["a:1", "a:2"].map(|uri| settings.wants(uri)), [false, true]);
        let heard = ["a:1", "a:2", "a:2/part", "a:22"]
            .map(|uri| ObjectWriter::new().text("uri", uri).finish())
            .map(|params| settings.covers_update(&params));
        assert_eq!(heard, [false, true, true, false]);
    }

    #[test]
    fn everything_that_may_have_changed_is_reported() {
        let mut settings = SessionSettings::new(9);
        subscribe(&mut settings, "a:1");
        let raw = r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}"#;
        let server = CapabilitySet::parse(Side::Server, Some(raw), Reading::Lenient).unwrap();
        let expected = [
            (Method::ToolsListChanged, String::from("{}")),
            (Method::ResourcesUpdated, String::from(r#"{"uri":"a:1"}"#)),
        ];
        assert_eq!(settings.possible_changes(&server), expected);
    }
}
