//! Skills of several servers.

use std::collections::BTreeSet;
use std::fmt::Write;

use mcpact_sim::scripted::{TestClient, serve};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::in_process::{aggregator, everything};
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

const MODERN: Revision = Revision::V2026_07_28;
const EXTENSION: &str = "io.modelcontextprotocol/skills";

async fn skills(wire: &mut Wire) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let answer = wire.ask("skills/list", json!({"cursor": cursor})).await;
        let result = &answer["result"];
        assert_eq!(result["resultType"], "complete", "{answer}");
        assert!(result["ttlMs"].is_number() && result["cacheScope"].is_string());
        all.extend(result["skills"].as_array().unwrap().iter().cloned());
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            return all;
        }
    }
}

async fn declared(wire: &mut Wire) -> Value {
    let answer = wire.ask("server/discover", json!({})).await;
    answer["result"]["capabilities"]["extensions"][EXTENSION].clone()
}

/// Reads all files of a skill and checks their digests and sizes, and that its directories have the same files.
async fn verify(wire: &mut Wire, skill: &Value) {
    let uri = skill["uri"].as_str().unwrap();
    let root = uri.strip_suffix("/SKILL.md").unwrap();
    let name = skill["frontmatter"]["name"].as_str().unwrap();
    assert!(root.ends_with(&format!("/{name}")), "{uri}");
    let mut files = BTreeSet::new();
    for file in skill["resources"].as_array().unwrap() {
        let answer = wire
            .ask("resources/read", json!({"uri": file["uri"]}))
            .await;
        let contents = &answer["result"]["contents"][0];
        assert_eq!(contents["uri"], file["uri"], "{answer}");
        let text = contents["text"].as_str().unwrap();
        let mut digest = String::from("sha256:");
        for byte in Sha256::digest(text) {
            write!(digest, "{byte:02x}").unwrap();
        }
        assert_eq!(
            (&file["digest"], &file["size"]),
            (&json!(digest), &json!(text.len()))
        );
        files.insert(file["uri"].clone().to_string());
    }
    assert!(files.contains(&json!(uri).to_string()));
    let answer = wire.ask("skills/get", json!({"uri": uri})).await;
    assert_eq!(answer["result"]["skill"], *skill);
    let (mut found, mut directories) = (BTreeSet::new(), vec![json!(root)]);
    while let Some(uri) = directories.pop() {
        let answer = wire
            .ask("resources/directory/read", json!({"uri": uri}))
            .await;
        for child in answer["result"]["resources"].as_array().unwrap() {
            match child["mimeType"].as_str() {
                Some("inode/directory") => directories.push(child["uri"].clone()),
                _ => assert!(found.insert(child["uri"].to_string())),
            }
        }
    }
    assert_eq!(found, files);
}

