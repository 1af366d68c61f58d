use mcpact_engine::capability::Trimmed;
use mcpact_engine::pact::{IgnoreReason, Pact};
use mcpact_engine::policy::Profile;
use mcpact_engine::version::Chosen;
use mcpact_spec::{Era, Shape, Side};

use super::Detail;
use super::page::{Cell, Page, length, printable, widest};
use super::style::Tone;
use crate::document::{Basis, Document};
use crate::explanation::{Carrier, Explanation, Idle, InEffect, Row, effective, idle, rows, sent};

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// The width of the column that names a side.
const SIDE: usize = 6;
/// A longer path takes a line of its own.
const LONG_PATH: usize = 28;

/// A pact: who, what is in effect, what is not, and every method.
pub(super) fn write(
    mut page: Page,
    explanation: &Explanation,
    pact: &Pact,
    detail: Detail,
) -> String {
    page.title(Tone::Good, &format!("agreed on {}", pact.revision()));
    header(&mut page, explanation, pact);
    for side in SIDES {
        in_effect(&mut page, side, effective(pact, side));
    }
    without_effect(&mut page, &idle(pact), detail);
    shared(&mut page, pact);
    left_out(&mut page, explanation, pact);
    let rows = rows(pact, &explanation.setting().policy);
    for section in sections(pact) {
        methods(&mut page, pact, &section, &rows, detail);
    }
    page.finish()
}

/// A column that names something; `width` is that of the longest name in it.
pub(super) fn label(text: &str, width: usize) -> Cell<'_> {
    Cell {
        tone: Tone::Name,
        text,
        width: width + 2,
    }
}

/// Who a side is, in a few words.
pub(super) fn who(document: &Document) -> String {
    let name = document.info().map_or_else(
        || format!("unnamed {}", document.side()),
        |info| format!("{} {}", printable(info.name()), printable(info.version())),
    );
    format!("{name} ({})", document.source())
}

/// Which versions a side speaks.
pub(super) fn speaks(document: &Document) -> String {
    let all: Vec<String> = document
        .versions()
        .iter()
        .map(|version| printable(version.as_str()))
        .collect();
    let note = match document.basis() {
        Basis::Offered if all.len() > 1 => " (the older ones are assumed)",
        Basis::Written | Basis::Offered => "",
        Basis::Assumed => " (assumed: the document names none)",
        Basis::Overridden => " (by `--revision`)",
    };
    if all.is_empty() {
        return String::from("no version at all");
    }
    format!("{}{note}", all.join(", "))
}

fn header(page: &mut Page, explanation: &Explanation, pact: &Pact) {
    for side in SIDES {
        let document = explanation.document(side);
        page.entry(2, &[label(side.as_str(), 8)], Tone::Plain, &who(document));
        let versions = format!("speaks {}", speaks(document));
        page.entry(2, &[label("", 8)], Tone::Faint, &versions);
    }
    page.entry(
        2,
        &[label("chosen", 8)],
        Tone::Plain,
        &chosen(explanation, pact),
    );
    let carried = match pact.era() {
        Era::Legacy => "legacy: negotiated once, in the `initialize` handshake",
        Era::Modern => "modern: told with every request, in its `_meta`",
    };
    page.entry(2, &[label("era", 8)], Tone::Plain, carried);
    let setting = explanation.setting();
    if setting.profile != Profile::Spec {
        page.entry(
            2,
            &[label("profile", 8)],
            Tone::Plain,
            setting.profile.as_str(),
        );
    }
}

fn chosen(explanation: &Explanation, pact: &Pact) -> String {
    let revision = pact.revision();
    let asked = explanation
        .asked()
        .map_or_else(String::new, |version| printable(version.as_str()));
    match (explanation.chosen(), pact.era()) {
        (Some(Chosen::CounterOffered), _) => format!(
            "counter-offered: the client asked for {asked}, the server's newest is {revision}"
        ),
        (Some(Chosen::Assumed), _) => {
            format!("assumed: the client named no version, the server prefers {revision}")
        }
        (Some(Chosen::Requested) | None, Era::Modern) => {
            String::from("asked for: the newest that both speak")
        }
        (Some(Chosen::Requested) | None, Era::Legacy) => {
            String::from("asked for by the client, and the server speaks it")
        }
    }
}

/// What a side may use by itself; the maps that take both sides are told elsewhere.
fn in_effect(page: &mut Page, side: Side, all: Vec<InEffect>) {
    let all: Vec<InEffect> = all.into_iter().filter(is_own).collect();

    page.heading(&format!("What the {side} has"), "");
    if all.is_empty() {
        page.entry(
            2,
            &[],
            Tone::Faint,
            "nothing that counts under this revision",
        );
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
        page.entry(
            2,
            &[label(one.capability.path(), width)],
            Tone::Plain,
            &text,
        );
    }
}

const fn is_own(one: &InEffect) -> bool {
    match one.capability.shape() {
        Shape::Object | Shape::Flag => true,
        Shape::OpenMap | Shape::SettingsMap => false,
    }
}

