//! Output of `mcpact explain` for a successful negotiation.

use mcpact_engine::capability::Trimmed;
use mcpact_engine::pact::{IgnoreReason, Pact};
use mcpact_engine::policy::Profile;
use mcpact_engine::version::Chosen;
use mcpact_spec::{Era, Shape, Side};

use super::Detail;
use super::layout::{Cell, Layout, length, printable, widest};
use super::style::Tone;
use crate::document::{Document, VersionBasis};
use crate::explanation::{
    EffectiveCapability, Explanation, IgnoredCapability, MessageKind, MethodVerdict, effective,
    ignored, sent, verdicts,
};

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Width of the column with the side.
const SIDE: usize = 6;
/// Longer paths have their own line.
const LONG_PATH: usize = 28;

/// Formats a successful negotiation.
pub(super) fn write(
    mut layout: Layout,
    explanation: &Explanation,
    pact: &Pact,
    detail: Detail,
) -> String {
    layout.title(Tone::Good, &format!("negotiated {}", pact.revision()));
    header(&mut layout, explanation, pact);
    for side in SIDES {
        effective_capabilities(&mut layout, side, effective(pact, side));
    }
    ignored_capabilities(&mut layout, &ignored(pact), detail);
    shared(&mut layout, pact);
    omitted(&mut layout, explanation, pact);
    let all = verdicts(pact, &explanation.policy().policy);
    for section in sections(pact) {
        methods(&mut layout, pact, &section, &all, detail);
    }
    layout.finish()
}

/// A label column; `width` is the length of its longest label.
pub(super) fn label(text: &str, width: usize) -> Cell<'_> {
    Cell {
        tone: Tone::Name,
        text,
        width: width + 2,
    }
}

/// Returns name, version and source of a side.
pub(super) fn identity(document: &Document) -> String {
    let name = document.info().map_or_else(
        || format!("unnamed {}", document.side()),
        |info| format!("{} {}", printable(info.name()), printable(info.version())),
    );
    format!("{name} ({})", document.source())
}

/// Returns the supported versions of a side.
pub(super) fn supports(document: &Document) -> String {
    let all: Vec<String> = document
        .versions()
        .iter()
        .map(|version| printable(version.as_str()))
        .collect();
    let note = match document.basis() {
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

fn header(layout: &mut Layout, explanation: &Explanation, pact: &Pact) {
    for side in SIDES {
        let document = explanation.document(side);
        layout.entry(
            2,
            &[label(side.as_str(), 8)],
            Tone::Plain,
            &identity(document),
        );
        layout.entry(2, &[label("", 8)], Tone::Faint, &supports(document));
    }
    layout.entry(
        2,
        &[label("selected", 8)],
        Tone::Plain,
        &selection(explanation, pact),
    );
    let era = match pact.era() {
        Era::Legacy => "legacy (negotiated once, in the `initialize` handshake)",
        Era::Modern => "modern (declared in `_meta` of every request)",
    };
    layout.entry(2, &[label("era", 8)], Tone::Plain, era);
    let policy = explanation.policy();
    if policy.profile != Profile::Spec {
        layout.entry(
            2,
            &[label("profile", 8)],
            Tone::Plain,
            policy.profile.as_str(),
        );
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
fn effective_capabilities(layout: &mut Layout, side: Side, all: Vec<EffectiveCapability>) {
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
        layout.entry(
            2,
            &[label(one.capability.path(), width)],
            Tone::Plain,
            &text,
        );
    }
}

const fn is_own(one: &EffectiveCapability) -> bool {
    match one.capability.shape() {
        Shape::Object | Shape::Flag => true,
        Shape::OpenMap | Shape::SettingsMap => false,
    }
}

fn ignored_capabilities(layout: &mut Layout, all: &[IgnoredCapability], detail: Detail) {
    if all.is_empty() {
        return;
    }
    let shown: Vec<(&IgnoredCapability, String)> = all
        .iter()
        .filter(|one| detail == Detail::All || parent(one, all).is_none())
        .map(|one| match (detail, below(one, all)) {
            (Detail::All, _) | (Detail::Defined, 0) => (one, printable(&one.path)),
            (Detail::Defined, n) => (one, format!("{} (and {n} below)", printable(&one.path))),
        })
        .collect();
    layout.heading("Declared without effect", "");
    // Extension identifiers are long; they do not widen the column.
    let paths = shown.iter().map(|(_, path)| path.as_str());
    let width = widest(paths.filter(|path| length(path) <= LONG_PATH));
    for (one, path) in &shown {
        let owner = Cell {
            tone: Tone::Faint,
            text: one.owner.as_str(),
            width: SIDE + 2,
        };
        layout.entry(
            2,
            &[owner, label(path, width)],
            Tone::Plain,
            &one.explanation,
        );
    }
}

/// Returns the entry that already covers this one.
fn parent<'a>(
    one: &IgnoredCapability,
    all: &'a [IgnoredCapability],
) -> Option<&'a IgnoredCapability> {
    all.iter().find(|other| is_below(one, other))
}

fn below(one: &IgnoredCapability, all: &[IgnoredCapability]) -> usize {
    all.iter().filter(|other| is_below(other, one)).count()
}

fn is_below(child: &IgnoredCapability, parent: &IgnoredCapability) -> bool {
    let rest = child.path.strip_prefix(&parent.path);
    child.owner == parent.owner
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
        let (tone, text) = if names.is_empty() {
            (Tone::Faint, String::from("none"))
        } else {
            (Tone::Plain, names.join(", "))
        };
        layout.entry(2, &[label(kind, 12)], tone, &text);
    }
}

