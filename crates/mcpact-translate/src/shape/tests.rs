//! Properties of every body, over generated ones; each failure has its seed.

mod bodies;

use std::string::String;

use alloc::borrow::Cow;
use alloc::format;

use mcpact_spec::{Method, Revision};
use mcpact_wire::scan::check;

use super::{ShapeError, adapt_client_result, adapt_params, error_to_legacy, result_to_legacy};
use super::{error_to_modern, result_to_modern, with_elicitation_id};
use bodies::{Source, arbitrary, broken, filled};

const ROUNDS: u64 = 200;

const RESULTS: [Method; 8] = [
    Method::ToolsList,
    Method::ToolsCall,
    Method::PromptsList,
    Method::PromptsGet,
    Method::ResourcesList,
    Method::ResourceTemplatesList,
    Method::ResourcesRead,
    Method::CompletionComplete,
];

/// Every function that takes a body from one revision to another.
fn rewrite<'a>(
    which: usize,
    method: Method,
    raw: &'a str,
    to: Revision,
) -> Result<Cow<'a, str>, ShapeError> {
    let info = Some(r#"{"name":"s","version":"1"}"#);
    match which {
        0 => result_to_legacy(method, raw, to),
        1 => result_to_modern(method, raw, to, info),
        2 => adapt_params(method, raw, to),
        3 => adapt_client_result(method, raw, to),
        4 => error_to_legacy(Some(method), raw, Some("a:b"), to),
        5 => error_to_modern(raw, to),
        _ => with_elicitation_id(raw, "id"),
    }
}

const FUNCTIONS: usize = 7;

fn every_call(mut visit: impl FnMut(usize, Method, Revision)) {
    for which in 0..FUNCTIONS {
        for method in Method::ALL {
            for to in Revision::ALL {
                visit(which, *method, to);
            }
        }
    }
}

/// One call of every kind would be thousands per body; each body gets one, and all get their turn.
fn turn(seed: u64, method: usize) -> (usize, Method, Revision) {
    let mut source = Source::new(seed ^ 0x5eed);
    let method = Method::ALL[(method + source.below(Method::ALL.len())) % Method::ALL.len()];
    let to = Revision::ALL[source.below(Revision::COUNT)];
    (source.below(FUNCTIONS), method, to)
}

#[test]
fn rewriting_gives_json_and_rewriting_twice_is_rewriting_once() {
    for seed in 0..ROUNDS {
        let body = arbitrary(seed);
        check(&body).unwrap();
        for method in 0..8 {
            let (which, method, to) = turn(seed, method * 5);
            let context = format!("seed {seed}, function {which}, {method} to {to}: {body}");
            let Ok(once) = rewrite(which, method, &body, to) else {
                continue;
            };
            assert!(check(&once).is_ok(), "{context}\n{once}");
            let twice = rewrite(which, method, &once, to);
            assert!(
                matches!(twice, Ok(Cow::Borrowed(same)) if same == once),
                "{context}\n{once}\n{twice:?}"
            );
        }
    }
}

#[test]
fn results_for_legacy_clients_are_json_and_translating_twice_changes_nothing() {
    for seed in 0..ROUNDS {
        for (body, method) in RESULTS.map(|m| (filled(m, seed), m)) {
            for to in Revision::ALL {
                let context = format!("seed {seed}, {method} to {to}: {body}");
                let once = result_to_legacy(method, &body, to).unwrap();
                assert!(check(&once).is_ok(), "{context}\n{once}");
                let twice = result_to_legacy(method, &once, to).unwrap();
                assert!(
                    matches!(twice, Cow::Borrowed(_)),
                    "{context}\n{once}\n{twice}"
                );
            }
        }
    }
}

#[test]
fn unknown_members_survive_in_every_revision_that_has_their_object() {
    for seed in 0..ROUNDS {
        for method in RESULTS {
            let body = filled(method, seed);
            let adapted = result_to_legacy(method, &body, Revision::V2025_11_25).unwrap();
            for unknown in body.split("\"x-").skip(1) {
                let name: String = unknown.chars().take_while(|c| *c != '"').collect();
                assert!(
                    adapted.contains(&format!("\"x-{name}\"")),
                    "seed {seed}, {method}, x-{name}: {body}\n{adapted}"
                );
            }
        }
    }
}

#[test]
fn nothing_panics_on_what_is_not_json_or_not_expected() {
    let odd = [
        "",
        "null",
        "[]",
        "{",
        "\"\"",
        "{}",
        "-",
        "{\"a\":1,\"a\":2}",
    ];
    for body in odd {
        every_call(|which, method, to| drop(rewrite(which, method, body, to)));
    }
    for seed in 0..ROUNDS {
        let body = broken(seed);
        let (which, method, to) = turn(seed, 0);
        drop(rewrite(which, method, &body, to));
        drop(result_to_legacy(method, &body, to));
    }
}
