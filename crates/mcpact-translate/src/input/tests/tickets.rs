use std::boxed::Box;
use std::format;
use std::string::String;
use std::time::Duration;
use std::vec::Vec;

use mcpact_spec::{Method, Revision};
use serde_json::json as value;

use super::{at, binding, json, pact};
use crate::input::{
    Claims, Completions, Ticket, TicketOutcome, UrlRequired, invalid_state, redeem, url_required,
};

const URLS: &str = r#"{"elicitation":{"url":{}}}"#;
const TTL: Duration = Duration::from_secs(300);
const REQUIRED: &str = r#"{"code":-32042,"message":"go","data":{"elicitations":[{"mode":"url","elicitationId":"i-1","url":"https://a","message":"m"},{"mode":"url","elicitationId":"i-2","url":"https://b","message":"n"}]}}"#;

fn required(raw: &str, caps: &str) -> UrlRequired {
    let client = pact(Revision::V2026_07_28, caps);
    url_required(raw, binding(1, 1), &client, TTL, at(10))
}

fn ticket() -> Ticket {
    match required(REQUIRED, URLS) {
        UrlRequired::Ask { ticket, .. } => ticket,
        UrlRequired::Fail(error) => panic!("{error:?}"),
    }
}

fn answers(first: &str, second: &str) -> String {
    format!(r#"{{"url-1":{{"action":"{first}"}},"url-2":{{"action":"{second}"}}}}"#)
}

#[test]
fn the_urls_of_an_error_become_questions() {
    let UrlRequired::Ask {
        ticket,
        input_requests,
    } = required(REQUIRED, URLS)
    else {
        panic!("nothing is asked");
    };
    let ask = |url, message| value!({"method": "elicitation/create", "params": {"mode": "url", "url": url, "message": message}});
    let expected = value!({"url-1": ask("https://a", "m"), "url-2": ask("https://b", "n")});
    assert_eq!(json(&input_requests), expected);
    let ids: Vec<&str> = ticket.ids.iter().map(|id| &**id).collect();
    assert_eq!((ids.as_slice(), ticket.expires), (&["i-1", "i-2"][..], 310));
    let bytes = ticket.encode();
    assert_eq!(Ticket::parse(&bytes), Some(ticket));
    assert_eq!(Ticket::parse(&bytes[..bytes.len() - 1]), None);
    assert_eq!(Claims::parse(&bytes), None, "a ticket is no suspended call");
}

/// BB-15: the error for a client that cannot be sent to a URL names what it lacks; the server's code never
/// crosses.
#[test]
fn clients_without_urls_get_an_error() {
    for caps in [
        "{}",
        r#"{"elicitation":{}}"#,
        r#"{"elicitation":{"form":{}}}"#,
    ] {
        let UrlRequired::Fail(error) = required(REQUIRED, caps) else {
            panic!("{caps} is asked");
        };
        assert_eq!((error.code, error.http_status), (-32021, 400));
        let data = value!({"requiredCapabilities": {"elicitation": {"url": {}}}});
        assert_eq!(json(&error.data.unwrap()), data);
    }
}

#[test]
fn errors_that_name_no_url_fail() {
    let long = "i".repeat(65);
    let listing = |list: &str| {
        format!(r#"{{"code":-32042,"message":"go","data":{{"elicitations":{list}}}}}"#)
    };
    let one = r#"{"mode":"url","elicitationId":"i","url":"u","message":"m"}"#;
    let cells = [
        r#"{"code":-32042,"message":"go"}"#.into(),
        listing("[]"),
        listing("7"),
        listing("[7]"),
        listing(r#"[{"mode":"url","url":"u","message":"m"}]"#),
        listing(&format!(
            "[{}]",
            one.replace("\"i\"", &format!("\"{long}\""))
        )),
        listing(&format!("[{}]", [one; 9].join(","))),
    ];
    for raw in cells {
        let UrlRequired::Fail(error) = required(&raw, URLS) else {
            panic!("{raw} is asked");
        };
        assert_eq!(error.code, -32603, "{raw}");
    }
}

#[test]
fn consent_leads_to_the_call_and_refusal_to_its_end() {
    let here = binding(1, 1);
    let shown =
        |responses: Option<&str>| redeem(ticket(), &here, responses, Revision::V2026_07_28, at(20));
    let ids: Vec<Box<str>> = ["i-1".into(), "i-2".into()].into();
    let both = answers("accept", "accept");
    assert_eq!(shown(Some(&both)), TicketOutcome::Wait(ids));
    for refusal in [answers("accept", "decline"), answers("cancel", "accept")] {
        let TicketOutcome::Answer(result) = shown(Some(&refusal)) else {
            panic!("{refusal} is consent");
        };
        let result = json(&result);
        assert_eq!(
            (&result["isError"], &result["resultType"]),
            (&value!(true), &value!("complete"))
        );
    }
    for some in [None, Some("{}"), Some(r#"{"url-1":{"action":"accept"}}"#)] {
        assert_eq!(shown(some), TicketOutcome::Again, "{some:?}");
    }
    for bad in ["7", r#"{"url-1":{"action":"dream"}}"#, r#"{"url-2":7}"#] {
        let is_refused = matches!(shown(Some(bad)), TicketOutcome::Refused { error, .. } if error.code == -32602);
        assert!(is_refused, "{bad}");
    }
    let prompt = |mut binding: crate::input::Binding| {
        binding.method = Method::PromptsGet;
        binding
    };
    let ticket = Ticket {
        binding: prompt(here),
        ..ticket()
    };
    let refusal = answers("accept", "decline");
    let shown = redeem(
        ticket,
        &prompt(here),
        Some(&refusal),
        Revision::V2026_07_28,
        at(20),
    );
    assert!(matches!(shown, TicketOutcome::Fail(error) if error.code == -32603));
}

#[test]
fn a_ticket_is_good_only_for_its_caller_and_call_and_time() {
    let both = answers("accept", "accept");
    let mut prompt = binding(1, 1);
    prompt.method = Method::PromptsGet;
    let cells = [
        (binding(2, 1), 20),
        (binding(1, 2), 20),
        (prompt, 20),
        (binding(1, 1), 311),
    ];
    for (binding, now) in cells {
        let TicketOutcome::Refused { error, .. } = redeem(
            ticket(),
            &binding,
            Some(&both),
            Revision::V2026_07_28,
            at(now),
        ) else {
            panic!("taken at {now}");
        };
        assert_eq!(error, invalid_state());
    }
}

#[test]
fn completions_are_remembered_as_far_as_there_is_room() {
    let mut completions = Completions::new(2);
    let ids = |ids: &[&str]| ids.iter().map(|id| Box::from(*id)).collect::<Vec<_>>();
    assert!(completions.has_all(&[]));
    completions.note("a");
    completions.note("a");
    completions.note("b");
    assert!(completions.has_all(&ids(&["a", "b"])));
    completions.note(&"x".repeat(65));
    assert!(completions.has_all(&ids(&["a", "b"])));
    completions.note("c");
    assert!(!completions.has_all(&ids(&["a"])));
    assert!(completions.has_all(&ids(&["b", "c"])));
}
