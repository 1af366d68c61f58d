//! Output of `mcpact doctor`.

use serde::Serialize;

use super::layout::{Layout, cell, widest, width};
use super::style::Tone;
use crate::doctor::{Examination, FindingFields, Level, Subject};

/// Formats examinations as text.
pub(crate) fn text(all: &[Examination]) -> String {
    let mut layout = Layout::new(width());
    for (at, examination) in all.iter().enumerate() {
        if at > 0 {
            layout.blank();
        }
        write(&mut layout, examination);
    }
    layout.blank();
    let count = |level| all.iter().map(|one| one.count(level)).sum::<usize>();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    let (tone, summary) = match (problems, warnings) {
        (0, 0) => (Tone::Good, String::from("no problems found")),
        _ => (
            Tone::Bad,
            format!(
                "{}, {}",
                super::count(problems, "problem"),
                super::count(warnings, "warning")
            ),
        ),
    };
    layout.title(tone, &summary);
    layout.finish(&std::io::stdout())
}

fn write(layout: &mut Layout, examination: &Examination) {
    let starts = match examination.starts {
        0 => "",
        1 => " (started once)",
        _ => " (started twice)",
    };
    let title = format!("{}{starts}", examination.name);
    layout.entry(0, &[], Tone::Heading, &title);
    let levels = widest(Level::ALL.iter().map(|level| level.as_str()));
    let subjects = widest(Subject::ALL.iter().map(|subject| subject.as_str()));
    for finding in &examination.findings {
        let tone = match finding.level {
            Level::Ok => Tone::Good,
            Level::Warning => Tone::Name,
            Level::Problem => Tone::Bad,
        };
        let cells = [
            cell(tone, finding.level.as_str(), levels + 2),
            cell(Tone::Plain, finding.subject.as_str(), subjects + 2),
        ];
        layout.entry(2, &cells, Tone::Plain, &finding.text);
        if let Some(remedy) = &finding.remedy {
            layout.hint(levels + subjects + 6, remedy);
        }
    }
}

#[derive(Serialize)]
struct Report<'e> {
    problems: usize,
    warnings: usize,
    servers: Vec<Server<'e>>,
}

#[derive(Serialize)]
struct Server<'e> {
    name: &'e str,
    starts: u32,
    findings: Vec<FindingFields<'e>>,
}

/// Formats examinations as JSON. Every field is always present.
pub(crate) fn json(all: &[Examination]) -> String {
    let count = |level| all.iter().map(|one| one.count(level)).sum();
    super::json(&Report {
        problems: count(Level::Problem),
        warnings: count(Level::Warning),
        servers: all
            .iter()
            .map(|examination| Server {
                name: &examination.name,
                starts: examination.starts,
                findings: examination
                    .findings
                    .iter()
                    .map(FindingFields::from)
                    .collect(),
            })
            .collect(),
    })
}
