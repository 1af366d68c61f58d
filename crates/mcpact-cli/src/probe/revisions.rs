//! Verdict on each revision, from the answers to the handshakes.

use mcpact_spec::{Era, Method, Revision};
use serde::Serialize;
use serde_json::Value;

use super::connect::Attempt;
use super::dialogue::{Carrier, Dialogue, Entry, Received};
use super::failure_exit;
use crate::error::Exit;

mcpact_spec::stable_strings! {
    /// Verdict on a revision: `revisions[].verdict` in `mcpact probe --json`.
    pub(crate) enum RevisionState {
        /// The server accepts it.
        Accepted = "accepted",
        /// The server answers with another revision.
        CounterOffered = "counter-offered",
        /// The server lists it; it was not tried.
        Listed = "listed",
        /// The server does not accept it.
        Refused = "refused",
        /// It was not tried.
        Untested = "untested",
    }
}

/// Reason of a revision that no connection offered.
pub(crate) const NOT_TRIED: &str = "not tried";

/// Verdict on one revision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionVerdict {
    /// The revision.
    pub(crate) revision: &'static str,
    /// Its era.
    pub(crate) era: &'static str,
    /// Stable name of the verdict.
    pub(crate) verdict: &'static str,
    /// The revision that the server answered with, if it is another one.
    pub(crate) counter_offer: Option<String>,
    /// Observation behind the verdict. It may contain text of the server.
    pub(crate) why: String,
}

/// An observed answer about one revision.
#[derive(Debug)]
struct Observed {
    revision: Revision,
    state: RevisionState,
    counter_offer: Option<String>,
    why: String,
}

/// Returns the revisions that the client offered on a connection.
pub(crate) fn offered(attempt: &Attempt) -> Vec<Revision> {
    let dialogue = Dialogue::new(&attempt.record, Carrier::Stdio, None);
    let versions = dialogue.sent().filter_map(|sent| sent.version.as_deref());
    versions.filter_map(Revision::parse).collect()
}

/// Returns the verdicts on all revisions, newest first.
pub(crate) fn revision_verdicts(attempts: &[Attempt], carrier: Carrier) -> Vec<RevisionVerdict> {
    let observed: Vec<Observed> = attempts
        .iter()
        .flat_map(|attempt| observations(attempt, carrier))
        .collect();
    let all = Revision::ALL.into_iter().rev();
    all.map(|revision| {
        let mut own: Vec<&Observed> = observed
            .iter()
            .filter(|observed| observed.revision == revision)
            .collect();
        own.sort_by_key(|observed| weight(observed.state));
        let (state, counter_offer, why) = match own.first() {
            Some(best) => (best.state, best.counter_offer.clone(), best.why.clone()),
            None => (RevisionState::Untested, None, String::from(NOT_TRIED)),
        };
        RevisionVerdict {
            revision: revision.as_str(),
            era: revision.era().as_str(),
            verdict: state.as_str(),
            counter_offer,
            why,
        }
    })
    .collect()
}

/// Precedence of observations about the same revision: what was tried outweighs what a server lists.
const fn weight(state: RevisionState) -> u8 {
    match state {
        RevisionState::Accepted => 0,
        RevisionState::CounterOffered => 1,
        RevisionState::Refused => 2,
        RevisionState::Listed => 3,
        RevisionState::Untested => 4,
    }
}

fn observations(attempt: &Attempt, carrier: Carrier) -> Vec<Observed> {
    let pact = attempt.outcome.as_ref().ok();
    let pact = pact.map(|agreement| &*agreement.pact);
    let dialogue = Dialogue::new(&attempt.record, carrier, pact);
    let mut all = Vec::new();
    for (at, entry) in dialogue.entries.iter().enumerate() {
        let Entry::Sent(sent) = entry else {
            continue;
        };
        let Some(revision) = sent.version.as_deref().and_then(Revision::parse) else {
            continue;
        };
        let answer = dialogue
            .received()
            .find(|received| received.answers == Some(at));
        match sent.method.as_deref() {
            Some("initialize") => all.extend(of_initialize(revision, answer, at, &dialogue)),
            Some("server/discover") => all.extend(of_discover(revision, answer, at, &dialogue)),
            _ => {}
        }
    }
    if let Some(pact) = pact {
        // The engine decides: a server can be modern without answering discovery.
        let revision = pact.revision();
        let is_accepted =
            |one: &Observed| one.revision == revision && one.state == RevisionState::Accepted;
        if !all.iter().any(is_accepted) {
            all.push(observed(revision, RevisionState::Accepted, "negotiated"));
        }
    }
    let failure = attempt.outcome.as_ref().err();
    if failure.is_some_and(|error| failure_exit(error) != Exit::Refused) {
        // A server that cannot be used refuses no revision.
        for one in &mut all {
            if one.state == RevisionState::Refused {
                one.state = RevisionState::Untested;
            }
        }
    }
    all
}

