//! Errors for unknown names and URIs, and for items of unavailable servers.

use std::fmt::Write;

use mcpact_config::{listed, shortened};
use mcpact_spec::{ErrorCode, Revision};
use mcpact_wire::raw::ObjectWriter;

use crate::aggregate::aggregator::{ABSENT, Aggregator, ServerSet};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::MergedList;
use crate::aggregate::server_entry::failure::Unavailability;
use crate::error::ServeError;
use crate::exchange::{refusal, refuse};
use crate::reason::Reason;
use crate::upstream::tool_filter;

pub(crate) const fn word(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Prompts => "prompt",
        ListKind::Tools | ListKind::Resources | ListKind::Templates | ListKind::Skills => "tool",
    }
}

/// Returns the error for a name in no list: the state of its server if that is unavailable, else that the name is
/// unknown.
pub(crate) fn not_found(
    aggregator: &Aggregator,
    kind: ListKind,
    name: &str,
    list: &MergedList,
    revision: Revision,
) -> ServeError {
    let server_set = aggregator.server_set();
    match unavailable_owner(&server_set, kind, name) {
        Some((server, state)) => unavailable(kind, name, server, state, revision),
        None => unknown(aggregator, kind, name, list, revision),
    }
}

/// Returns the unavailable server with the longest prefix of a name. Servers without a prefix count only if no other
/// prefix matches.
fn unavailable_owner<'a>(
    server_set: &'a ServerSet,
    kind: ListKind,
    name: &'a str,
) -> Option<(&'a str, Unavailability)> {
    let candidates = server_set.by_prefix(name);
    let entries = candidates.into_iter().map(|(entry, _)| entry);
    let is_prefixed = entries.clone().any(|entry| !entry.prefix.is_empty());
    let mut owners = entries.filter(|entry| entry.prefix.is_empty() != is_prefixed);
    let owner = owners.find_map(|entry| Some((&*entry.name, entry.unavailability(kind)?)));
    owner.or_else(|| {
        let absent = server_set.absent.iter().map(|name| (&**name, &**name));
        let candidates = server_set.style.routes_by_prefix(name, absent);
        let (name, _) = candidates.first()?;
        let state = Unavailability {
            state: "wrong",
            why: ABSENT.into(),
            advice: String::from("mend its config"),
        };
        Some((name, state))
    })
}

/// Returns the error for an unknown name; it lists only items that the client is shown.
pub(crate) fn unknown(
    aggregator: &Aggregator,
    kind: ListKind,
    name: &str,
    list: &MergedList,
    revision: Revision,
) -> ServeError {
    let what = word(kind);
    let all = list.keys(kind);
    let mut why = format!("Unknown {what}: `{}`. ", shortened(name));
    why.push_str(&match all.as_slice() {
        [] => format!("No {what} is available"),
        all => format!("Available: {}", listed_of(name, all)),
    });
    why.push_str(&missing(aggregator, kind));
    if kind == ListKind::Tools {
        why.push_str(&withheld(aggregator));
    }
    refuse(ErrorCode::InvalidParams, why, revision)
}

pub(crate) fn unknown_resource(
    aggregator: &Aggregator,
    uri: &str,
    all: &[String],
    revision: Revision,
) -> ServeError {
    let mut why = format!("Unknown resource: `{}`. ", shortened(uri));
    why.push_str(&match all {
        [] => String::from("No server lists any"),
        all => format!("Available: {}", listed_of(uri, all)),
    });
    let servers = aggregator.server_names();
    let _ = write!(
        why,
        "; to address one server use `mcpact://SERVER/URI`, servers: {servers}"
    );
    why.push_str(&missing(aggregator, ListKind::Resources));
    let code = if ErrorCode::ResourceNotFound.emitted_in(revision) {
        ErrorCode::ResourceNotFound
    } else {
        ErrorCode::InvalidParams
    };
    let data = ObjectWriter::new().text("uri", uri).finish();
    refusal(code.code(), why, Some(data), revision)
}

/// Describes the servers with hidden tools, which may include the unknown one.
fn withheld(aggregator: &Aggregator) -> String {
    let server_set = aggregator.server_set();
    let withheld = server_set.entries.iter().filter_map(|entry| {
        let withheld = tool_filter::withheld(&entry.server)?;
        Some(format!("; `{}`: {withheld}", entry.name))
    });
    withheld.collect()
}

/// Describes the unavailable servers, which may have the unknown item.
fn missing(aggregator: &Aggregator, kind: ListKind) -> String {
    let server_set = aggregator.server_set();
    let unavailable = server_set.entries.iter().filter_map(|entry| {
        let why = entry.unavailability(kind)?.why.in_short();
        Some(format!("`{}` ({why})", entry.name))
    });
    let absent = server_set.absent.iter();
    let absent = absent.map(|name| format!("`{name}` ({ABSENT})"));
    let missing: Vec<String> = unavailable.chain(absent).collect();
    match missing.as_slice() {
        [] => String::new(),
        some => format!("; missing servers: {}", some.join(", ")),
    }
}

/// Returns the error for an item of a server that is unavailable.
fn unavailable(
    kind: ListKind,
    name: &str,
    server: &str,
    Unavailability {
        state,
        mut why,
        advice,
    }: Unavailability,
    revision: Revision,
) -> ServeError {
    why.hint = Some(match &why.hint {
        Some(hint) => format!("{hint}; {advice}"),
        None => advice.clone(),
    });
    let message = format!(
        "server `{server}`, which may have the {} `{}`, is unavailable (state: {state}): {}",
        word(kind),
        shortened(name),
        why.in_short()
    );
    let data = ObjectWriter::new()
        .text("reason", Reason::UpstreamMissing.as_str())
        .text("advice", &advice)
        .finish();
    let code = ErrorCode::InternalError.code();
    refusal(code, message, Some(data), revision)
}

/// Returns the message for a name or URI of several servers, with the forms that name one of them.
pub(crate) fn ambiguous(what: &str, name: &str, forms: &[String]) -> String {
    let (name, forms) = (shortened(name), listed_of(name, forms));
    format!("Several servers have the {what} `{name}`; use one of: {forms}")
}

/// Returns similar entries of a list, or its beginning.
fn listed_of(given: &str, all: &[String]) -> String {
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    listed(given, &all)
}
