use mcpact_engine::policy::Profile;
use mcpact_engine::refusal::Refusal;
use mcpact_spec::Side;

use super::agreed::{label, speaks, who};
use super::page::{Cell, Page, printable};
use super::style::Tone;
use crate::explanation::{Explanation, Rejection};

/// No pact: what both offered, why it did not fit, and what to do.
pub(super) fn write(mut page: Page, explanation: &Explanation, refusal: &Refusal) -> String {
    let rejection = Rejection::new(explanation, refusal);
    page.title(Tone::Bad, &format!("refused ({})", rejection.reason));
    for side in [Side::Client, Side::Server] {
        let document = explanation.document(side);
        page.entry(2, &[label(side.as_str(), 8)], Tone::Plain, &who(document));
        let versions = format!("speaks {}", speaks(document));
        page.entry(2, &[label("", 8)], Tone::Faint, &versions);
    }
    let setting = explanation.setting();
    if setting.profile != Profile::Spec {
        page.entry(
            2,
            &[label("profile", 8)],
            Tone::Plain,
            setting.profile.as_str(),
        );
    }
    page.heading("Why", "");
    page.entry(2, &[], Tone::Plain, &printable(&rejection.why));
    page.heading("What to do", "");
    for remedy in &rejection.remedies {
        let arrow = Cell {
            tone: Tone::Remedy,
            text: "→",
            width: 2,
        };
        page.entry(2, &[arrow], Tone::Remedy, &printable(remedy));
    }
    match rejection.told {
        Some(side) => {
            page.heading(&format!("What the {side} is told"), "");
            let wire = &rejection.wire;
            page.entry(2, &[label("code", 7)], Tone::Plain, &wire.code.to_string());
            page.entry(
                2,
                &[label("message", 7)],
                Tone::Plain,
                &printable(&wire.message),
            );
            if let Some(data) = &wire.data {
                page.entry(2, &[label("data", 7)], Tone::Plain, &printable(data));
            }
        }
        None => {
            page.heading("What is told", "");
            page.entry(
                2,
                &[],
                Tone::Plain,
                "nothing: the client ends the connection",
            );
        }
    }
    page.finish()
}
