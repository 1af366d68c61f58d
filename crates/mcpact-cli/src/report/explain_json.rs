//! JSON output of `mcpact explain`.

use std::collections::BTreeMap;

use mcpact_engine::capability::{SharedExtension, Trimmed};
use mcpact_engine::pact::Pact;
use mcpact_engine::transcript::TranscriptEvent;
use mcpact_engine::version::Chosen;
use mcpact_spec::Side;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::document::Document;
use crate::explanation::{
    Explanation, IgnoredCapability, MethodVerdict, Rejection, effective, ignored, sent, verdicts,
};

/// Formats an explanation as JSON. Every field is always present.
pub(crate) fn write(explanation: &Explanation) -> String {
    let report = match explanation.pact() {
        Ok(pact) => agreed(explanation, pact),
        Err(refusal) => Report {
            outcome: "refused",
            refusal: Some(Refused::new(&Rejection::new(explanation, refusal))),
            ..base(explanation)
        },
    };
    super::json(&report)
}

#[derive(Default, Serialize)]
struct Report<'e> {
    outcome: &'static str,
    revision: Option<&'static str>,
    era: Option<&'static str>,
    chosen: Option<Chosen>,
    profile: &'static str,
    client: Peer<'e>,
    server: Peer<'e>,
    capabilities: BySide<BTreeMap<&'static str, Effective>>,
    dropped: Vec<IgnoredCapability>,
    trimmed: BySide<Vec<Trimmed>>,
    experimental: Vec<Shared<'e>>,
    extensions: Vec<Shared<'e>>,
    methods: Vec<MethodVerdict>,
    trail: &'e [TranscriptEvent],
    refusal: Option<Refused>,
}

#[derive(Default, Serialize)]
struct BySide<T> {
    client: T,
    server: T,
}

#[derive(Default, Serialize)]
struct Peer<'e> {
    name: Option<&'e str>,
    version: Option<&'e str>,
    source: String,
    speaks: Vec<&'e str>,
    declared: Box<RawValue>,
    sent: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Effective {
    description: &'static str,
    status: &'static str,
}

#[derive(Serialize)]
struct Shared<'e> {
    id: &'e str,
    version: Option<&'e str>,
    client: Box<RawValue>,
    server: Box<RawValue>,
}

#[derive(Serialize)]
struct Refused {
    reason: &'static str,
    explanation: String,
    remedies: Vec<String>,
    code: i64,
    message: String,
    data: Option<Box<RawValue>>,
}

/// Returns the fields that every outcome has.
fn base(explanation: &Explanation) -> Report<'_> {
    Report {
        outcome: "agreed",
        profile: explanation.policy.profile.as_str(),
        client: Peer::new(explanation.document(Side::Client)),
        server: Peer::new(explanation.document(Side::Server)),
        trail: explanation.trail().events(),
        ..Report::default()
    }
}

fn agreed<'e>(explanation: &'e Explanation, pact: &'e Pact) -> Report<'e> {
    let policy = &explanation.policy.policy;
    let base = base(explanation);
    let (client_sent, client_trimmed) = sent(pact, Side::Client, policy);
    let (server_sent, server_trimmed) = sent(pact, Side::Server, policy);
    Report {
        revision: Some(pact.revision().as_str()),
        era: Some(pact.era().as_str()),
        chosen: explanation.selection(),
        client: base.client.sending(&client_sent),
        server: base.server.sending(&server_sent),
        capabilities: BySide {
            client: capabilities(pact, Side::Client),
            server: capabilities(pact, Side::Server),
        },
        dropped: ignored(pact),
        trimmed: BySide {
            client: client_trimmed,
            server: server_trimmed,
        },
        experimental: pact.experimental().iter().map(Shared::new).collect(),
        extensions: pact.extensions().iter().map(Shared::new).collect(),
        methods: verdicts(pact, policy),
        ..base
    }
}

fn capabilities(pact: &Pact, side: Side) -> BTreeMap<&'static str, Effective> {
    effective(pact, side)
        .into_iter()
        .map(|one| {
            let value = Effective {
                description: one.capability.description(),
                status: one.status,
            };
            (one.capability.path(), value)
        })
        .collect()
}

/// Embeds checked JSON; anything else becomes `null`.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}

impl<'e> Peer<'e> {
    fn new(document: &'e Document) -> Self {
        Self {
            name: document.info.as_ref().map(|info| info.name()),
            version: document.info.as_ref().map(|info| info.version()),
            source: document.source.name(),
            speaks: document.versions.iter().map(|v| v.as_str()).collect(),
            declared: raw(document.capabilities.as_deref().unwrap_or("null")),
            sent: None,
        }
    }

    fn sending(self, sent: &str) -> Self {
        Self {
            sent: Some(raw(sent)),
            ..self
        }
    }
}

impl<'e> Shared<'e> {
    fn new(shared: &'e SharedExtension) -> Self {
        Self {
            id: &shared.id,
            version: shared.version.as_deref(),
            client: raw(&shared.client_settings),
            server: raw(&shared.server_settings),
        }
    }
}

impl Refused {
    fn new(rejection: &Rejection) -> Self {
        Self {
            reason: rejection.reason,
            explanation: rejection.cause.clone(),
            remedies: rejection.fixes.clone(),
            code: rejection.wire.code,
            message: rejection.wire.message.clone(),
            data: rejection.wire.data.as_deref().map(raw),
        }
    }
}
