//! Checks of HTTP responses.

use super::super::dialogue::{Dialogue, Entry, Sent};
use super::super::record::HttpHead;
use super::excerpt;

/// Returns the heads of responses to POST, with the message that they answer.
fn posts<'d>(dialogue: &'d Dialogue<'_>) -> impl Iterator<Item = (&'d HttpHead, &'d Sent)> {
    dialogue.entries.iter().filter_map(|entry| match entry {
        Entry::Http(head, Some(at)) => Some((*head, dialogue.sent_at(*at)?)),
        _ => None,
    })
}

fn is_request(sent: &Sent) -> bool {
    sent.id.is_some() && sent.method.is_some()
}

pub(super) fn content_type(dialogue: &Dialogue<'_>) -> Vec<String> {
    let posts = posts(dialogue).filter(|(head, sent)| head.status == 200 && is_request(sent));
    let faults = posts.filter_map(|(head, sent)| {
        let method = sent.method.as_deref().unwrap_or_default();
        match head.content_type.as_deref() {
            Some("application/json" | "text/event-stream") => None,
            Some(other) => Some(format!(
                "the response to `{method}` has the type {}",
                excerpt(other)
            )),
            None => Some(format!("the response to `{method}` has no `Content-Type`")),
        }
    });
    faults.collect()
}

/// Errors are allowed if the server does not accept the notification.
pub(super) fn notification_status(dialogue: &Dialogue<'_>) -> Vec<String> {
    let posts = posts(dialogue).filter(|(_, sent)| sent.id.is_none() && sent.method.is_some());
    let faults = posts.filter_map(|(head, sent)| {
        let method = sent.method.as_deref().unwrap_or_default();
        match head.status {
            202 if head.has_body => Some(format!("status 202 for `{method}` has a body")),
            202 | 400.. => None,
            other => Some(format!("status {other} for `{method}`, not 202")),
        }
    });
    faults.collect()
}

pub(super) fn challenge(dialogue: &Dialogue<'_>) -> Vec<String> {
    let is_bare = |entry: &Entry<'_>| matches!(entry, Entry::Http(head, _) if head.status == 401 && !head.has_challenge);
    match dialogue.entries.iter().any(is_bare) {
        true => vec![String::from("status 401 without `WWW-Authenticate`")],
        false => Vec::new(),
    }
}

pub(super) fn session_id(dialogue: &Dialogue<'_>) -> Vec<String> {
    let is_wrong = |head: &HttpHead| {
        let session = head.session.as_deref();
        session.is_some_and(|id| id.is_empty() || !id.iter().all(u8::is_ascii_graphic))
    };
    match posts(dialogue).any(|(head, _)| is_wrong(head)) {
        true => vec![String::from(
            "`Mcp-Session-Id` has characters that are not visible ASCII",
        )],
        false => Vec::new(),
    }
}