fn omitted(layout: &mut Layout, explanation: &Explanation, pact: &Pact) {
    let title = format!("Omitted when sent to a {} peer", pact.revision());
    layout.heading(&title, "");
    for side in SIDES {
        let sent = sent(pact, side, &explanation.policy().policy);
        let paths: Vec<String> = sent.trimmed.iter().map(omitted_path).collect();
        let (tone, text) = if paths.is_empty() {
            (Tone::Faint, String::from("none"))
        } else {
            (Tone::Plain, paths.join(", "))
        };
        layout.entry(2, &[label(side.as_str(), SIDE)], tone, &text);
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

/// A section of methods.
struct Section {
    title: &'static str,
    from: Side,
    kind: MessageKind,
}

fn sections(pact: &Pact) -> Vec<Section> {
    let section = |title, from, kind| Section { title, from, kind };
    let mut all = vec![
        section(
            "Requests, client → server",
            Side::Client,
            MessageKind::Request,
        ),
        section(
            "Requests, server → client",
            Side::Server,
            MessageKind::Request,
        ),
    ];
    if pact.era() == Era::Modern {
        all.push(section(
            "Input requests in results, server → client",
            Side::Server,
            MessageKind::Question,
        ));
    }
    let notes = MessageKind::Notification;
    all.push(section(
        "Notifications, client → server",
        Side::Client,
        notes,
    ));
    all.push(section(
        "Notifications, server → client",
        Side::Server,
        notes,
    ));
    all
}

fn methods(
    layout: &mut Layout,
    pact: &Pact,
    section: &Section,
    all: &[MethodVerdict],
    detail: Detail,
) {
    let own = all
        .iter()
        .filter(|one| one.from == section.from && one.kind == section.kind);
    let (shown, folded): (Vec<&MethodVerdict>, Vec<&MethodVerdict>) =
        own.partition(|one| detail == Detail::All || one.in_revision);
    let allowed = shown.iter().filter(|one| one.is_allowed).count();
    let count = match shown.len() - allowed {
        0 => format!("{allowed} allowed"),
        denied => format!("{allowed} allowed, {denied} denied"),
    };
    layout.heading(section.title, &count);
    let width = widest(shown.iter().map(|one| one.method.as_str()));
    for (at, verdict) in shown.iter().enumerate() {
        method(layout, verdict, width);
        let next = shown.get(at + 1);
        if next.is_none_or(|next| remedy(next) != remedy(verdict)) {
            remedy_line(layout, verdict);
        }
    }
    if !folded.is_empty() {
        let names: Vec<&str> = folded.iter().map(|one| one.method.as_str()).collect();
        let text = format!(
            "not in {} in this direction: {}",
            pact.revision(),
            names.join(", ")
        );
        layout.entry(2, &[], Tone::Faint, &text);
    }
}

fn method(layout: &mut Layout, verdict: &MethodVerdict, width: usize) {
    let (mark, tone, text) = if verdict.is_allowed {
        ("✓", Tone::Good, Tone::Faint)
    } else {
        ("✗", Tone::Bad, Tone::Plain)
    };
    let mark = Cell {
        tone,
        text: mark,
        width: 2,
    };
    let name = label(verdict.method.as_str(), width);
    layout.entry(2, &[mark, name], text, &verdict.brief);
    for denied in &verdict.params {
        let text = format!("not with `{}`: {}", denied.param, denied.explanation);
        layout.entry(4, &[], Tone::Plain, &text);
    }
}

/// Returns remedy and page; adjacent methods with the same remedy share one line.
fn remedy(verdict: &MethodVerdict) -> Option<(&str, Option<&str>)> {
    let remedy = verdict.remedy.as_deref();
    remedy.map(|remedy| (remedy, verdict.page))
}

fn remedy_line(layout: &mut Layout, verdict: &MethodVerdict) {
    let Some((remedy, page)) = remedy(verdict) else {
        return;
    };
    let text = match page {
        Some(page) => format!("{remedy}; see {page}"),
        None => remedy.to_owned(),
    };
    let arrow = Cell {
        tone: Tone::Hint,
        text: "→",
        width: 2,
    };
    layout.entry(4, &[arrow], Tone::Hint, &text);
}
