//! Nobody is let in because of a config that somebody else wrote.

use std::fs;
use std::io::Read as _;

use crate::place::{Place, Running, said};

/// What the gateway says instead of serving.
fn refusal(place: &Place, args: &[&str]) -> String {
    let mut all = vec!["serve"];
    all.extend(args);
    let (running, mut heard) = Running::start_heard(place.command(&all));
    assert_eq!(running.url, "", "it serves");
    let mut said = String::new();
    heard.read_to_string(&mut said).unwrap();
    said
}

/// The marks that `approve` shows.
fn marks(place: &Place, args: &[&str]) -> Vec<String> {
    let mut all = vec!["approve"];
    all.extend(args);
    let output = place.run(&all);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let shown = said(&output);
    let lines = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mark"));
    lines.map(|mark| mark.trim().to_owned()).collect()
}

fn approve(place: &Place, mark: &str) {
    let output = place.run(&["approve", "--mark", mark]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

const TOKEN: &str = "token = \"0123456789abcdef\"\n";

/// A key of a config that was merely found lets nobody in whom the default keeps out, until somebody has agreed to
/// what it says; key, line and remedy are told.
#[test]
fn a_found_config_opens_nothing_by_itself() {
    for (key, text) in [
        ("listen", format!("{TOKEN}listen = \"0.0.0.0:0\"")),
        ("allow_remote", String::from("#\nallow_remote = true")),
        (
            "allow_hosts",
            String::from("#\nallow_hosts = [\"a.example\"]"),
        ),
        (
            "allow_origins",
            String::from("#\nallow_origins = [\"https://a.example\"]"),
        ),
    ] {
        let place = Place::new();
        place.configure("mcpact.toml", &format!("[gateway]\n{text}\n"));
        let args: &[&str] = match key {
            "listen" => &[],
            _ => &["--listen", "127.0.0.1:0"],
        };
        let told = refusal(&place, args);
        for words in [
            &format!("`{key}`"),
            "mcpact.toml:3:",
            "mcpact approve --config",
        ] {
            assert!(told.contains(words), "{key}: {told}");
        }
        let [mark] = marks(&place, &[]).try_into().unwrap();
        approve(&place, &mark);
        let mut all = vec!["serve"];
        all.extend(args);
        assert_ne!(Running::start(place.command(&all)).url, "", "{key}");
    }
}

/// The yes is for what the key says in this config: another value, a token that others know and another config need
/// another one.
#[test]
fn a_yes_is_for_what_the_key_says_in_one_config() {
    let place = Place::new();
    let text = "[gateway]\ntoken = \"${file:token}\"\nlisten = \"0.0.0.0:0\"\n";
    fs::write(place.path().join("token"), "0123456789abcdef").unwrap();
    place.configure("mcpact.toml", text);
    let [first] = marks(&place, &[]).try_into().unwrap();
    approve(&place, &first);
    assert_ne!(Running::start(place.command(&["serve"])).url, "");
    fs::create_dir(place.path().join("other")).unwrap();
    place.configure("other/mcpact.toml", &text.replace("file:", "file:../"));
    let [elsewhere] = marks(&place, &["--config", "other/mcpact.toml"])
        .try_into()
        .unwrap();
    let same = place.run(&["approve", "--config", "other/../mcpact.toml"]);
    assert_eq!(same.status.code(), Some(0), "{}", said(&same));
    let mut seen = vec![first, elsewhere];
    for other in [
        text.replace("0.0.0.0", "[::]"),
        text.replace("${file:token}", "0123456789abcdef"),
    ] {
        place.configure("mcpact.toml", &other);
        let told = refusal(&place, &[]);
        assert!(told.contains("has changed since it was"), "{told}");
        let [mark] = marks(&place, &[]).try_into().unwrap();
        assert!(!seen.contains(&mark), "{other}");
        seen.push(mark);
    }
}

/// Whoever names the config agrees to whom it lets in, unless only what was approved is wanted; an address that is
/// not used, keys that let nobody else in and own pipes need no yes.
#[test]
fn what_lets_nobody_in_needs_no_yes() {
    let place = Place::new();
    let open = format!("[gateway]\n{TOKEN}listen = \"0.0.0.0:0\"\n");
    place.configure("mcpact.toml", &open);
    let named = ["serve", "--config", "mcpact.toml"];
    assert_ne!(Running::start(place.command(&named)).url, "");
    let told = refusal(&place, &["--config", "mcpact.toml", "--approved-only"]);
    assert!(told.contains("`listen`"), "{told}");
    assert_ne!(place.serve(&[]).url, "", "the address is not used");
    let on_pipes = place.run(&["serve", "--stdio"]);
    assert_eq!(on_pipes.status.code(), Some(0), "{}", said(&on_pipes));
    let shut =
        format!("[gateway]\n{TOKEN}listen = \"127.0.0.1:0\"\nsse = true\nallow_hosts = []\n");
    place.configure("mcpact.toml", &shut);
    assert_ne!(Running::start(place.command(&["serve"])).url, "");
}
