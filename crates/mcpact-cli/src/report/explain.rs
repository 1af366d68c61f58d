//! Text output of `mcpact explain`.

use mcpact_engine::capability::Trimmed;
use mcpact_engine::pact::{IgnoreReason, Pact};
use mcpact_engine::policy::{Policy, Profile};
use mcpact_engine::refusal::Refusal;
use mcpact_engine::version::Chosen;
use mcpact_spec::{Era, Shape, Side};

use super::layout::{Layout, cell, length, printable, widest};
use super::style::Tone;
use crate::document::{Document, VersionBasis};
use crate::explanation::{
    EffectiveCapability, Explanation, IgnoredCapability, MessageKind, MethodVerdict, Rejection,
    Verdict, effective, ignored, sent, verdicts,
};

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Width of the column with the side.
const SIDE: usize = 6;
/// Longer paths have their own line.
const LONG_PATH: usize = 28;

/// Formats the result of a negotiation.
pub(super) fn write(layout: &mut Layout, explanation: &Explanation, show_all: bool) {
    match explanation.pact() {
        Ok(pact) => agreement(layout, explanation, pact, show_all),
        Err(refusal) => rejection(layout, explanation, refusal),
    }
}

fn agreement(layout: &mut Layout, explanation: &Explanation, pact: &Pact, show_all: bool) {
    layout.title(Tone::Good, &format!("negotiated {}", pact.revision()));
    parties(layout, explanation);
    layout.field("selected", 8, Tone::Plain, &selection(explanation, pact));
    let era = match pact.era() {
        Era::Legacy => "legacy (negotiated once, in the `initialize` handshake)",
        Era::Modern => "modern (declared in `_meta` of every request)",
    };
    layout.field("era", 8, Tone::Plain, era);
    profile(layout, explanation);
    for side in SIDES {
        effective_capabilities(layout, side, effective(pact, side));
    }
    ignored_capabilities(layout, &ignored(pact), show_all);
    shared(layout, pact);
    omitted(layout, explanation, pact);
    method_sections(layout, pact, &explanation.policy.policy, show_all);
}

/// Lists the methods of each kind and direction with their verdicts.
pub(super) fn method_sections(layout: &mut Layout, pact: &Pact, policy: &Policy, show_all: bool) {
    let all = verdicts(pact, policy);
    for section in SECTIONS {
        if section.0 != MessageKind::Question || pact.era() == Era::Modern {
            methods(layout, pact, section, &all, show_all);
        }
    }
}

/// Formats a refused negotiation: both offers, the cause and possible fixes.
fn rejection(layout: &mut Layout, explanation: &Explanation, refusal: &Refusal) {
    let rejection = Rejection::new(explanation, refusal);
    layout.title(Tone::Bad, &format!("refused ({})", rejection.reason));
    parties(layout, explanation);
    profile(layout, explanation);
    layout.heading("Cause", "");
    layout.entry(2, &[], Tone::Plain, &printable(&rejection.cause));
    layout.heading("How to fix it", "");
    for fix in &rejection.fixes {
        layout.hint(2, &printable(fix));
    }
    let Some(side) = rejection.receiver else {
        layout.heading("Error sent", "");
        return layout.entry(2, &[], Tone::Plain, "none: the client disconnects");
    };
    layout.heading(&format!("Error sent to the {side}"), "");
    let wire = &rejection.wire;
    layout.field("code", 7, Tone::Plain, &wire.code.to_string());
    layout.field("message", 7, Tone::Plain, &printable(&wire.message));
    if let Some(data) = &wire.data {
        layout.field("data", 7, Tone::Plain, &printable(data));
    }
}

/// Returns name, version and source of a side.
fn identity(document: &Document) -> String {
    let name = document.info.as_ref().map_or_else(
        || format!("unnamed {}", document.side),
        |info| format!("{} {}", printable(info.name()), printable(info.version())),
    );
    format!("{name} ({})", document.source)
}

/// Returns the supported versions of a side.
fn supports(document: &Document) -> String {
    let all: Vec<String> = document
        .versions
        .iter()
        .map(|version| printable(version.as_str()))
        .collect();
    let note = match document.basis {
        VersionBasis::Offered if all.len() > 1 => " (older ones assumed)",
        VersionBasis::Declared | VersionBasis::Offered => "",
        VersionBasis::Assumed => " (assumed, none in the document)",
        VersionBasis::Overridden => " (from `--revision`)",
    };
    if all.is_empty() {
        return String::from("supports no version");
    }
    format!("supports {}{note}", all.join(", "))
}

