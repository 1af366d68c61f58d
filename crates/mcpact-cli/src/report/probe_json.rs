//! JSON output of `mcpact probe`.

use std::collections::BTreeMap;

use mcpact_engine::pact::Pact;
use mcpact_engine::policy::Policy;
use mcpact_engine::transcript::TranscriptEvent;
use mcpact_spec::Side;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::Exit;
use crate::explanation::{IgnoredCapability, MethodVerdict, effective, ignored, verdicts};
use crate::probe::connect::{Agreement, Attempt};
use crate::probe::dialogue::Carrier;
use crate::probe::revisions::RevisionVerdict;
use crate::probe::violations::Violation;
use crate::probe::{Probe, failure, stderr_of};

/// Formats the result of a probe as JSON. Every field is always present.
pub(crate) fn write(probe: &Probe) -> String {
    super::json(&report(probe))
}

mcpact_spec::stable_strings! {
    /// Outcome of a probe: `outcome` in `mcpact probe --json`.
    pub(crate) enum ProbeOutcome {
        /// The server needs credentials.
        AuthenticationNeeded = "authentication-needed",
        /// A revision was negotiated.
        Negotiated = "negotiated",
        /// The two sides have no revision in common, or the server refuses the handshake.
        Refused = "refused",
        /// The server cannot be reached or does not answer.
        Unreachable = "unreachable",
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'p> {
    outcome: &'static str,
    target: &'p str,
    transport: &'static str,
    starts: u32,
    revision: Option<&'static str>,
    era: Option<&'static str>,
    server: Option<Identity<'p>>,
    instructions: Option<&'p str>,
    latency: Latency,
    revisions: &'p [RevisionVerdict],
    declared: BySide<Option<Box<RawValue>>>,
    capabilities: BySide<BTreeMap<&'static str, &'static str>>,
    dropped: Vec<IgnoredCapability>,
    methods: Vec<MethodVerdict>,
    violations: &'p [Violation],
    unanswered: Vec<&'static str>,
    connections: Vec<Connection>,
    trail: &'p [TranscriptEvent],
    failure: Option<Failure>,
}

#[derive(Default, Serialize)]
struct BySide<T> {
    client: T,
    server: T,
}

#[derive(Serialize)]
struct Identity<'p> {
    name: &'p str,
    version: &'p str,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Latency {
    connect_ms: u64,
    request: Option<&'static str>,
    request_ms: Option<u64>,
}

/// One connection of the probe.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Connection {
    revision: Option<&'static str>,
    starts: u32,
    connect_ms: u64,
    messages: usize,
    is_truncated: bool,
}

#[derive(Serialize)]
struct Failure {
    reason: &'static str,
    explanation: String,
    remedies: Vec<String>,
    stderr: String,
}

fn report(probe: &Probe) -> Report<'_> {
    let base = Report {
        outcome: match probe.exit() {
            Exit::Ok => ProbeOutcome::Negotiated,
            Exit::Auth => ProbeOutcome::AuthenticationNeeded,
            Exit::Refused => ProbeOutcome::Refused,
            _ => ProbeOutcome::Unreachable,
        }
        .as_str(),
        target: &probe.target,
        transport: match probe.carrier {
            Carrier::Stdio => "stdio",
            Carrier::Http => "http",
        },
        starts: probe.starts(),
        latency: Latency {
            connect_ms: probe.attempts.first().map_or(0, connect_ms),
            ..Latency::default()
        },
        revisions: &probe.revisions,
        violations: &probe.violations,
        connections: probe.attempts.iter().map(connection).collect(),
        ..Report::default()
    };
    match probe.outcome() {
        Some(Ok(agreement)) => agreed(base, agreement),
        Some(Err(error)) => {
            let explained = failure::explain(error);
            Report {
                failure: Some(Failure {
                    reason: explained.reason,
                    explanation: explained.cause,
                    remedies: explained.fixes,
                    stderr: stderr_of(error).to_owned(),
                }),
                ..base
            }
        }
        None => base,
    }
}

fn agreed<'p>(base: Report<'p>, agreement: &'p Agreement) -> Report<'p> {
    let pact = &agreement.pact;
    let info = pact.party(Side::Server).info.as_deref();
    let round_trip = agreement.round_trip.as_ref();
    Report {
        revision: Some(pact.revision().as_str()),
        era: Some(pact.era().as_str()),
        server: info.map(|info| Identity {
            name: info.name(),
            version: info.version(),
        }),
        instructions: agreement.instructions.as_deref(),
        latency: Latency {
            request: round_trip.map(|(method, _)| method.as_str()),
            request_ms: round_trip.map(|(_, time)| millis(*time)),
            ..base.latency
        },
        declared: BySide {
            client: declared(pact, Side::Client),
            server: declared(pact, Side::Server),
        },
        capabilities: BySide {
            client: capabilities(pact, Side::Client),
            server: capabilities(pact, Side::Server),
        },
        dropped: ignored(pact),
        methods: verdicts(pact, &Policy::default()),
        unanswered: agreement
            .unanswered
            .iter()
            .map(|method| method.as_str())
            .collect(),
        trail: agreement.transcript.events(),
        ..base
    }
}

fn connection(attempt: &Attempt) -> Connection {
    let agreement = attempt.outcome.as_ref().ok();
    Connection {
        revision: agreement.map(|agreement| agreement.pact.revision().as_str()),
        starts: attempt.starts,
        connect_ms: connect_ms(attempt),
        messages: attempt.record.items.len(),
        is_truncated: attempt.record.is_truncated,
    }
}

fn connect_ms(attempt: &Attempt) -> u64 {
    millis(attempt.connect_time)
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn declared(pact: &Pact, side: Side) -> Option<Box<RawValue>> {
    let raw = pact.party(side).capabilities.raw();
    RawValue::from_string(raw.to_owned()).ok()
}

fn capabilities(pact: &Pact, side: Side) -> BTreeMap<&'static str, &'static str> {
    let all = effective(pact, side).into_iter();
    all.map(|one| (one.capability.path(), one.status)).collect()
}
