use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::interop::manifest::Manifest;

const PEER: &str = r#"
    [[server]]
    name = "peer"
    kind = "node"
    file = "peer.mjs"
    modes = ["auto", "2025-06-18"]
    transports = ["stdio"]
    script = "all"
    [[server.absent]]
    modes = ["auto"]
    features = ["prompt"]
    reason = "it has none"
    [scripts.all]
"#;

fn line(feature: Feature, outcome: &str, note: &str) -> Value {
    json!({ "feature": feature.to_string(), "outcome": outcome, "note": note })
}

/// A report in which everything is as it should be, changed by `change`.
fn report(change: impl Fn(Feature) -> Option<Value>) -> String {
    let lines = Feature::ALL.into_iter().filter_map(|feature| {
        change(feature).or_else(|| {
            Some(match feature {
                Feature::Negotiate => line(feature, "works", "2025-06-18"),
                Feature::Prompt => line(feature, "absent", "no `prompts`"),
                _ => line(feature, "works", ""),
            })
        })
    });
    lines.map(|line| format!("{line}\n")).collect()
}

fn findings(position: usize, output: String, trouble: Option<&str>) -> Vec<String> {
    let manifest = Manifest::of(PEER, "", "");
    let pairs = manifest.pairs();
    let ran = Ran {
        output,
        trouble: trouble.map(str::to_owned),
        logs: vec![Path::new("there-is-no-such-log").to_owned()],
    };
    Verdict::new(&pairs[position], ran).findings()
}

fn only(wanted: Feature, outcome: &'static str) -> impl Fn(Feature) -> Option<Value> {
    move |feature| (feature == wanted).then(|| line(feature, outcome, "so"))
}

#[test]
fn a_report_as_expected_has_no_findings() {
    assert_eq!(findings(0, report(|_| None), None), [""; 0]);
}

#[test]
fn failed_missing_and_unexpectedly_absent_features_are_findings() {
    let failed = report(only(Feature::Call, "fails"));
    assert_eq!(findings(0, failed, None), ["peer stdio auto: call: so"]);
    let absent = report(only(Feature::Call, "absent"));
    assert_eq!(
        findings(0, absent, None),
        ["peer stdio auto: call: absent, but no entry expects that: so"]
    );
    let whole = report(|_| None);
    let cut = whole.replacen("\"call\"", "\"read\"", 1);
    assert_eq!(
        findings(0, cut, None),
        [
            "peer stdio auto: `read` is reported twice",
            "peer stdio auto: no result for call"
        ]
    );
    let nothing = findings(0, String::new(), None);
    assert!(nothing[0].contains("negotiate, list, call"), "{nothing:?}");
}

#[test]
fn unneeded_entry_is_stale() {
    let works = report(only(Feature::Prompt, "works"));
    assert_eq!(
        findings(0, works.clone(), None),
        ["peer stdio auto: prompt: it works; its entry under `absent` is stale"]
    );
    assert_eq!(
        findings(1, works, None),
        [""; 0],
        "it is about another mode"
    );
}

#[test]
fn hanging_client_and_invalid_output_are_findings() {
    let hung = findings(0, report(|_| None), Some("it hung"));
    assert_eq!(hung, ["peer stdio auto: it hung"]);
    let with_noise = format!("hello\n{}", report(|_| None));
    let found = findings(0, with_noise, None);
    assert!(
        found[0].starts_with("peer stdio auto: `hello` is not a result"),
        "{found:?}"
    );
}

#[test]
fn revision_other_than_the_pinned_one_is_a_finding() {
    let other = report(|feature| match feature {
        Feature::Negotiate => Some(line(feature, "works", "2025-11-25")),
        Feature::Prompt => Some(line(feature, "works", "")),
        _ => None,
    });
    assert_eq!(
        findings(1, other, None),
        ["peer stdio 2025-06-18: `2025-11-25` is not what the mode asks for"]
    );
}
