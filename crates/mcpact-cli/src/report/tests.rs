use mcpact_engine::policy::Profile;
use mcpact_spec::{Revision, Side};

use super::explain;
use super::layout::{Layout, length};
use crate::document::{Document, Source};
use crate::explanation::{Explanation, ServerPolicy};

/// The examples under every profile, with every revision and without.
fn explanations() -> Vec<Explanation> {
    let mut all = Vec::new();
    for profile in Profile::ALL {
        for revision in Revision::ALL.map(Some).into_iter().chain([None]) {
            let document = |side| {
                let document = Document::read(side, Source::Example).unwrap();
                match revision {
                    Some(revision) => document.limited_to(revision),
                    None => document,
                }
            };
            let policy = ServerPolicy {
                profile,
                policy: profile.policy(),
            };
            all.push(Explanation::new(
                document(Side::Client),
                document(Side::Server),
                policy,
            ));
        }
    }
    all
}

fn formatted(explanation: &Explanation, show_all: bool, width: usize) -> Layout {
    let mut layout = Layout::new(width);
    explain::write(&mut layout, explanation, show_all);
    layout
}

fn without_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    out + rest
}

#[test]
fn colour_does_not_change_the_text() {
    for explanation in explanations() {
        let layout = formatted(&explanation, false, 80);
        let coloured = layout.styled().to_owned();
        let plain = layout.finish(&Vec::new());
        assert!(!plain.contains('\u{1b}'));
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(without_colour(&coloured), plain);
    }
}

#[test]
fn lines_fit_the_width_without_trailing_space() {
    for width in [80, 100] {
        for explanation in explanations() {
            let text = formatted(&explanation, true, width).finish(&Vec::new());
            for line in text.lines() {
                assert!(length(line) <= width, "{width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}
