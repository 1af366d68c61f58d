//! The pages of `docs/manual/jobs` and the README: each command runs in a temporary folder, and its output matches the page.
//!
//! `UPDATE_MANUAL=1 cargo test -p mcpact-cli --test manual_jobs` writes the real output into the pages. Review the
//! difference: the parts that were abbreviated with `…` are whole again where a command prints something else.
//!
//! The pages show `/home/ada` and 127.0.0.1. A test uses a temporary folder, and another loopback address per page, so
//! that pages can show the default port and still run at a time. Only Linux has these addresses.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod output;
mod page;
mod session;

use std::path::PathBuf;

use page::{Page, Step};
use session::Session;

fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/manual/jobs"
    ))
}

/// Runs the steps of a page in order. Returns the commands that print something else, or the updated page.
fn run(name: &str, number: u8) {
    let path = folder().join(format!("{name}.md"));
    let text = std::fs::read_to_string(&path).unwrap();
    let page = Page::parse(&text);
    let mut session = Session::new(number);
    let mut updated = text.clone();
    let mut differences = Vec::new();
    // From the last to the first, so that the positions stay valid.
    let mut changes = Vec::new();
    for step in &page.steps {
        match step {
            Step::File { name, text } => session.write(name, text),
            Step::Run { command, shown } => {
                let expected = &text[shown.clone()];
                if let Err(printed) = session.run(command, expected) {
                    differences.push(format!(
                        "$ {command}\n--- the page\n{expected}--- printed\n{printed}"
                    ));
                    changes.push((shown.clone(), printed));
                }
            }
        }
    }
    assert!(page.runs() > 0, "{name} has no commands");
    if std::env::var_os("UPDATE_MANUAL").is_some() {
        for (shown, printed) in changes.into_iter().rev() {
            updated.replace_range(shown, &printed);
        }
        std::fs::write(&path, updated).unwrap();
        return;
    }
    assert!(
        differences.is_empty(),
        "{} differs from the program:\n\n{}\n\nto update the page: UPDATE_MANUAL=1 cargo test -p mcpact-cli --test manual_jobs",
        path.display(),
        differences.join("\n")
    );
}

macro_rules! pages {
    ($($number:literal $test:ident: $page:literal;)+) => {
        $(
            #[test]
            fn $test() {
                run($page, $number);
            }
        )+

        const PAGES: &[&str] = &[$($page),+];
    };
}

pages! {
    1 many_servers_behind_one_url: "many-servers-one-url";
    2 configs_of_other_clients: "configs-of-other-clients";
    3 old_client_and_new_server: "old-client-new-server";
    4 new_client_and_old_server: "new-client-old-server";
    5 why_a_server_is_broken: "why-is-it-broken";
    6 what_was_negotiated: "what-was-negotiated";
    7 restrict_tools: "restrict-tools";
    8 add_a_secret: "add-a-secret";
    9 reload_while_clients_are_connected: "reload-while-connected";
    10 tls_and_token: "tls-and-token";
    11 readme: "../../../README";
}

#[test]
fn every_page_is_tested() {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut found: Vec<String> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    let mut tested: Vec<&str> = PAGES.to_vec();
    tested.retain(|page| !page.contains('/'));
    tested.sort_unstable();
    assert_eq!(found, tested);
}
