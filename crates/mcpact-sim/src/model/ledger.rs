//! Invariants of every conversation.

use std::collections::BTreeMap;

use mcpact_engine::revisions::RevisionSet;
use mcpact_spec::{Revision, Side};
use mcpact_wire::id::Id;
use serde_json::Value;

use crate::event::{Ended, Event, Seen, WriteTarget};
use crate::pair::echo;

/// State of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerState {
    /// Requests may still wait.
    Open,
    /// Nothing may wait.
    Closed,
}

/// Every request that an owner asked and that was written ends exactly once.
///
/// # Errors
/// The first entry that does not balance.
pub fn settled_once(events: &[Event], state: LedgerState) -> Result<(), String> {
    let mut waiting: BTreeMap<(Side, Id), String> = BTreeMap::new();
    for event in events {
        match event {
            Event::Wrote { from, text, .. } => {
                let Seen::Request(id, method) = Seen::of(text) else {
                    continue;
                };
                if is_opening(&id) {
                    continue;
                }
                if waiting.insert((*from, id.clone()), method).is_some() {
                    return Err(format!("{from} wrote id {id} twice"));
                }
            }
            Event::Settled {
                side, id, method, ..
            } => {
                let Some(asked) = waiting.remove(&(*side, id.clone())) else {
                    return Err(format!("{side} settled id {id}, which did not wait"));
                };
                if asked != *method {
                    return Err(format!("{side} asked `{asked}` and settled `{method}`"));
                }
            }
            _ => {}
        }
    }
    match (state, waiting.into_iter().next()) {
        (LedgerState::Closed, Some(((side, id), method))) => {
            Err(format!("{side} never settled {id} `{method}`"))
        }
        (LedgerState::Open | LedgerState::Closed, _) => Ok(()),
    }
}

fn is_opening(id: &Id) -> bool {
    id.raw().starts_with("\"mcpact-open-")
}

/// Every answer that names its request reached that request.
///
/// # Errors
/// The answer that went astray.
pub fn own_answers(events: &[Event]) -> Result<(), String> {
    events.iter().try_for_each(|event| match event {
        Event::Settled {
            side,
            id,
            method,
            end,
        } => own_answer(*side, id, method, end),
        _ => Ok(()),
    })
}

fn own_answer(side: Side, id: &Id, method: &str, end: &Ended) -> Result<(), String> {
    let Ended::Result(raw) = end else {
        return Ok(());
    };
    let member = |raw: &str| {
        let value: Value = serde_json::from_str(raw).ok()?;
        value.get("echo").cloned()
    };
    match member(raw) {
        Some(found) if member(&echo(side.peer(), id, method)) != Some(found.clone()) => {
            Err(format!("{side} got {found} for {id} `{method}`"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that no message is written to a closed connection.
///
/// # Errors
/// The message.
pub fn no_writes_after_close(events: &[Event]) -> Result<(), String> {
    let void = events.iter().find_map(|event| match event {
        Event::Wrote {
            from,
            text,
            target: WriteTarget::Nothing,
        } => Some(format!("{from} wrote to nothing: {text}")),
        _ => None,
    });
    void.map_or(Ok(()), Err)
}

/// Every version that a side announces is one that it speaks.
///
/// # Errors
/// The message with the other version.
pub fn honest_versions(
    events: &[Event],
    client: RevisionSet,
    server: RevisionSet,
) -> Result<(), String> {
    for event in events {
        let Event::Wrote { from, text, .. } = event else {
            continue;
        };
        let speaks = match from {
            Side::Client => client,
            Side::Server => server,
        };
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        for version in announced(&message) {
            let is_spoken = Revision::ALL
                .into_iter()
                .any(|r| r.as_str() == version && speaks.contains(r));
            if !is_spoken {
                return Err(format!("{from} announced `{version}`: {text}"));
            }
        }
    }
    Ok(())
}

/// The versions that a message announces: asked for, answered, stamped or listed.
fn announced(message: &Value) -> Vec<&str> {
    const STAMP: &str = "io.modelcontextprotocol/protocolVersion";
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params");
    let result = message.get("result");
    let asked = params
        .filter(|_| method == Some("initialize"))
        .and_then(|p| p.get("protocolVersion"));
    let stamped = params.and_then(|p| p.get("_meta")?.get(STAMP));
    let answered = result.and_then(|r| r.get("protocolVersion"));
    let listed = result.and_then(|r| r.get("supportedVersions"));
    let offered = message
        .get("error")
        .and_then(|e| e.get("data")?.get("supported"));
    let single = [asked, stamped, answered].into_iter().flatten();
    let many = [listed, offered].into_iter().flatten();
    single
        .chain(many.filter_map(Value::as_array).flatten())
        .filter_map(Value::as_str)
        .collect()
}
