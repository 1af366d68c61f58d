//! Output of `mcpact explain` for a refused negotiation.

use mcpact_engine::policy::Profile;
use mcpact_engine::refusal::Refusal;
use mcpact_spec::Side;

use super::layout::{Cell, Layout, printable};
use super::pact::{identity, label, supports};
use super::style::Tone;
use crate::explanation::{Explanation, Rejection};

/// Formats a refused negotiation: both offers, the cause and possible fixes.
pub(super) fn write(mut layout: Layout, explanation: &Explanation, refusal: &Refusal) -> String {
    let rejection = Rejection::new(explanation, refusal);
    layout.title(Tone::Bad, &format!("refused ({})", rejection.reason));
    for side in [Side::Client, Side::Server] {
        let document = explanation.document(side);
        layout.entry(
            2,
            &[label(side.as_str(), 8)],
            Tone::Plain,
            &identity(document),
        );
        layout.entry(2, &[label("", 8)], Tone::Faint, &supports(document));
    }
    let policy = explanation.policy();
    if policy.profile != Profile::Spec {
        layout.entry(
            2,
            &[label("profile", 8)],
            Tone::Plain,
            policy.profile.as_str(),
        );
    }
    layout.heading("Cause", "");
    layout.entry(2, &[], Tone::Plain, &printable(&rejection.cause));
    layout.heading("How to fix it", "");
    for fix in &rejection.fixes {
        let arrow = Cell {
            tone: Tone::Hint,
            text: "→",
            width: 2,
        };
        layout.entry(2, &[arrow], Tone::Hint, &printable(fix));
    }
    match rejection.receiver {
        Some(side) => {
            layout.heading(&format!("Error sent to the {side}"), "");
            let wire = &rejection.wire;
            layout.entry(2, &[label("code", 7)], Tone::Plain, &wire.code.to_string());
            layout.entry(
                2,
                &[label("message", 7)],
                Tone::Plain,
                &printable(&wire.message),
            );
            if let Some(data) = &wire.data {
                layout.entry(2, &[label("data", 7)], Tone::Plain, &printable(data));
            }
        }
        None => {
            layout.heading("Error sent", "");
            layout.entry(2, &[], Tone::Plain, "none: the client disconnects");
        }
    }
    layout.finish()
}