/// Every file of every skill verifies: at the server itself, at its own endpoint, and behind an aggregator with another server
/// that has the same skills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digests_verify_at_every_endpoint() {
    let (a, b) = (everything("a", MODERN), everything("b", MODERN));
    let direct = serve(mcpact_everything::server(&[MODERN]));
    let both = aggregator(vec![a.clone(), b]);
    let cells = [
        (Wire::on(TestClient::on(direct, Some(json!({})))), &[""][..]),
        (Wire::on(TestClient::modern(a.server(), json!({}))), &[""]),
        (Wire::modern(&both, &json!({})), &["a/", "b/"]),
    ];
    for (mut wire, servers) in cells {
        assert_eq!(declared(&mut wire).await, json!({"directoryRead": true}));
        let all = skills(&mut wire).await;
        let uris: BTreeSet<_> = all
            .iter()
            .filter_map(|skill| skill["uri"].as_str())
            .collect();
        let named = |at: &str| {
            servers
                .iter()
                .map(|of| format!("skill://{of}{at}/SKILL.md"))
                .collect()
        };
        let mut expected: Vec<String> = named("acme/billing/invoices");
        expected.extend::<Vec<String>>(named("git-workflow"));
        assert_eq!(uris, expected.iter().map(String::as_str).collect());
        for skill in &all {
            verify(&mut wire, skill).await;
        }
        if servers.len() == 2 {
            let plain = json!({"uri": "skill://git-workflow/SKILL.md"});
            let answer = wire.ask("resources/read", plain).await;
            let message = answer["error"]["message"].as_str().unwrap();
            let (a, b) = (&expected[2], &expected[3]);
            assert!(message.contains(&format!("`{a}`, `{b}`")), "{message}");
        }
        let file = json!({"uri": expected[0]});
        for (method, params) in [
            ("skills/get", json!({"uri": "skill://none/SKILL.md"})),
            ("skills/get", json!({"uri": "test://static-text"})),
            ("resources/directory/read", file),
        ] {
            let answer = wire.ask(method, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
}

/// A legacy client sees the listed files of skills as resources. It has no methods for skills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skills_are_resources_to_legacy_clients() {
    for revision in [Revision::V2025_11_25, MODERN] {
        let both = aggregator(vec![everything("a", revision), everything("b", revision)]);
        let mut wire = Wire::legacy(&both, &json!({})).await;
        let answer = wire.ask("resources/list", json!({})).await;
        let listed = answer["result"]["resources"].as_array().unwrap().iter();
        let uris = listed.filter_map(|resource| resource["uri"].as_str());
        let uris: Vec<_> = uris
            .filter(|uri| uri.ends_with("git-workflow/SKILL.md"))
            .collect();
        assert_eq!(uris.len(), 2);
        for (uri, server) in uris.into_iter().zip(["a", "b"]) {
            assert_eq!(uri, format!("skill://{server}/git-workflow/SKILL.md"));
            let answer = wire.ask("resources/read", json!({"uri": uri})).await;
            assert_eq!(answer["result"]["contents"][0]["uri"], uri, "{answer}");
        }
        let refused = wire.ask("skills/list", json!({})).await;
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
}

fn script(settings: &Value, skills: &Value) -> ScriptedProcess {
    let extensions = json!({ EXTENSION: settings });
    let declared = json!({"tools": {}, "resources": {}, "extensions": extensions});
    let script = ScriptedProcess::new(Era::Modern, &declared);
    for (file, mut answer) in [
        ("skills-list", json!({"skills": skills})),
        ("skills-get", json!({"skill": skills[0]})),
        ("resources-list", json!({"resources": []})),
        ("resources-templates-list", json!({"resourceTemplates": []})),
        (
            "resources-read",
            json!({"contents": [{"uri": "given", "text": "x"}]}),
        ),
    ] {
        answer["resultType"] = json!("complete");
        answer["ttlMs"] = json!(0);
        answer["cacheScope"] = json!("public");
        script.answers(file, &answer);
    }
    script
}

fn skill(root: &str, resources: Value) -> Value {
    let name = root.rsplit('/').next();
    let uri = format!("{root}/SKILL.md");
    let resources = if resources.is_null() {
        json!([{"uri": uri, "digest": "sha256:0", "size": 1}, {"uri": format!("{root}/a/b.md"), "digest": "sha256:1", "size": 2}])
    } else {
        resources
    };
    json!({"uri": uri, "frontmatter": {"name": name, "description": "d", "x": [1]}, "resources": resources})
}

/// Skills of any scheme get the server as first segment. Original URIs are accepted while they are unambiguous, listed or not,
/// and no file is read before a client reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skills_of_any_scheme_are_routed() {
    let all = json!([
        skill("github://o/r/x", Value::Null),
        skill("skill://dyn", json!("dynamic"))
    ]);
    let (a, b) = (
        script(&json!({"directoryRead": true}), &all),
        script(&json!({}), &json!([])),
    );
    let children = json!([{"uri": "skill://dyn/f.md", "name": "f.md"}]);
    let read = json!({"resultType": "complete", "resources": children});
    a.answers("resources-directory-read", &read);
    let both = aggregator(vec![a.member("a"), b.member("b")]);
    let mut wire = Wire::modern(&both, &json!({}));
    assert_eq!(declared(&mut wire).await, json!({}));
    let refused = wire
        .ask("resources/directory/read", json!({"uri": "skill://a/dyn"}))
        .await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    for (at, (uri, inner)) in [
        ("github://a/o/r/x/a/b.md", "github://o/r/x/a/b.md"),
        ("github://o/r/x/a/b.md", "github://o/r/x/a/b.md"),
        ("skill://a/dyn/unlisted.md", "skill://dyn/unlisted.md"),
        ("skill://dyn/SKILL.md", "skill://dyn/SKILL.md"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = wire.ask("resources/read", json!({"uri": uri})).await;
        assert!(answer["result"].is_object(), "{answer}");
        let received = a.received("resources/read");
        assert_eq!(received.len(), at + 1);
        assert_eq!(received[at]["params"]["uri"], inner, "{uri}");
    }
    assert_eq!(b.received("resources/read").len(), 0);
    let shown = skills(&mut wire).await;
    let files = json!([
        {"uri": "github://a/o/r/x/SKILL.md", "digest": "sha256:0", "size": 1},
        {"uri": "github://a/o/r/x/a/b.md", "digest": "sha256:1", "size": 2},
    ]);
    assert_eq!(shown[0]["uri"], "github://a/o/r/x/SKILL.md");
    assert_eq!(shown[0]["resources"], files);
    assert_eq!(shown[0]["frontmatter"], all[0]["frontmatter"]);
    assert_eq!(
        (&shown[1]["uri"], &shown[1]["resources"]),
        (&json!("skill://a/dyn/SKILL.md"), &json!("dynamic"))
    );
    // An updated skill is listed at once.
    let updated = json!({"resultType": "complete", "ttlMs": 1_000_000, "cacheScope": "public", "skills": [all[1]]});
    a.answers("skills-list", &updated);
    assert_eq!(skills(&mut wire).await.len(), 1);
    assert_eq!(a.received("resources/read").len(), 4);
}

/// Broken skills of one server, or a broken list, leave the skills of the others as they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_skills_do_not_affect_other_servers() {
    let good = skill("skill://x", Value::Null);
    for broken in [
        json!([{"uri": "skill://no-manifest/SKILL.md"}, 5, "x", {}, good]),
        json!([
            skill("skill://y", json!("none")),
            skill("skill://z", json!([{"uri": 1}])),
            good
        ]),
        json!([{"uri": 7, "frontmatter": [], "resources": []}, good]),
        json!({"skills": 1}),
        Value::Null,
    ] {
        let (a, b) = (
            script(&json!({}), &json!([good])),
            script(&json!({}), &broken),
        );
        let both = aggregator(vec![b.member("b"), a.member("a")]);
        let shown = skills(&mut Wire::modern(&both, &json!({}))).await;
        let uris: Vec<_> = shown.iter().map(|skill| &skill["uri"]).collect();
        let mut expected = vec!["skill://b/x/SKILL.md", "skill://a/x/SKILL.md"];
        if !broken.is_array() {
            expected.remove(0);
        }
        assert_eq!(uris, expected, "{broken}");
    }
}
