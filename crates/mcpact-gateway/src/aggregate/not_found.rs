//! Errors for unknown names and URIs, and for items of unavailable servers.

use crate::upstream::tool_filter;
use std::fmt::Write;

use mcpact_config::{listed, shortened};
use mcpact_spec::{ErrorCode, Revision};
use mcpact_wire::raw::ObjectWriter;

use crate::aggregate::aggregator::ABSENT;
use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::MergedList;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::server_entry::failure::Unwell;
use crate::error::{Explanation, ServeError};
use crate::exchange::refusal;
use crate::stable::Reason;

const fn word(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Prompts => "prompt",
        ListKind::Tools | ListKind::Resources | ListKind::Templates => "tool",
    }
}

/// Returns the error for a name in no list: the state of its server if that is unavailable, else that the name is
/// unknown.
pub(crate) fn not_found(
    aggregator: &Aggregator,
    kind: ListKind,
    name: &str,
    list: &MergedList,
    client: Revision,
) -> ServeError {
    match unwell_owner(aggregator, kind, name) {
        Some((server, unwell)) => may_be_there(kind, name, &server, &unwell, client),
        None => unknown(aggregator, kind, name, list, client),
    }
}

/// The server that a name belongs to by its prefix, if it cannot say now what it has; one without a prefix
/// where no other's fits.
fn unwell_owner(aggregator: &Aggregator, kind: ListKind, name: &str) -> Option<(Box<str>, Unwell)> {
    let server_set = aggregator.server_set();
    let entries = server_set.entries.iter();
    let fitting = server_set
        .style
        .guess(name, entries.map(|entry| &*entry.prefix).enumerate());
    let fitting: Vec<&ServerEntry> = fitting
        .iter()
        .filter_map(|route| Some(&**server_set.entries.get(route.server)?))
        .collect();
    let has_prefix = |entry: &&ServerEntry| !entry.prefix.is_empty();
    let is_named = fitting.iter().any(has_prefix);
    let mut owners = fitting
        .into_iter()
        .filter(|entry| has_prefix(entry) || !is_named);
    let unwell = owners.find_map(|entry| Some((entry.name.clone(), entry.unwell(kind)?)));
    unwell.or_else(|| {
        let absent = server_set.absent.iter().map(|name| &**name).enumerate();
        let guessed = server_set.style.guess(name, absent);
        let name = server_set.absent.get(guessed.first()?.server)?;
        Some((name.clone(), wrong()))
    })
}

/// Returns the error for an unknown name; it lists only items that the client is shown.
pub(crate) fn unknown(
    aggregator: &Aggregator,
    kind: ListKind,
    name: &str,
    list: &MergedList,
    client: Revision,
) -> ServeError {
    let what = word(kind);
    let all = list.keys(kind);
    let mut why = format!("Unknown {what}: `{}`. ", shortened(name));
    why.push_str(&match all.as_slice() {
        [] => format!("There is no {what} at all"),
        all => format!("There are: {}", listed_of(name, all)),
    });
    why.push_str(&missing(aggregator, kind));
    if kind == ListKind::Tools {
        why.push_str(&withheld(aggregator));
    }
    refusal(ErrorCode::InvalidParams.code(), why, None, client)
}

pub(crate) fn unknown_resource(
    aggregator: &Aggregator,
    uri: &str,
    all: &[String],
    client: Revision,
) -> ServeError {
    let mut why = format!("Unknown resource: `{}`. ", shortened(uri));
    why.push_str(&match all {
        [] => String::from("No server lists any"),
        all => format!("There are: {}", listed_of(uri, all)),
    });
    let servers = aggregator.server_names();
    let _ = write!(why, "; `mcpact://SERVER/URI` asks one of: {servers}");
    why.push_str(&missing(aggregator, ListKind::Resources));
    let code = if ErrorCode::ResourceNotFound.emitted_in(client) {
        ErrorCode::ResourceNotFound
    } else {
        ErrorCode::InvalidParams
    };
    let data = ObjectWriter::new().text("uri", uri).finish();
    refusal(code.code(), why, Some(data), client)
}

/// Of which servers tools are kept back: what is not found may be one of them.
fn withheld(aggregator: &Aggregator) -> String {
    let server_set = aggregator.server_set();
    let withheld = server_set.entries.iter().filter_map(|entry| {
        let withheld = tool_filter::withheld(&entry.server)?;
        Some(format!("; `{}`: {withheld}", entry.name))
    });
    withheld.collect()
}

/// Which servers are missing, and why: what is not found may be theirs.
fn missing(aggregator: &Aggregator, kind: ListKind) -> String {
    let server_set = aggregator.server_set();
    let missing: Vec<String> = server_set
        .entries
        .iter()
        .filter_map(|entry| {
            let why = entry.unwell(kind)?.why.in_short();
            Some(format!("`{}` ({why})", entry.name))
        })
        .chain(
            server_set
                .absent
                .iter()
                .map(|name| format!("`{name}` ({ABSENT})")),
        )
        .collect();
    match missing.as_slice() {
        [] => String::new(),
        some => format!("; missing servers: {}", some.join(", ")),
    }
}

/// How a server is that is left out.
fn wrong() -> Unwell {
    Unwell {
        state: "wrong",
        why: ABSENT.into(),
        advice: String::from("mend its config"),
    }
}

/// Returns the error for an item of a server that is unavailable.
fn may_be_there(
    kind: ListKind,
    name: &str,
    server: &str,
    unwell: &Unwell,
    client: Revision,
) -> ServeError {
    let Unwell { state, why, advice } = unwell;
    let hint = match &why.hint {
        Some(hint) => format!("{hint}; {advice}"),
        None => advice.clone(),
    };
    let why = Explanation {
        hint: Some(hint),
        ..why.clone()
    };
    let message = format!(
        "`{server}`: the server, to which the {} `{}` may belong, cannot be used now (state: {state}): {}",
        word(kind),
        shortened(name),
        why.in_short()
    );
    let data = ObjectWriter::new()
        .text("reason", Reason::UpstreamMissing.as_str())
        .text("advice", advice)
        .finish();
    refusal(ErrorCode::InternalError.code(), message, Some(data), client)
}

pub(crate) fn listed_of(given: &str, all: &[String]) -> String {
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    listed(given, &all)
}