fn without_effect(page: &mut Page, all: &[Idle], detail: Detail) {
    if all.is_empty() {
        return;
    }
    let shown: Vec<(&Idle, String)> = all
        .iter()
        .filter(|one| detail == Detail::Every || parent(one, all).is_none())
        .map(|one| match (detail, below(one, all)) {
            (Detail::Every, _) | (Detail::Usual, 0) => (one, printable(&one.path)),
            (Detail::Usual, n) => (one, format!("{} (and {n} below it)", printable(&one.path))),
        })
        .collect();
    page.heading("Declared, but without effect", "");
    // Identifiers of extensions are long; they do not push the others aside.
    let paths = shown.iter().map(|(_, path)| path.as_str());
    let width = widest(paths.filter(|path| length(path) <= LONG_PATH));
    for (one, path) in &shown {
        let owner = Cell {
            tone: Tone::Faint,
            text: one.owner.as_str(),
            width: SIDE + 2,
        };
        page.entry(
            2,
            &[owner, label(path, width)],
            Tone::Plain,
            &one.explanation,
        );
    }
}

/// The row that already says why this one has no effect.
fn parent<'a>(one: &Idle, all: &'a [Idle]) -> Option<&'a Idle> {
    all.iter().find(|other| is_below(one, other))
}

fn below(one: &Idle, all: &[Idle]) -> usize {
    all.iter().filter(|other| is_below(other, one)).count()
}

fn is_below(child: &Idle, parent: &Idle) -> bool {
    let rest = child.path.strip_prefix(&parent.path);
    child.owner == parent.owner
        && child.reason == parent.reason
        && rest.is_some_and(|rest| rest.starts_with('.'))
}

fn shared(page: &mut Page, pact: &Pact) {
    page.heading("Shared by both", "");
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
        page.entry(2, &[label(kind, 12)], tone, &text);
    }
}

fn left_out(page: &mut Page, explanation: &Explanation, pact: &Pact) {
    let title = format!("Left out when sent to a peer of {}", pact.revision());
    page.heading(&title, "");
    for side in SIDES {
        let sent = sent(pact, side, &explanation.setting().policy);
        let paths: Vec<String> = sent.trimmed.iter().map(left_out_path).collect();
        let (tone, text) = if paths.is_empty() {
            (Tone::Faint, String::from("nothing"))
        } else {
            (Tone::Plain, paths.join(", "))
        };
        page.entry(2, &[label(side.as_str(), SIDE)], tone, &text);
    }
}

/// The path, with the reason where it is not the usual one.
fn left_out_path(one: &Trimmed) -> String {
    let path = printable(&one.path);
    if one.why == IgnoreReason::NotInRevision.explain() {
        return path;
    }
    format!("{path} ({})", one.why)
}

/// Methods that are shown under one heading.
struct Section {
    title: &'static str,
    from: Side,
    carrier: Carrier,
}

fn sections(pact: &Pact) -> Vec<Section> {
    let section = |title, from, carrier| Section {
        title,
        from,
        carrier,
    };
    let mut all = vec![
        section("Requests, client → server", Side::Client, Carrier::Request),
        section("Requests, server → client", Side::Server, Carrier::Request),
    ];
    if pact.era() == Era::Modern {
        all.push(section(
            "Questions, server → client, inside `input_required` results",
            Side::Server,
            Carrier::Question,
        ));
    }
    let notes = Carrier::Notification;
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

fn methods(page: &mut Page, pact: &Pact, section: &Section, rows: &[Row], detail: Detail) {
    let own: Vec<&Row> = rows
        .iter()
        .filter(|row| row.from == section.from && row.carrier == section.carrier)
        .collect();
    let (shown, folded): (Vec<&Row>, Vec<&Row>) = own
        .iter()
        .partition(|row| detail == Detail::Every || row.in_revision);
    let open = shown.iter().filter(|row| row.is_open).count();
    let count = match shown.len() - open {
        0 => format!("{open} open"),
        closed => format!("{open} open, {closed} closed"),
    };
    page.heading(section.title, &count);
    let width = widest(shown.iter().map(|row| row.method.as_str()));
    for (at, row) in shown.iter().enumerate() {
        method(page, row, width);
        let next = shown.get(at + 1);
        if next.is_none_or(|next| advice(next) != advice(row)) {
            remedy(page, row);
        }
    }
    if !folded.is_empty() {
        let names: Vec<&str> = folded.iter().map(|row| row.method.as_str()).collect();
        let text = format!(
            "not sent this way in {}: {}",
            pact.revision(),
            names.join(", ")
        );
        page.entry(2, &[], Tone::Faint, &text);
    }
}

fn method(page: &mut Page, row: &Row, width: usize) {
    let (mark, tone, text) = if row.is_open {
        ("✓", Tone::Good, Tone::Faint)
    } else {
        ("✗", Tone::Bad, Tone::Plain)
    };
    let mark = Cell {
        tone,
        text: mark,
        width: 2,
    };
    let name = label(row.method.as_str(), width);
    page.entry(2, &[mark, name], text, &row.brief);
    for param in &row.params {
        let text = format!("but not with `{}`: {}", param.member, param.explanation);
        page.entry(4, &[], Tone::Plain, &text);
    }
}

/// What neighbours must have in common to share their advice.
fn advice(row: &Row) -> Option<(&str, Option<&str>)> {
    row.remedy.as_deref().map(|remedy| (remedy, row.page))
}

fn remedy(page: &mut Page, row: &Row) {
    let Some((remedy, found)) = advice(row) else {
        return;
    };
    let text = match found {
        Some(found) => format!("{remedy}; see {found}"),
        None => remedy.to_owned(),
    };
    let arrow = Cell {
        tone: Tone::Remedy,
        text: "→",
        width: 2,
    };
    page.entry(4, &[arrow], Tone::Remedy, &text);
}
