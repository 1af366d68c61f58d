//! Check 8 of REVISIONS 3.4: tool parameters that are mirrored into headers.

use mcpact_engine::classify::HeaderField;
use mcpact_engine::classify::param_headers::{AnnotationFault, annotations, check, header_for};
use mcpact_engine::refusal::{HeaderFault, Misbehaviour};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limits": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "x-mcp-header": {"type": "string"},
    }})
}

/// N11: each header is compared with the value at its exact path, numbers as numbers.
#[test]
fn annotated_parameters_are_compared_with_their_headers() {
    let found = annotations(&schema().to_string()).unwrap();
    let judge = |arguments: Value, headers: &[(&str, &'static str)]| {
        let arguments = arguments.to_string();
        check(&found, Some(&arguments), |name| {
            let all: Vec<_> = headers
                .iter()
                .filter(|(n, _)| n.eq_ignore_ascii_case(name))
                .collect();
            match all[..] {
                [] => HeaderField::Absent,
                [(_, value)] => HeaderField::Once(value),
                _ => HeaderField::Repeated,
            }
        })
        .map_err(|m| match m {
            Misbehaviour::Header { name, fault } => (name.to_string(), fault),
            other => panic!("{other:?}"),
        })
    };
    let region = || "Mcp-Param-Region".to_owned();
    assert_eq!(
        judge(json!({"region": "us"}), &[("mcp-param-region", "us")]),
        Ok(())
    );
    assert_eq!(
        judge(
            json!({"region": "日本"}),
            &[("Mcp-Param-Region", "=?base64?5pel5pys?=")]
        ),
        Ok(())
    );
    assert_eq!(judge(json!({"region": null}), &[]), Ok(()), "HH-09");
    assert_eq!(judge(json!({}), &[]), Ok(()), "HH-09");
    assert_eq!(
        judge(json!({"region": "us"}), &[]),
        Err((region(), HeaderFault::Missing)),
        "HH-10"
    );
    assert_eq!(
        judge(json!({"region": "us"}), &[("Mcp-Param-Region", "eu")]),
        Err((region(), HeaderFault::Differs))
    );
    assert_eq!(
        judge(
            json!({"region": "us"}),
            &[("Mcp-Param-Region", "us"), ("mcp-param-region", "us")]
        ),
        Err((region(), HeaderFault::Repeated))
    );
    assert_eq!(
        judge(
            json!({"region": "us"}),
            &[("Mcp-Param-Region", "=?base64?%?=")]
        ),
        Err((region(), HeaderFault::Malformed)),
        "HH-12"
    );
    let number = json!({"limits": {"n": 42}});
    assert_eq!(
        judge(number.clone(), &[("Mcp-Param-N", "42.0")]),
        Ok(()),
        "HH-15"
    );
    assert!(judge(number, &[("Mcp-Param-N", "43")]).is_err());
    assert_eq!(
        judge(json!({"dry": true}), &[("Mcp-Param-Dry", "true")]),
        Ok(())
    );
}

/// N11, HH-13: an annotation that breaks a rule makes the tool unusable over HTTP, with the reason.
#[test]
fn bad_annotations_are_named() {
    let of = |property: Value| annotations(&json!({"properties": {"p": property}}).to_string());
    let ok = |kind: &str| of(json!({"type": kind, "x-mcp-header": "P"})).map(|all| all.len());
    assert_eq!(
        (ok("string"), ok("integer"), ok("boolean")),
        (Ok(1), Ok(1), Ok(1))
    );
    assert_eq!(ok("number"), Err(AnnotationFault::Type("p".into())));
    for bad in ["", "Bad Header", "a\nb", "ü"] {
        let fault = of(json!({"type": "string", "x-mcp-header": bad})).unwrap_err();
        assert!(matches!(fault, AnnotationFault::Name(_)), "{bad:?}");
    }
    for hidden in [
        json!({"type": "array", "items": {"type": "string", "x-mcp-header": "P"}}),
        json!({"oneOf": [{"type": "string", "x-mcp-header": "P"}]}),
    ] {
        assert_eq!(of(hidden), Err(AnnotationFault::Unreachable));
    }
    let twice = json!({"properties": {
        "a": {"type": "string", "x-mcp-header": "Same"},
        "b": {"type": "string", "x-mcp-header": "SAME"},
    }});
    assert!(matches!(
        annotations(&twice.to_string()),
        Err(AnnotationFault::Twice(_))
    ));
    assert_eq!(annotations(&schema().to_string()).unwrap().len(), 3);
}

/// N11: values become header values by their type.
#[test]
fn values_become_header_values() {
    for (raw, header) in [
        (r#""us-west1""#, Some("us-west1")),
        (r#"" padded ""#, Some("=?base64?IHBhZGRlZCA=?=")),
        ("42", Some("42")),
        ("-7", Some("-7")),
        ("true", Some("true")),
        ("null", None),
        ("[1]", None),
        ("9007199254740993", None),
    ] {
        assert_eq!(header_for(raw).as_deref(), header, "{raw}");
    }
}