fn observed(revision: Revision, state: RevisionState, why: impl Into<String>) -> Observed {
    Observed {
        revision,
        state,
        counter_offer: None,
        why: why.into(),
    }
}

fn of_initialize(
    asked: Revision,
    answer: Option<&Received>,
    at: usize,
    dialogue: &Dialogue<'_>,
) -> Vec<Observed> {
    let Some(message) = answer.map(|received| &received.message) else {
        let why = missing(Method::Initialize, at, dialogue);
        return vec![observed(asked, RevisionState::Refused, why)];
    };
    let Some(result) = message.get("result") else {
        let why = error_text(Method::Initialize, message);
        let mut all = vec![observed(asked, RevisionState::Refused, why)];
        all.extend(listed(message, asked));
        return all;
    };
    match result.get("protocolVersion").and_then(Value::as_str) {
        Some(version) if version == asked.as_str() => {
            let why = "the server answers `initialize` with it";
            vec![observed(asked, RevisionState::Accepted, why)]
        }
        Some(version) => match Revision::parse(version) {
            Some(other) => vec![
                Observed {
                    counter_offer: Some(other.to_string()),
                    ..observed(
                        asked,
                        RevisionState::CounterOffered,
                        format!("the server answers `initialize` with {other}"),
                    )
                },
                observed(
                    other,
                    RevisionState::Accepted,
                    format!("the server offers it in answer to {asked}"),
                ),
            ],
            None => vec![observed(
                asked,
                RevisionState::Refused,
                format!("the server answers with the unknown version `{version}`"),
            )],
        },
        None => vec![observed(
            asked,
            RevisionState::Refused,
            "the result of `initialize` has no version",
        )],
    }
}

fn of_discover(
    asked: Revision,
    answer: Option<&Received>,
    at: usize,
    dialogue: &Dialogue<'_>,
) -> Vec<Observed> {
    let Some(message) = answer.map(|received| &received.message) else {
        let why = missing(Method::Discover, at, dialogue);
        return vec![observed(asked, RevisionState::Refused, why)];
    };
    let Some(result) = message.get("result") else {
        let mut all = vec![observed(
            asked,
            RevisionState::Refused,
            error_text(Method::Discover, message),
        )];
        all.extend(listed(message, asked));
        return all;
    };
    let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
        let why = "the result of `server/discover` lists no versions";
        return vec![observed(asked, RevisionState::Refused, why)];
    };
    let mut all: Vec<Observed> = known(versions)
        .map(|revision| match revision.era() {
            Era::Modern => observed(
                revision,
                RevisionState::Accepted,
                "the server lists it in `server/discover`",
            ),
            Era::Legacy => observed(
                revision,
                RevisionState::Listed,
                "the server lists it in `server/discover`; not tried",
            ),
        })
        .collect();
    if !all.iter().any(|one| one.revision == asked) {
        let why = "the server does not list it in `server/discover`";
        all.push(observed(asked, RevisionState::Refused, why));
    }
    all
}

fn known(versions: &[Value]) -> impl Iterator<Item = Revision> {
    let texts = versions.iter().filter_map(Value::as_str);
    texts.filter_map(Revision::parse)
}

/// Returns the versions that an error lists, without the one that was refused.
fn listed(message: &Value, asked: Revision) -> Vec<Observed> {
    let data = message.get("error").and_then(|error| error.get("data"));
    let supported = data.and_then(|data| data.get("supported"));
    let Some(versions) = supported.and_then(Value::as_array) else {
        return Vec::new();
    };
    let why = "the server lists it in an error; not tried";
    known(versions)
        .filter(|revision| *revision != asked)
        .map(|revision| observed(revision, RevisionState::Listed, why))
        .collect()
}

fn error_text(method: Method, message: &Value) -> String {
    let error = message.get("error");
    let text = error.and_then(|error| error.get("message")?.as_str());
    let code = error.and_then(|error| error.get("code")?.as_i64());
    let code = code.map_or_else(String::new, |code| format!(" ({code})"));
    let text = text.unwrap_or("an error without a message");
    format!("`{method}` fails: {text}{code}")
}

/// Returns the observation for a handshake without a response.
fn missing(method: Method, at: usize, dialogue: &Dialogue<'_>) -> String {
    let rest = dialogue.entries.get(at + 1..).unwrap_or_default();
    let status = rest.iter().find_map(|entry| match entry {
        Entry::Http(head, Some(answered)) if *answered == at => Some(head.status),
        _ => None,
    });
    let was_restarted = matches!(
        rest.iter()
            .find(|entry| !matches!(entry, Entry::NotJson(_))),
        Some(Entry::Restart)
    );
    match status {
        Some(status) => format!("`{method}` gets HTTP status {status}"),
        None if was_restarted => format!("`{method}` ends the server"),
        None => format!("no answer to `{method}`"),
    }
}
