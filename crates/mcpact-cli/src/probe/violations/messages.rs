//! Checks of messages.

use mcpact_spec::{Feature, Kind, Method, Side};
use serde_json::Value;

use super::super::dialogue::{Carrier, Dialogue, Entry, Received};
use super::{excerpt, kind, wrong};

pub(super) fn not_json(dialogue: &Dialogue<'_>) -> Vec<String> {
    let place = match dialogue.carrier {
        Carrier::Stdio => "the server wrote text to stdout that is not a message",
        Carrier::Http => "a response contains text that is not JSON",
    };
    let lines = dialogue.entries.iter().filter_map(|entry| match entry {
        Entry::NotJson(text) => Some(format!("{place}: {}", excerpt(text))),
        _ => None,
    });
    lines.collect()
}

pub(super) fn json_rpc(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = dialogue.received().filter_map(|received| {
        let message = &received.message;
        if !message.is_object() {
            return Some(format!("a message is {}, not an object", kind(message)));
        }
        match message.get("jsonrpc") {
            Some(Value::String(version)) if version == "2.0" => None,
            None => Some(format!("{} has no `jsonrpc`", name(dialogue, received))),
            Some(other) => Some(format!(
                "{} has `\"jsonrpc\": {other}`, not `\"2.0\"`",
                name(dialogue, received)
            )),
        }
    });
    faults.collect()
}

/// Only `2025-03-26 basic#batching` has batches.
pub(super) fn batch(dialogue: &Dialogue<'_>) -> Vec<String> {
    let Some(revision) = dialogue.pact.map(|pact| pact.revision()) else {
        return Vec::new();
    };
    let is_batch = |entry: &Entry<'_>| matches!(entry, Entry::Batch);
    if revision.has(Feature::Batching) || !dialogue.entries.iter().any(is_batch) {
        return Vec::new();
    }
    vec![format!(
        "the server sends a batch, which {revision} does not have"
    )]
}

pub(super) fn response_shape(dialogue: &Dialogue<'_>) -> Vec<String> {
    let shapes = responses(dialogue).filter_map(|received| {
        let has = |key| received.message.get(key).is_some();
        match (has("result"), has("error")) {
            (true, true) => Some(format!(
                "{} has both `result` and `error`",
                name(dialogue, received)
            )),
            (false, false) if received.message.is_object() => Some(format!(
                "{} has neither `result` nor `error`",
                name(dialogue, received)
            )),
            (false, false) | (true, false) | (false, true) => None,
        }
    });
    shapes.collect()
}

pub(super) fn error_shape(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = responses(dialogue).filter_map(|received| {
        let error = received.message.get("error")?;
        if !error.is_object() {
            let kind = kind(error);
            return Some(format!(
                "{} has an `error` that is {kind}",
                name(dialogue, received)
            ));
        }
        let (code, message) = (error.get("code"), error.get("message"));
        let fault = if !code.is_some_and(Value::is_i64) {
            wrong("code", code)
        } else if !message.is_some_and(Value::is_string) {
            wrong("message", message)
        } else {
            return None;
        };
        Some(format!("the error in {} {fault}", name(dialogue, received)))
    });
    faults.collect()
}

pub(super) fn response_id(dialogue: &Dialogue<'_>) -> Vec<String> {
    let strays = responses(dialogue).filter_map(|received| {
        let id = received.message.get("id").filter(|id| !id.is_null())?;
        if received.answers.is_some() {
            return None;
        }
        let bare = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let twin = dialogue
            .sent()
            .filter_map(|sent| sent.id.as_ref())
            .find(|sent| bare(sent) == bare(id));
        Some(match twin {
            Some(sent) => format!("a response has the id {id}; the request has the id {sent}"),
            None => format!(
                "a response has the id {}, which no request has",
                excerpt(&id.to_string())
            ),
        })
    });
    strays.collect()
}

pub(super) fn duplicate_response(dialogue: &Dialogue<'_>) -> Vec<String> {
    let repeated = dialogue.received().filter(|received| received.is_repeated);
    repeated
        .map(|received| format!("{} is the second one", name(dialogue, received)))
        .collect()
}

/// A response without an id answers nothing: the client sends no unreadable requests.
pub(super) fn notification_answered(dialogue: &Dialogue<'_>) -> Vec<String> {
    let without_id = responses(dialogue).filter(|received| {
        let message = &received.message;
        message.is_object() && message.get("id").is_none_or(Value::is_null)
    });
    let over_http = dialogue.carrier == Carrier::Http;
    let text = without_id.filter_map(|received| match received.message.get("error") {
        // `2025-11-25 basic/transports#sending-messages-to-the-server`: such an error has no id.
        Some(_) if over_http => None,
        Some(error) => Some(format!(
            "a response without an id, as to a notification: {}",
            excerpt(&error.to_string())
        )),
        None => Some(String::from(
            "a response without an id, as to a notification",
        )),
    });
    text.collect()
}

/// `2025-11-25 basic/lifecycle#initialization`: before that, only pings and logs.
pub(super) fn before_initialized(dialogue: &Dialogue<'_>) -> Vec<String> {
    let mut is_waiting = false;
    let mut early = Vec::new();
    for entry in &dialogue.entries {
        match entry {
            Entry::Restart => is_waiting = false,
            Entry::Sent(sent) => match sent.method.as_deref() {
                Some("initialize") => is_waiting = true,
                Some("notifications/initialized") => is_waiting = false,
                _ => {}
            },
            Entry::Received(received) if is_waiting && received.is_request() => {
                if let Some(method) = received.method().filter(|method| *method != "ping") {
                    early.push(format!(
                        "the server sends {} before `notifications/initialized`",
                        excerpt(method)
                    ));
                }
            }
            _ => {}
        }
    }
    early
}

/// Messages that the pact does not allow the server.
pub(super) fn undeclared(dialogue: &Dialogue<'_>) -> Vec<String> {
    let Some(pact) = dialogue.pact else {
        return Vec::new();
    };
    let closed = dialogue.received().filter_map(|received| {
        // Methods that no revision defines are extensions.
        let method = Method::parse(received.method()?)?;
        let kind = match received.is_request() {
            true => Kind::Request,
            false => Kind::Notification,
        };
        let ruling = pact.rule_on(Side::Server, kind, method);
        (!ruling.is_open())
            .then(|| format!("the server sends `{method}`, but {}", ruling.explain()))
    });
    closed.collect()
}

fn responses<'d>(dialogue: &'d Dialogue<'_>) -> impl Iterator<Item = &'d Received> {
    dialogue
        .received()
        .filter(|received| received.is_response())
}

/// Returns the name of a message of the server for a finding.
fn name(dialogue: &Dialogue<'_>, received: &Received) -> String {
    if let Some(method) = received.method() {
        return format!("the message {}", excerpt(method));
    }
    match dialogue.asked(received) {
        Some(method) => format!("the response to `{method}`"),
        None => String::from("a response"),
    }
}