fn parties(layout: &mut Layout, explanation: &Explanation) {
    for side in SIDES {
        let document = explanation.document(side);
        layout.field(side.as_str(), 8, Tone::Plain, &identity(document));
        layout.field("", 8, Tone::Faint, &supports(document));
    }
}

fn profile(layout: &mut Layout, explanation: &Explanation) {
    let profile = explanation.policy.profile;
    if profile != Profile::Spec {
        layout.field("profile", 8, Tone::Plain, profile.as_str());
    }
}

fn selection(explanation: &Explanation, pact: &Pact) -> String {
    let revision = pact.revision();
    let requested = explanation
        .requested()
        .map_or_else(String::new, |version| printable(version.as_str()));
    match (explanation.selection(), pact.era()) {
        (Some(Chosen::CounterOffered), _) => format!(
            "counter-offer: the client requests {requested}, the server's latest is {revision}"
        ),
        (Some(Chosen::Assumed), _) => {
            format!("assumed: the client requests no version, the server prefers {revision}")
        }
        (Some(Chosen::Requested) | None, Era::Modern) => {
            String::from("latest revision that both support")
        }
        (Some(Chosen::Requested) | None, Era::Legacy) => {
            String::from("requested by the client, supported by the server")
        }
    }
}

/// Lists the effective capabilities of a side; `experimental` and `extensions` are in [`shared`].
pub(super) fn effective_capabilities(
    layout: &mut Layout,
    side: Side,
    all: Vec<EffectiveCapability>,
) {
    let all: Vec<EffectiveCapability> = all.into_iter().filter(is_own).collect();
    let title = match side {
        Side::Client => "Client capabilities",
        Side::Server => "Server capabilities",
    };
    layout.heading(title, "");
    if all.is_empty() {
        layout.entry(2, &[], Tone::Faint, "none in this revision");
    }
    let width = widest(all.iter().map(|one| one.capability.path()));
    let subject = format!("The {side} ");
    for one in &all {
        let note = match one.status {
            "deprecated" => " (deprecated)",
            "implied" => " (implied)",
            _ => "",
        };
        let description = one.capability.description().trim_end_matches('.');
        let predicate = description.strip_prefix(&subject).unwrap_or(description);
        let text = format!("{predicate}{note}");
        layout.field(one.capability.path(), width, Tone::Plain, &text);
    }
}

const fn is_own(one: &EffectiveCapability) -> bool {
    match one.capability.shape() {
        Shape::Object | Shape::Flag => true,
        Shape::OpenMap | Shape::SettingsMap => false,
    }
}

pub(super) fn ignored_capabilities(layout: &mut Layout, all: &[IgnoredCapability], show_all: bool) {
    if all.is_empty() {
        return;
    }
    let shown: Vec<(&IgnoredCapability, String)> = all
        .iter()
        .filter(|one| show_all || !all.iter().any(|other| is_below(one, other)))
        .map(|one| match below(one, all) {
            n if n > 0 && !show_all => (one, format!("{} (and {n} below)", printable(&one.path))),
            _ => (one, printable(&one.path)),
        })
        .collect();
    layout.heading("Declared without effect", "");
    // Extension identifiers are long; they do not widen the column.
    let paths = shown.iter().map(|(_, path)| path.as_str());
    let width = widest(paths.filter(|path| length(path) <= LONG_PATH));
    for (one, path) in &shown {
        let side = cell(Tone::Faint, one.side, SIDE + 2);
        let path = cell(Tone::Name, path, width + 2);
        layout.entry(2, &[side, path], Tone::Plain, &one.explanation);
    }
}

/// Returns the number of entries that this one covers.
fn below(one: &IgnoredCapability, all: &[IgnoredCapability]) -> usize {
    all.iter().filter(|other| is_below(other, one)).count()
}

fn is_below(child: &IgnoredCapability, parent: &IgnoredCapability) -> bool {
    let rest = child.path.strip_prefix(&parent.path);
    child.side == parent.side
        && child.reason == parent.reason
        && rest.is_some_and(|rest| rest.starts_with('.'))
}

