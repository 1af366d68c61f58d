//! The command on small checkouts of its own.

use std::fs;

use super::{Options, check, run, sections};
use crate::checkout::Checkout;

const TEST_FILE: &str = "crates/a/tests/shown.rs";

/// A checkout with one test that cites every required id, and its folder.
fn checkout() -> (tempfile::TempDir, Checkout) {
    let root = tempfile::tempdir().unwrap();
    let checkout = Checkout::at(root.path().join("main"));
    let doc = format!(
        "/// {}\n#[test]\nfn shows() {{}}\n",
        sections::required().join(", ")
    );
    write(&checkout, TEST_FILE, &doc);
    (root, checkout)
}

fn write(checkout: &Checkout, path: &str, text: &str) {
    let path = checkout.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What `--write` makes, with a text for every id.
fn written(checkout: &Checkout) -> String {
    run(checkout, Options { write: true }).unwrap();
    let text = checkout
        .read("requirements.toml")
        .unwrap()
        .replace("text = \"\"", "text = \"x\"");
    write(checkout, "requirements.toml", &text);
    text
}

fn complaint(checkout: &Checkout) -> String {
    check(checkout).unwrap_err().to_string()
}

#[test]
fn what_is_written_passes_once_the_texts_are_filled_in() {
    let (_root, checkout) = checkout();
    run(&checkout, Options { write: true }).unwrap();
    assert!(complaint(&checkout).contains("N1: has no text"));
    let text = written(&checkout);
    check(&checkout).unwrap();
    assert!(text.starts_with(
        "[N1]\ntext = \"x\"\ntests = [\n    \"crates/a/tests/shown.rs::shows\",\n]\n\n[N2]"
    ));
}

#[test]
fn writing_keeps_header_texts_and_order() {
    let (_root, checkout) = checkout();
    let before = "# Who shows what.\n\n[T1]\ntext = \"say \\\"x\\\"\"\ntests = []\n\n[L2]\ntext = \"two\"\ntests = []\n";
    write(&checkout, "requirements.toml", before);
    run(&checkout, Options { write: true }).unwrap();
    let text = checkout.read("requirements.toml").unwrap();
    let parsed: toml::Table = toml::from_str(&text).unwrap();
    let ids: Vec<_> = parsed.keys().take(3).collect();
    assert_eq!(ids, ["T1", "L2", "N1"]);
    assert!(text.starts_with("# Who shows what.\n\n[T1]"), "{text}");
    assert_eq!(parsed["T1"]["text"].as_str(), Some("say \"x\""));
}

#[test]
fn a_missing_id_is_found() {
    let (_root, checkout) = checkout();
    let text = written(&checkout);
    let without = text.split_once("[P24]").unwrap().0;
    write(&checkout, "requirements.toml", without);
    assert!(complaint(&checkout).contains("P24: not in requirements.toml"));
}

#[test]
fn what_comes_later_needs_a_reason_and_is_kept() {
    let (_root, checkout) = checkout();
    let text = written(&checkout);
    write(&checkout, TEST_FILE, "");
    let none = text.replace("    \"crates/a/tests/shown.rs::shows\",\n", "");
    write(&checkout, "requirements.toml", &none);
    assert!(complaint(&checkout).contains("N1: no test shows it"));
    let blank = none.replace("tests = [\n]", "later = \" \"\ntests = []");
    write(&checkout, "requirements.toml", &blank);
    assert!(complaint(&checkout).contains("N1: `later` has no reason"));
    let later = blank.replace("\" \"", "\"needs the gateway\"");
    write(&checkout, "requirements.toml", &later);
    check(&checkout).unwrap();
    run(&checkout, Options { write: true }).unwrap();
    assert_eq!(checkout.read("requirements.toml").unwrap(), later);
}

#[test]
fn stale_tests_are_found() {
    let (_root, checkout) = checkout();
    let text = written(&checkout);
    for (stale, why) in [
        ("crates/a/tests/gone.rs::x", "no such file"),
        ("crates/a/tests/shown.rs::x", "no such test"),
    ] {
        write(
            &checkout,
            "requirements.toml",
            &text.replacen(
                "shown.rs::shows\"",
                &format!("shown.rs::shows\", \"{stale}\""),
                1,
            ),
        );
        let complaint = complaint(&checkout);
        assert!(
            complaint.contains(&format!("N1: `{stale}` is stale")),
            "{complaint}"
        );
        assert!(complaint.contains(why), "{complaint}");
    }
}

#[test]
fn both_directions_must_agree() {
    let (_root, checkout) = checkout();
    let text = written(&checkout);
    let other = "crates/a/src/lib.rs";
    write(
        &checkout,
        other,
        "mod tests {\n    /// N3\n    #[test]\n    fn cites() {}\n}\n",
    );
    assert!(
        complaint(&checkout)
            .contains("N3: `crates/a/src/lib.rs::cites` cites it but is not listed")
    );
    write(
        &checkout,
        other,
        "mod tests {\n    #[test]\n    fn cites() {}\n}\n",
    );
    let listed = text.replacen(
        "tests = [\n",
        "tests = [\n    \"crates/a/src/lib.rs::cites\",\n",
        1,
    );
    write(&checkout, "requirements.toml", &listed);
    assert!(complaint(&checkout).contains("N1: `crates/a/src/lib.rs::cites` does not cite it"));
}

#[test]
fn the_document_beside_the_checkout_must_have_the_same_ids() {
    let (_root, checkout) = checkout();
    written(&checkout);
    let rows = |ids: Vec<String>| -> String {
        ids.iter().map(|id| format!("| {id}★ | x |\n")).collect()
    };
    let same: String = sections::SECTIONS
        .iter()
        .filter(|section| section.document.ends_with("REQUIREMENTS.md"))
        .map(|section| {
            format!(
                "## {} A\n{}",
                section.heading,
                rows(section.ids().collect())
            )
        })
        .collect();
    write(&checkout, "../shared/REQUIREMENTS.md", &same);
    check(&checkout).unwrap();
    write(
        &checkout,
        "../shared/REQUIREMENTS.md",
        &same.replacen("## 1.1 A\n", "## 1.1 A\n| N99 | new |\n", 1),
    );
    assert!(complaint(&checkout).contains("N99: in section 1.1 of the document"));
}
