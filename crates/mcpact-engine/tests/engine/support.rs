//! Rigs that hold a machine and turn its effects into values that tests can compare.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::classify::TransportFacts;
use mcpact_engine::client::{self, Client, ClientTerms};
use mcpact_engine::effect::{Effect, End, Severity};
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::{Pact, Party};
use mcpact_engine::policy::{Policy, Profile, Reading};
use mcpact_engine::refusal::WireError;
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::{self, Scope, Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_spec::{Era, Revision, Side};
use mcpact_wire::envelope::Outcome;
use mcpact_wire::id::Id;
use mcpact_wire::model::implementation::Implementation;
use serde_json::{Value, json};

/// An effect, owned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Out {
    Write(Value),
    Reply(Value, u16),
    Serve(String),
    Observe(String),
    Settled(String, Ended),
    Concluded(Revision),
    Withheld(String),
    Dropped(String),
    Report(String, Severity),
    Remember(String),
    Abandon(String),
    Respawn,
    TryHttpSse,
    HangUp,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Result(Value),
    Error(Value),
    TimedOut,
    Cancelled,
    ConnectionClosed,
}

pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Negotiation records have their own tests.
fn own(effect: Effect<'_>) -> Option<Out> {
    Some(match effect {
        Effect::Negotiated(_) => return None,
        Effect::Write(text) => Out::Write(parse(&text)),
        Effect::Reply {
            text, http_status, ..
        } => Out::Reply(parse(&text), http_status),
        Effect::Serve(call) => Out::Serve(call.name.into()),
        Effect::Observe(note) => Out::Observe(note.name.into()),
        Effect::Settled { id, end, .. } => Out::Settled(
            id.raw().into(),
            match end {
                End::Answered(Outcome::Result(body)) => Ended::Result(parse(body.raw)),
                End::Answered(Outcome::Error(raw)) => Ended::Error(parse(raw)),
                End::TimedOut => Ended::TimedOut,
                End::Cancelled => Ended::Cancelled,
                End::ConnectionClosed => Ended::ConnectionClosed,
            },
        ),
        Effect::Concluded(pact) => Out::Concluded(pact.revision()),
        Effect::Withheld(misuse) => Out::Withheld(misuse.to_string()),
        Effect::Dropped(drop) => Out::Dropped(drop.what.into()),
        Effect::Report { refusal, gravity } => Out::Report(refusal.to_string(), gravity),
        Effect::Remember(verdict) => Out::Remember(format!("{verdict:?}")),
        Effect::Abandon(id) => Out::Abandon(id.raw().into()),
        Effect::Respawn => Out::Respawn,
        Effect::TryHttpSse => Out::TryHttpSse,
        Effect::HangUp => Out::HangUp,
    })
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn caps(owner: Side, document: Value) -> CapabilitySet {
    CapabilitySet::parse(owner, Some(&document.to_string()), Reading::Strict).unwrap()
}

pub(crate) fn party(owner: Side, document: Value) -> Party {
    Party {
        info: Some(Arc::new(Implementation::new("test", "1.0.0"))),
        capabilities: Arc::new(caps(owner, document)),
    }
}

pub(crate) fn pact(revision: Revision, client: Value, server: Value) -> Pact {
    Pact::new(
        revision,
        party(Side::Client, client),
        party(Side::Server, server),
    )
}

pub(crate) fn spec_policy() -> Policy {
    Profile::Spec.policy()
}

pub(crate) fn speaking(revisions: &[Revision]) -> Policy {
    let mut policy = spec_policy();
    policy.version.supported = RevisionSet::of(revisions);
    policy
}

pub(crate) fn legacy_only() -> Policy {
    let mut policy = spec_policy();
    policy.version.supported = RevisionSet::of_era(Era::Legacy);
    policy
}

pub(crate) fn modern_only() -> Policy {
    speaking(&[Revision::V2026_07_28])
}

/// A server machine under test.
pub(crate) struct ServerRig {
    pub(crate) server: Option<Server>,
    pub(crate) now: Moment,
}

impl ServerRig {
    pub(crate) fn new(policy: Policy, capabilities: Value) -> Self {
        let set = caps(Side::Server, capabilities);
        Self::with(ServerTerms::new(
            Implementation::new("srv", "9.9.9"),
            set,
            policy,
        ))
    }

    pub(crate) fn with(terms: ServerTerms) -> Self {
        Self {
            server: Some(Server::new(Arc::new(terms), Moment::ZERO)),
            now: Moment::ZERO,
        }
    }

    pub(crate) fn input(&mut self, input: server::Input<'_>) -> Vec<Out> {
        let step = self.server.take().unwrap().handle(input, self.now);
        self.server = Some(step.next);
        step.effects.into_iter().filter_map(own).collect()
    }

    pub(crate) fn bytes(&mut self, text: &str) -> Vec<Out> {
        self.bytes_with(text, TransportFacts::Stream)
    }

    pub(crate) fn bytes_with(&mut self, text: &str, facts: TransportFacts<'_>) -> Vec<Out> {
        self.input(server::Input::Bytes {
            bytes: text.as_bytes(),
            facts,
        })
    }

    pub(crate) fn message(&mut self, message: Value) -> Vec<Out> {
        self.bytes(&message.to_string())
    }

    pub(crate) fn request(&mut self, id: i64, method: &str, params: Value) -> Vec<Out> {
        self.message(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    pub(crate) fn notification(&mut self, method: &str, params: Value) -> Vec<Out> {
        self.message(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    pub(crate) fn initialize(&mut self, version: &str, capabilities: Value) -> Vec<Out> {
        self.request(0, "initialize", initialize_params(version, capabilities))
    }

    /// A handshake that must succeed, up to `notifications/initialized`.
    pub(crate) fn ready(&mut self, version: &str, capabilities: Value) -> &mut Self {
        let out = self.initialize(version, capabilities);
        assert_eq!(out[0].result()["protocolVersion"], version);
        assert_eq!(
            self.notification("notifications/initialized", json!({}))
                .len(),
            1
        );
        self
    }

    pub(crate) fn answer(&mut self, id: i64, result: Value) -> Vec<Out> {
        self.input(server::Input::Answer {
            id: Id::number(id),
            outcome: Ok(&result.to_string()),
        })
    }

    /// ResponsePath a request with an error.
    pub(crate) fn refuse(&mut self, id: i64) -> Vec<Out> {
        self.input(server::Input::Answer {
            id: Id::number(id),
            outcome: Err(WireError {
                code: -32602,
                message: String::from("no"),
                data: None,
                http_status: 200,
            }),
        })
    }

    pub(crate) fn ask(&mut self, id: i64, method: &str, params: Value) -> Vec<Out> {
        let params = params.to_string();
        self.input(server::Input::Ask {
            id,
            method,
            params: Some(&params),
            timeout: RequestTimeout::default(),
        })
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) -> Vec<Out> {
        self.notify_in(Scope::Connection, method, params)
    }

    pub(crate) fn notify_in(&mut self, scope: Scope, method: &str, params: Value) -> Vec<Out> {
        let params = params.to_string();
        self.input(server::Input::Notify {
            scope,
            method,
            params: Some(&params),
        })
    }

    pub(crate) fn after(&mut self, wait: Duration) -> Vec<Out> {
        self.now = self.now.after(wait);
        self.input(server::Input::Tick)
    }

    pub(crate) fn machine(&self) -> &Server {
        self.server.as_ref().unwrap()
    }
}

pub(crate) fn initialize_params(version: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {"name": "cli", "version": "1.2.3"},
    })
}

pub(crate) fn meta(version: &str, capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

pub(crate) fn modern_params(capabilities: Value) -> Value {
    json!({"_meta": meta("2026-07-28", capabilities)})
}

impl Out {
    pub(crate) fn reply(&self) -> &Value {
        match self {
            Out::Reply(value, _) | Out::Write(value) => value,
            other => panic!("expected a message, got {other:?}"),
        }
    }

    pub(crate) fn result(&self) -> &Value {
        let reply = self.reply();
        assert!(reply.get("result").is_some(), "expected a result: {reply}");
        &reply["result"]
    }

    pub(crate) fn error(&self) -> &Value {
        let reply = self.reply();
        assert!(reply.get("error").is_some(), "expected an error: {reply}");
        &reply["error"]
    }

    pub(crate) fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap()
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Out::Reply(_, status) => *status,
            other => panic!("expected a reply, got {other:?}"),
        }
    }
}

/// A client machine under test.
pub(crate) struct ClientRig {
    pub(crate) client: Option<Client>,
    pub(crate) now: Moment,
}

impl ClientRig {
    pub(crate) fn new(policy: Policy, capabilities: Value) -> Self {
        Self::with(policy, capabilities, |_| {})
    }

    pub(crate) fn with(
        policy: Policy,
        capabilities: Value,
        change: impl FnOnce(&mut ClientTerms),
    ) -> Self {
        let set = caps(Side::Client, capabilities);
        let mut terms = ClientTerms::new(Implementation::new("cli", "1.2.3"), set, policy);
        change(&mut terms);
        Self {
            client: Some(Client::new(Arc::new(terms))),
            now: Moment::ZERO,
        }
    }

    pub(crate) fn input(&mut self, input: client::Input<'_>) -> Vec<Out> {
        let step = self.client.take().unwrap().handle(input, self.now);
        self.client = Some(step.next);
        step.effects.into_iter().filter_map(own).collect()
    }

    /// Opens the connection and gives the first message.
    pub(crate) fn open(&mut self) -> Vec<Out> {
        assert!(self.input(client::Input::Open).is_empty());
        self.input(client::Input::Connected)
    }

    pub(crate) fn message(&mut self, message: Value) -> Vec<Out> {
        let text = message.to_string();
        self.input(client::Input::Bytes {
            bytes: text.as_bytes(),
            http_status: None,
        })
    }

    /// ResponsePath the request that the client has just written.
    pub(crate) fn answer_to(&mut self, out: &Out, result: Value) -> Vec<Out> {
        let id = out.reply()["id"].clone();
        self.message(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    pub(crate) fn error_to(&mut self, out: &Out, code: i64, data: Value) -> Vec<Out> {
        let id = out.reply()["id"].clone();
        let error = json!({"code": code, "message": "no", "data": data});
        self.message(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// A legacy handshake that must succeed.
    pub(crate) fn ready(&mut self, version: &str, server: Value) -> &mut Self {
        let first = self.open().remove(0);
        assert_eq!(first.reply()["method"], "initialize");
        let out = self.answer_to(&first, initialize_result(version, server));
        assert!(
            out.iter().any(|o| matches!(o, Out::Concluded(_))),
            "{out:?}"
        );
        self
    }

    /// A modern opening that must succeed.
    pub(crate) fn ready_modern(&mut self, server: Value) -> &mut Self {
        let first = self.open().remove(0);
        assert_eq!(first.reply()["method"], "server/discover");
        let out = self.answer_to(&first, discover_result(&["2026-07-28"], server));
        assert!(
            out.iter().any(|o| matches!(o, Out::Concluded(_))),
            "{out:?}"
        );
        self
    }

    pub(crate) fn ask(&mut self, id: i64, method: &str, params: Value) -> Vec<Out> {
        let params = params.to_string();
        self.input(client::Input::Ask {
            id,
            method,
            params: Some(&params),
            timeout: RequestTimeout::default(),
        })
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) -> Vec<Out> {
        let params = params.to_string();
        self.input(client::Input::Notify {
            method,
            params: Some(&params),
        })
    }

    pub(crate) fn after(&mut self, wait: Duration) -> Vec<Out> {
        self.now = self.now.after(wait);
        self.input(client::Input::Tick)
    }

    pub(crate) fn machine(&self) -> &Client {
        self.client.as_ref().unwrap()
    }
}

pub(crate) fn initialize_result(version: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": {"name": "srv", "version": "9.9.9"},
    })
}

pub(crate) fn discover_result(versions: &[&str], capabilities: Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
    })
}
