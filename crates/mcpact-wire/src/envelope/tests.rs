use super::*;
use crate::scan::ScanFault;

fn shape(text: &str) -> ShapeFault {
    match Envelope::parse(text.as_bytes()) {
        Err(EnvelopeError::Shape { fault, .. }) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_request_keeps_its_parts_raw() {
    let text = r#" {"params":{"b":1.0e2,"name":"t","_meta":{"progressToken":"p","x":[1]}},
        "method":"tools\/call","id":18446744073709551616,"jsonrpc":"2.0"} "#;
    let Ok(Envelope::Request(request)) = Envelope::parse(text.as_bytes()) else {
        panic!("a request");
    };
    assert_eq!(request.id.raw(), "18446744073709551616");
    assert_eq!(request.method, "tools/call");
    assert_eq!(
        request.params.raw,
        Some(r#"{"b":1.0e2,"name":"t","_meta":{"progressToken":"p","x":[1]}}"#)
    );
    assert_eq!(request.params.name, Some("\"t\""));
    assert_eq!(request.params.meta.progress_token, Some("\"p\""));
    assert_eq!(
        request.params.meta.raw,
        Some(r#"{"progressToken":"p","x":[1]}"#)
    );
}

#[test]
fn an_answer_shows_its_result_type() {
    let text = r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"input_required","_meta":{"io.modelcontextprotocol/serverInfo":{}}}}"#;
    let Ok(Envelope::Response(response)) = Envelope::parse(text.as_bytes()) else {
        panic!("a response");
    };
    let Outcome::Result(body) = response.outcome else {
        panic!("a result");
    };
    assert_eq!(body.result_type, Some("\"input_required\""));
    assert_eq!(body.meta.server_info, Some("{}"));
}

#[test]
fn shapes_that_are_not_messages() {
    for (text, fault) in [
        ("7", ShapeFault::NotAnObject),
        ("[]", ShapeFault::NotAnObject),
        (r#"{"id":1,"method":"x"}"#, ShapeFault::Version),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            ShapeFault::Version,
        ),
        (
            r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#,
            ShapeFault::Version,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            ShapeFault::Id,
        ),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, ShapeFault::Id),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, ShapeFault::Id),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, ShapeFault::Method),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            ShapeFault::Params,
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, ShapeFault::Parts),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            ShapeFault::Parts,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"params":{"resultType":"input_required"},"result":{}}"#,
            ShapeFault::Parts,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            ShapeFault::Parts,
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#, ShapeFault::Id),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, ShapeFault::Id),
        (r#"{"jsonrpc":"2.0","id":[],"error":{}}"#, ShapeFault::Id),
    ] {
        assert_eq!(shape(text), fault, "{text}");
    }
}

#[test]
fn an_error_may_come_without_id() {
    for text in [
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
    ] {
        let Ok(Envelope::Response(response)) = Envelope::parse(text.as_bytes()) else {
            panic!("a response");
        };
        assert_eq!(response.id, None);
    }
}

#[test]
fn a_bad_request_with_a_readable_id_can_be_answered() {
    let error = Envelope::parse(br#"{"jsonrpc":"2.0","id":"k","method":"x","params":1}"#);
    let Err(EnvelopeError::Shape { id, .. }) = error else {
        panic!("refused");
    };
    assert_eq!(id, Some(Id::text("k")));
}

#[test]
fn a_bad_answer_is_never_answered() {
    let error = Envelope::parse(br#"{"jsonrpc":"1.0","id":"k","result":{}}"#);
    assert!(matches!(error, Err(EnvelopeError::Shape { id: None, .. })));
}

#[test]
fn protocol_members_may_not_stand_twice() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","m\u0065thod":"y"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{},"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"progressToken":1,"progressToken":1}}}"#,
    ] {
        let Err(EnvelopeError::Json(error)) = Envelope::parse(text.as_bytes()) else {
            panic!("{text}");
        };
        assert!(matches!(error.fault, ScanFault::Duplicate(_)), "{text}");
    }
}

/// The id is known although it may come last.
#[test]
fn protocol_members_of_params_that_stand_twice_are_refused_with_the_id() {
    for (params, name) in [
        (r#"{"name":"a","name":"b"}"#, "name"),
        (r#"{"name":"a","x":1,"n\u0061me":"b","name":"c"}"#, "name"),
        (r#"{"_meta":{},"_meta":{"progressToken":1}}"#, "_meta"),
        (
            r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
            "progressToken",
        ),
    ] {
        let text = std::format!(r#"{{"jsonrpc":"2.0","method":"x","params":{params},"id":1}}"#);
        let Err(EnvelopeError::Shape { fault, id }) = Envelope::parse(text.as_bytes()) else {
            panic!("{text}");
        };
        assert_eq!(fault, ShapeFault::Duplicate(name), "{text}");
        assert_eq!(id, Some(Id::number(1)), "{text}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let error = Envelope::parse(b"{\"jsonrpc\":\"2.0\",\"x\":\"\xff\"}");
    let Err(EnvelopeError::Json(error)) = error else {
        panic!("refused");
    };
    assert_eq!((error.at, error.fault), (22, ScanFault::Utf8));
}

#[test]
fn null_params_are_no_params() {
    let Ok(Envelope::Notification(note)) =
        Envelope::parse(br#"{"jsonrpc":"2.0","method":"n","params":null}"#)
    else {
        panic!("a notification");
    };
    assert_eq!(note.params.raw, None);
}

/// A key that the scan does not report is not searched for, so a missed one would pass a task id or a state unchanged.
#[test]
fn keys_of_results_are_seen_at_any_depth_and_not_in_texts() {
    let all = [
        SeenKeys::URI,
        SeenKeys::TASK_ID,
        SeenKeys::INPUT_REQUESTS,
        SeenKeys::REQUEST_STATE,
    ];
    for (result, expected) in [
        (
            r#"{"content":[{"text":"uri taskId \"requestState\":1"}]}"#,
            &[][..],
        ),
        (r#"{"a":[[{"uri":1}]]}"#, &all[..1]),
        (r#"{"_meta":{"ui":{"resourceUri":1}}}"#, &all[..1]),
        (r#"{"_meta":{"ui/resourceUri":1}}"#, &all[..1]),
        (r#"{"task":{"taskId":"1"}}"#, &all[1..2]),
        (
            r#"{"resultType":"input_required","inputRequests":{}}"#,
            &all[2..3],
        ),
        (r#"{"requestState":"a"}"#, &all[3..]),
        (r#"{"task":{"task\u0049d":"1"}}"#, &all[..]),
    ] {
        let text = std::format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let Ok(Envelope::Response(Response {
            outcome: Outcome::Result(body),
            ..
        })) = Envelope::parse(text.as_bytes())
        else {
            panic!("{text}");
        };
        for keys in all {
            assert_eq!(body.seen.may_have(keys), expected.contains(&keys), "{text}");
        }
    }
}
