//! Expected results between two revisions: what degrades, what is impossible, and why.

use mcpact_spec::Revision;

use crate::outcome::{Feature, Loss, Observed};
use crate::{Pair, Row};

/// Expected result of a feature between two revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Works,
    Degrades(Loss),
    /// Impossible, with the reason.
    Impossible(&'static str),
}

/// Condition on the revisions of client and server.
type Applies = fn(client: Revision, server: Revision) -> bool;

/// Features that do not simply work. The first matching row counts.
const EXCEPTIONS: &[(Feature, Applies, Expected)] = &[
    (
        Feature::Tools,
        |client, server| client < Revision::V2025_06_18 && server >= Revision::V2025_06_18,
        Expected::Degrades(Loss::StructuredContent),
    ),
    (
        Feature::Progress,
        |client, server| client < Revision::V2025_03_26 && server >= Revision::V2025_03_26,
        Expected::Degrades(Loss::ProgressMessage),
    ),
    (
        Feature::Completion,
        |client, server| client >= Revision::V2025_03_26 && server < Revision::V2025_03_26,
        Expected::Impossible(
            "2024-11-05 servers do not declare `completions`, and the bridge declares only what the server does",
        ),
    ),
    (
        Feature::ElicitationForm,
        |client, server| client.min(server) < Revision::V2025_06_18,
        Expected::Impossible("elicitation was added in 2025-06-18"),
    ),
    (
        Feature::ElicitationUrl,
        |client, server| client.min(server) < Revision::V2025_11_25,
        Expected::Impossible("elicitation by URL was added in 2025-11-25"),
    ),
    (
        Feature::Tasks,
        |_, server| server < Revision::V2025_11_25,
        Expected::Degrades(Loss::TaskAtOnce),
    ),
    (
        Feature::Tasks,
        |client, _| client < Revision::V2025_11_25,
        Expected::Degrades(Loss::TaskWaitedFor),
    ),
    (
        Feature::Apps,
        |client, server| client.min(server) < Revision::V2025_06_18,
        Expected::Degrades(Loss::AppAsText),
    ),
    (
        Feature::Skills,
        |client, server| client.min(server) < Revision::V2026_07_28,
        Expected::Degrades(Loss::SkillAsResource),
    ),
];

/// Returns the expected result of a pair.
pub(crate) fn expected(feature: Feature, client: Revision, server: Revision) -> Expected {
    let applies = |(about, applies, _): &&(Feature, Applies, Expected)| {
        *about == feature && applies(client, server)
    };
    let found = EXCEPTIONS.iter().find(applies);
    found.map_or(Expected::Works, |(.., expected)| *expected)
}

/// Returns the unexpected results of a row.
pub(crate) fn surprises(row: &Row) -> Vec<String> {
    let Pair { client, server, .. } = row.pair;
    let mut lines = Vec::new();
    for (feature, seen) in &row.seen {
        let expected = expected(*feature, client, server);
        let is_expected = match (&expected, seen) {
            (Expected::Works, Observed::Works) => true,
            (Expected::Degrades(one), Observed::Degrades(other)) => one == other,
            (Expected::Impossible(_), Observed::Refused(_)) => true,
            _ => false,
        };
        if !is_expected {
            let pair = row.pair.name();
            lines.push(format!(
                "{pair}: {}: {seen:?}, expected {expected:?}",
                feature.name()
            ));
        }
    }
    lines
}
