use mcpact_engine::policy::Profile;
use mcpact_spec::{Revision, Side};

use super::page::{Page, length};
use super::style::Colour;
use super::{Detail, agreed, refused};
use crate::document::{Document, Source};
use crate::explanation::{Explanation, Setting};

/// The examples, under every profile and in every revision, and as they come.
fn explanations() -> Vec<Explanation> {
    let mut all = Vec::new();
    for profile in Profile::ALL {
        for revision in Revision::ALL.map(Some).into_iter().chain([None]) {
            let document = |side| {
                let document = Document::read(side, Source::Example).unwrap();
                match revision {
                    Some(revision) => document.speaking_only(revision),
                    None => document,
                }
            };
            let setting = Setting {
                profile,
                policy: profile.policy(),
            };
            all.push(Explanation::new(
                document(Side::Client),
                document(Side::Server),
                setting,
            ));
        }
    }
    all
}

fn written(explanation: &Explanation, detail: Detail, colour: Colour, width: usize) -> String {
    let page = Page::new(colour, width);
    match explanation.pact() {
        Ok(pact) => agreed::write(page, explanation, pact, detail),
        Err(refusal) => refused::write(page, explanation, refusal),
    }
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
fn colour_changes_nothing_but_colour() {
    for explanation in explanations() {
        let plain = written(&explanation, Detail::Usual, Colour::Off, 80);
        let coloured = written(&explanation, Detail::Usual, Colour::On, 80);
        assert!(!plain.contains('\u{1b}'));
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(without_colour(&coloured), plain);
    }
}

#[test]
fn no_line_is_wider_than_the_page_or_ends_in_space() {
    for width in [80, 100] {
        for explanation in explanations() {
            let text = written(&explanation, Detail::Every, Colour::Off, width);
            for line in text.lines() {
                assert!(length(line) <= width, "{width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}