fn shared(layout: &mut Layout, pact: &Pact) {
    layout.heading("Shared by both sides", "");
    for (kind, all) in [
        ("experimental", pact.experimental()),
        ("extensions", pact.extensions()),
    ] {
        let names: Vec<String> = all
            .iter()
            .map(|one| match &one.version {
                Some(version) => format!("{} (version {})", printable(&one.id), printable(version)),
                None => printable(&one.id),
            })
            .collect();
        list(layout, (kind, 12), &names);
    }
}

fn omitted(layout: &mut Layout, explanation: &Explanation, pact: &Pact) {
    let title = format!("Omitted when sent to a {} peer", pact.revision());
    layout.heading(&title, "");
    for side in SIDES {
        let (_, trimmed) = sent(pact, side, &explanation.policy.policy);
        let paths: Vec<String> = trimmed.iter().map(omitted_path).collect();
        list(layout, (side.as_str(), SIDE), &paths);
    }
}

/// Adds a line with a label and all items.
fn list(layout: &mut Layout, (label, width): (&str, usize), items: &[String]) {
    match items {
        [] => layout.field(label, width, Tone::Faint, "none"),
        items => layout.field(label, width, Tone::Plain, &items.join(", ")),
    }
}

/// Returns the path, with the reason unless it is the usual one.
fn omitted_path(one: &Trimmed) -> String {
    let path = printable(&one.path);
    if one.why == IgnoreReason::NotInRevision.explain() {
        return path;
    }
    format!("{path} ({})", one.why)
}

/// Kind of message and sender of the sections of methods.
const SECTIONS: [(MessageKind, Side); 5] = [
    (MessageKind::Request, Side::Client),
    (MessageKind::Request, Side::Server),
    (MessageKind::Question, Side::Server),
    (MessageKind::Notification, Side::Client),
    (MessageKind::Notification, Side::Server),
];

fn methods(
    layout: &mut Layout,
    pact: &Pact,
    (kind, from): (MessageKind, Side),
    all: &[MethodVerdict],
    show_all: bool,
) {
    let own = all
        .iter()
        .filter(|one| one.from == from.as_str() && one.kind == kind);
    let (shown, folded): (Vec<&MethodVerdict>, Vec<&MethodVerdict>) =
        own.partition(|one| show_all || one.in_revision);
    let allowed = shown
        .iter()
        .filter(|one| one.verdict == Verdict::Open)
        .count();
    let count = match shown.len() - allowed {
        0 => format!("{allowed} allowed"),
        denied => format!("{allowed} allowed, {denied} denied"),
    };
    let messages = match kind {
        MessageKind::Request => "Requests",
        MessageKind::Question => "Input requests in results",
        MessageKind::Notification => "Notifications",
    };
    layout.heading(&format!("{messages}, {from} → {}", from.peer()), &count);
    let width = widest(shown.iter().map(|one| one.method));
    for (at, verdict) in shown.iter().enumerate() {
        method(layout, verdict, width);
        let next = shown.get(at + 1);
        if let Some(remedy) = remedy(verdict)
            && next.and_then(|next| self::remedy(next)).as_ref() != Some(&remedy)
        {
            layout.hint(4, &remedy);
        }
    }
    if !folded.is_empty() {
        let names: Vec<&str> = folded.iter().map(|one| one.method).collect();
        let text = format!(
            "not in {} in this direction: {}",
            pact.revision(),
            names.join(", ")
        );
        layout.entry(2, &[], Tone::Faint, &text);
    }
}

fn method(layout: &mut Layout, verdict: &MethodVerdict, width: usize) {
    let (mark, text) = match verdict.verdict {
        Verdict::Open => (cell(Tone::Good, "✓", 2), Tone::Faint),
        Verdict::Closed => (cell(Tone::Bad, "✗", 2), Tone::Plain),
    };
    let name = cell(Tone::Name, verdict.method, width + 2);
    layout.entry(2, &[mark, name], text, &verdict.brief);
    for denied in &verdict.closed_params {
        let text = format!("not with `{}`: {}", denied.param, denied.explanation);
        layout.entry(4, &[], Tone::Plain, &text);
    }
}

/// Returns remedy and page; adjacent methods with the same remedy share one line.
fn remedy(verdict: &MethodVerdict) -> Option<String> {
    let remedy = verdict.remedy.as_deref()?;
    Some(match verdict.path {
        Some(path) => format!("{remedy}; see {path}"),
        None => remedy.to_owned(),
    })
}
