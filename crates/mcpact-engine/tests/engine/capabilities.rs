//! Requirements N16 to N34: what is declared, what it means, and what is sent.

use std::sync::Arc;
use std::thread;

use mcpact_engine::capability::{Agreement, CapabilitySet, State, agree};
use mcpact_engine::lint;
use mcpact_engine::negotiate::{Offer, negotiate};
use mcpact_engine::pact::{IgnoreReason, Pact};
use mcpact_engine::policy::{Extras, Policy, Reading, Trim};
use mcpact_engine::revisions::{RevisionId, RevisionSet};
use mcpact_engine::version;
use mcpact_spec::{Capability, Era, Kind, LogLevel, Method, Presence, Revision, Side};
use serde_json::{Value, json};

use crate::support::*;

fn lenient(owner: Side, document: &Value) -> CapabilitySet {
    CapabilitySet::parse(owner, Some(&document.to_string()), Reading::Lenient).unwrap()
}

fn encoded(set: &CapabilitySet, revision: Revision, policy: &Policy) -> Value {
    parse(&set.encode(revision, policy).0)
}

/// N1: the checks have no state of their own and may run anywhere at once.
#[test]
fn rulings_can_be_made_from_many_threads() {
    fn is_shareable<T: Send + Sync>(_: &T) {}
    let pact = Arc::new(pact(
        Revision::V2025_11_25,
        json!({"roots": {}}),
        json!({"tools": {}}),
    ));
    is_shareable(&*pact);
    let rulings: Vec<_> = (0..4)
        .map(|_| {
            let pact = Arc::clone(&pact);
            thread::spawn(move || {
                (0..1000).all(|_| {
                    pact.rule(Side::Client, Kind::Request, "tools/list")
                        .is_open()
                        && !pact
                            .rule(Side::Client, Kind::Request, "prompts/list")
                            .is_open()
                })
            })
        })
        .collect();
    assert!(rulings.into_iter().all(|t| t.join().unwrap()));
}

/// N16: absent, present and present with flags are three things; null and false are absent.
#[test]
fn a_capability_has_three_states() {
    let set = lenient(
        Side::Server,
        &json!({"tools": {}, "resources": {"subscribe": true, "listChanged": false}, "prompts": null}),
    );
    assert_eq!(set.state("tools"), State::Present);
    assert!(matches!(set.state("resources"), State::With(_)));
    assert_eq!(set.state("resources.subscribe"), State::Present);
    assert_eq!(set.state("resources.listChanged"), State::Absent);
    assert_eq!(set.state("prompts"), State::Absent);
    assert_eq!(set.state("logging"), State::Absent);
    assert!(set.has("tools") && !set.has("prompts") && !set.has("logging"));
}

/// The document that declares one row, and nothing that it does not need.
fn declaring(row: Capability) -> Value {
    let leaf = match row.shape() {
        mcpact_spec::Shape::Flag => json!(true),
        mcpact_spec::Shape::Object => json!({}),
        mcpact_spec::Shape::OpenMap => json!({"x": {}}),
        mcpact_spec::Shape::SettingsMap => json!({"a.example/x": {}}),
    };
    row.path()
        .rsplit('.')
        .fold(leaf, |inner, key| json!({ key: inner }))
}

/// N17: every capability of every revision is read, and counts exactly where it is defined.
#[test]
fn every_capability_is_read_and_counts_where_it_is_defined() {
    for &row in Capability::ALL {
        let set = caps(row.owner(), declaring(row));
        assert!(set.declared().has(row), "{row}");
        for revision in Revision::ALL {
            let counts = row.presence(revision).counts();
            assert_eq!(
                set.declared().under(revision).has(row),
                counts,
                "{row} {revision}"
            );
        }
    }
    assert_eq!(Capability::ALL.len(), 30);
}

/// N17: an empty `elicitation` means forms; naming only URLs excludes them.
#[test]
fn an_empty_elicitation_means_forms() {
    let modes = |document: Value, revision| {
        let bits = caps(Side::Client, document).declared().under(revision);
        (
            bits.has(Capability::ElicitationForm),
            bits.has(Capability::ElicitationUrl),
        )
    };
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        assert_eq!(modes(json!({"elicitation": {}}), revision), (true, false));
        assert_eq!(
            modes(json!({"elicitation": {"form": {}}}), revision),
            (true, false)
        );
        assert_eq!(
            modes(json!({"elicitation": {"url": {}}}), revision),
            (false, true)
        );
        assert_eq!(
            modes(json!({"elicitation": {"form": {}, "url": {}}}), revision),
            (true, true)
        );
    }
    assert_eq!(
        modes(json!({"elicitation": {}}), Revision::V2025_06_18),
        (true, false)
    );
    assert_eq!(
        modes(json!({"elicitation": {}}), Revision::V2025_03_26),
        (false, false)
    );
}

/// N18: unknown keys are kept and do no harm.
#[test]
fn unknown_capabilities_survive_a_round_trip() {
    let document = json!({
        "tools": {"listChanged": true, "vendorFlag": [1, 2]},
        "realtimeDebugging": {"depth": 1e300},
        "x": 7,
    });
    let set = lenient(Side::Server, &document);
    assert_eq!(
        set.unknown().collect::<Vec<_>>(),
        ["realtimeDebugging", "x"]
    );
    assert_eq!(set.findings(), []);
    for revision in Revision::ALL {
        assert_eq!(
            encoded(&set, revision, &spec_policy()),
            document,
            "{revision}"
        );
    }
    let mut server = ServerRig::new(spec_policy(), document.clone());
    let out = server.initialize("2025-06-18", json!({"future": {"a": 1}}));
    assert_eq!(out[0].result()["capabilities"], document);
}

/// N19: a wrong type fails a strict handshake with its path, and counts as absent in a lenient one.
#[test]
fn wrong_types_are_refused_or_forgiven() {
    for (owner, document, path) in [
        (
            Side::Server,
            json!({"tools": {"listChanged": "x"}, "prompts": {}}),
            "capabilities.tools.listChanged",
        ),
        (
            Side::Server,
            json!({"maxBatchSize": "x", "prompts": {}}),
            "capabilities.maxBatchSize",
        ),
        (
            Side::Server,
            json!({"logging": {"levels": "all"}, "prompts": {}}),
            "capabilities.logging.levels",
        ),
        (
            Side::Server,
            json!({"tools": true, "prompts": {}}),
            "capabilities.tools",
        ),
        (Side::Client, json!(["roots"]), "capabilities"),
        (
            Side::Client,
            json!({"tasks": {"requests": []}}),
            "capabilities.tasks.requests",
        ),
        (
            Side::Client,
            json!({"extensions": {"a.example/b": 1}}),
            "capabilities.extensions.a.example/b",
        ),
    ] {
        let text = document.to_string();
        let fault = CapabilitySet::parse(owner, Some(&text), Reading::Strict).unwrap_err();
        assert_eq!(fault.path, path);
        let set = lenient(owner, &document);
        assert_eq!(set.findings().len(), 1, "{path}");
        assert_eq!(set.findings()[0].path, path);
        assert_eq!(
            set.has("prompts"),
            owner == Side::Server,
            "the rest is unharmed"
        );
        assert!(!set.has("tools.listChanged") && !set.has("tasks.requests.sampling.createMessage"));
    }
    let mut strict = legacy_only();
    strict.reading = Reading::Strict;
    let mut server = ServerRig::new(strict, json!({}));
    let out = server.initialize("2025-11-25", json!({"roots": {"listChanged": 1}}));
    assert_eq!(out[0].code(), -32602);
    assert_eq!(
        out[0].error()["data"]["path"],
        "capabilities.roots.listChanged"
    );
    let mut kind = ServerRig::new(legacy_only(), json!({}));
    let out = kind.initialize(
        "2025-11-25",
        json!({"roots": {"listChanged": 1}, "sampling": {}}),
    );
    assert!(out[0].result().is_object());
    let pact = kind.machine().phase().pact().unwrap();
    assert!(pact.declares(Capability::Sampling) && pact.declares(Capability::Roots));
    assert!(!pact.declares(Capability::RootsListChanged));
    assert_eq!(pact.ignored()[0].why, IgnoreReason::Malformed);
}

/// N20: shared keys are the intersection; the others follow their owner.
#[test]
fn shared_keys_need_both_sides() {
    let client =
        json!({"experimental": {"feature1": {}, "mine": {}}, "roots": {"listChanged": true}});
    let server =
        json!({"experimental": {"feature1": {}, "yours": {}}, "prompts": {"listChanged": true}});
    let pact = pact(Revision::V2025_11_25, client, server);
    let shared: Vec<_> = pact.experimental().iter().map(|s| &*s.id).collect();
    assert_eq!(shared, ["feature1"]);
    assert!(pact.declares(Capability::RootsListChanged));
    assert!(pact.declares(Capability::PromptsListChanged));
    let dropped: Vec<_> = pact
        .ignored()
        .into_iter()
        .map(|d| (d.owner, d.path, d.why))
        .collect();
    assert_eq!(
        dropped,
        [
            (
                Side::Client,
                "experimental.mine".into(),
                IgnoreReason::NotShared
            ),
            (
                Side::Server,
                "experimental.yours".into(),
                IgnoreReason::NotShared
            ),
        ]
    );
}

/// N21: one row more changes the verdicts of that row and of no other.
#[test]
fn one_capability_never_changes_anothers_verdict() {
    for revision in Revision::ALL {
        for &row in Capability::ALL {
            let (mut client, mut server) = (json!({}), json!({}));
            match row.owner() {
                Side::Client => client = declaring(row),
                Side::Server => server = declaring(row),
            }
            let without = pact(revision, json!({}), json!({}));
            let with = pact(revision, client, server);
            let top = row.path().split('.').next();
            for &method in Method::ALL {
                for sender in [Side::Client, Side::Server] {
                    for kind in [Kind::Request, Kind::Notification] {
                        let before = without.rule_on(sender, kind, method);
                        let after = with.rule_on(sender, kind, method);
                        if before != after {
                            let gate = method.gate(revision);
                            let same_family = match gate {
                                mcpact_spec::Gate::NeedsAny(all) => {
                                    all.iter().any(|c| c.path().split('.').next() == top)
                                }
                                _ => gate.capability(sender).is_some_and(|c| {
                                    c.owner() == row.owner() && c.path().split('.').next() == top
                                }),
                            };
                            assert!(same_family, "{row} changed {method} in {revision}");
                        }
                    }
                }
            }
        }
    }
}

/// N22: experimental values of any kind are kept as they came; only objects are sent.
#[test]
fn experimental_features_pass_through() {
    let set = lenient(
        Side::Server,
        &json!({"experimental": {"on": true, "off": false, "deep": {"a": [1]}, "n": 3}}),
    );
    let mut kept: Vec<_> = set.experimental().collect();
    kept.sort_unstable();
    assert_eq!(
        kept,
        [
            ("deep", r#"{"a":[1]}"#),
            ("n", "3"),
            ("off", "false"),
            ("on", "true")
        ]
    );
    assert_eq!(set.findings(), []);
    let (text, trimmed) = set.encode(Revision::V2025_11_25, &spec_policy());
    assert_eq!(
        parse(&text),
        json!({"experimental": {"deep": {"a": [1]}, "on": {}}})
    );
    assert_eq!(trimmed[0].path, "experimental.n");
}

/// N19: a wrongly typed capability counts as absent, so it is not passed on either.
#[test]
fn wrongly_typed_capabilities_are_not_written() {
    let set = lenient(
        Side::Server,
        &json!({"prompts": true, "resources": {"subscribe": "yes", "other": 1}, "tasks": {"requests": 1}, "own": true}),
    );
    assert_eq!(set.findings().len(), 3);
    let (text, trimmed) = set.encode(Revision::V2025_11_25, &spec_policy());
    assert_eq!(
        parse(&text),
        json!({"resources": {"other": 1}, "tasks": {}, "own": true})
    );
    let paths: Vec<&str> = trimmed.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["prompts", "resources.subscribe", "tasks.requests"]);
}

/// N23: vendor extras are always read, and never passed on; a policy can announce its own.
#[test]
fn vendor_extras_are_understood() {
    let document = json!({
        "supportedProtocolVersions": ["2024-11-05"],
        "maxBatchSize": 10,
        "logging": {"levels": ["debug", "warn"], "other": 1},
    });
    let set = lenient(Side::Server, &document);
    assert_eq!(set.extras().max_batch_size, Some(10));
    assert_eq!(&*set.extras().supported_versions[0], "2024-11-05");
    let levels: Vec<_> = set.extras().log_levels.iter().map(|l| l.as_str()).collect();
    assert_eq!(levels, ["debug", "warning"]);
    let mut policy = spec_policy();
    assert_eq!(
        encoded(&set, Revision::V2025_06_18, &policy),
        json!({"logging": {"other": 1}})
    );
    policy.extras = Extras::Announce;
    policy.batch_limit = 7;
    policy.version.supported = RevisionSet::of(&[Revision::V2025_06_18, Revision::V2025_03_26]);
    let levels: Vec<_> = LogLevel::ALL.iter().map(|level| level.as_str()).collect();
    let mut ours = json!({
        "supportedProtocolVersions": ["2025-06-18", "2025-03-26"],
        "logging": {"levels": levels, "other": 1},
    });
    assert_eq!(encoded(&set, Revision::V2025_06_18, &policy), ours);
    ours["maxBatchSize"] = json!(7);
    assert_eq!(encoded(&set, Revision::V2025_03_26, &policy), ours);
}

/// N23: a level that the peer does not announce becomes the next more verbose one that it does.
#[test]
fn announced_levels_bound_the_level_to_set() {
    use LogLevel::{Debug, Emergency, Error, Info, Notice, Warning};
    let settable = |levels: Value, wanted| {
        let set = lenient(Side::Server, &json!({"logging": {"levels": levels}}));
        set.extras().settable(wanted)
    };
    for (wanted, expected) in [(Notice, Info), (Emergency, Error), (Debug, Info)] {
        assert_eq!(settable(json!(["info", "error"]), wanted), expected);
        assert_eq!(settable(json!([]), wanted), wanted);
    }
    assert_eq!(settable(json!(["warn"]), Warning), Warning);
}

/// N24: a peer is sent only what its revision defines.
#[test]
fn capabilities_are_cut_to_the_revision() {
    let client = caps(
        Side::Client,
        json!({
            "roots": {"listChanged": true},
            "sampling": {"tools": {}, "context": {}},
            "elicitation": {"form": {}, "url": {}},
            "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}},
            "extensions": {"io.modelcontextprotocol/ui": {}},
            "custom": {},
        }),
    );
    let common = json!({"roots": {"listChanged": true}, "sampling": {},
        "extensions": {"io.modelcontextprotocol/ui": {}}, "custom": {}});
    let with = |change: fn(&mut Value)| {
        let mut value = common.clone();
        change(&mut value);
        value
    };
    let policy = spec_policy();
    let sent = |revision| encoded(&client, revision, &policy);
    assert_eq!(sent(Revision::V2024_11_05), common);
    assert_eq!(sent(Revision::V2025_03_26), common);
    assert_eq!(
        sent(Revision::V2025_06_18),
        with(|v| v["elicitation"] = json!({}))
    );
    assert_eq!(sent(Revision::V2025_11_25), parse(client.raw()));
    assert_eq!(
        sent(Revision::V2026_07_28),
        with(|v| {
            v["roots"] = json!({});
            v["sampling"] = json!({"tools": {}, "context": {}});
            v["elicitation"] = json!({"form": {}, "url": {}});
        })
    );
    let (_, trimmed) = client.encode(Revision::V2025_06_18, &policy);
    let mut paths: Vec<_> = trimmed.iter().map(|t| t.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "elicitation.form",
            "elicitation.url",
            "sampling.context",
            "sampling.tools",
            "tasks"
        ]
    );
    let mut keep = spec_policy();
    keep.trim = Trim::Keep;
    assert_eq!(
        encoded(&client, Revision::V2024_11_05, &keep),
        parse(client.raw()),
        "the way out"
    );
}

/// N24: the extension for tasks means nothing to a legacy revision and is not sent there; others are.
#[test]
fn the_tasks_extension_is_not_sent_to_legacy_revisions() {
    let tasks = "io.modelcontextprotocol/tasks";
    for side in [Side::Client, Side::Server] {
        let alone = caps(side, json!({"extensions": {tasks: {}}}));
        let both = caps(
            side,
            json!({"extensions": {tasks: {}, "a.example/x": {"y": 1}}}),
        );
        for revision in Revision::ALL {
            let sent = |set| encoded(set, revision, &spec_policy());
            let (one, two) = match revision.era() {
                Era::Legacy => (json!({}), json!({"extensions": {"a.example/x": {"y": 1}}})),
                Era::Modern => (parse(alone.raw()), parse(both.raw())),
            };
            assert_eq!((sent(&alone), sent(&both)), (one, two), "{side} {revision}");
        }
    }
}

/// N24: a client with URLs only must not seem to offer forms to a revision that knows no modes.
#[test]
fn url_only_elicitation_is_not_sent_as_forms() {
    let client = caps(Side::Client, json!({"elicitation": {"url": {}}}));
    assert_eq!(
        encoded(&client, Revision::V2025_06_18, &spec_policy()),
        json!({})
    );
}

/// N25: the declaration follows from the handlers; what is off is left out.
#[test]
fn the_declaration_follows_from_the_handlers() {
    let handlers = [
        Method::ToolsList,
        Method::ToolsCall,
        Method::ResourcesSubscribe,
        Method::CompletionComplete,
    ];
    let flags = [Capability::ToolsListChanged, Capability::PromptsListChanged];
    let build =
        |revision| parse(lint::declaration(Side::Server, &handlers, &flags, revision).raw());
    assert_eq!(
        build(Revision::V2025_11_25),
        json!({"completions": {}, "resources": {"subscribe": true}, "tools": {"listChanged": true}}),
        "prompts.listChanged has no prompts to belong to"
    );
    assert_eq!(
        parse(CapabilitySet::empty(Side::Server).raw()),
        json!({}),
        "never an empty object by accident"
    );
    let client = lint::declaration(
        Side::Client,
        &[Method::SamplingCreateMessage],
        &[],
        Revision::V2025_11_25,
    );
    assert_eq!(client.raw(), r#"{"sampling":{}}"#);
}

/// N26: extraction, version check and queries are plain functions.
#[test]
fn the_pure_functions_are_public() {
    let set = CapabilitySet::parse(Side::Client, Some(r#"{"roots":{}}"#), Reading::Strict).unwrap();
    assert!(set.has("roots"));
    let policy = spec_policy();
    assert!(version::validate(&policy.version, &RevisionId::parse("2025-06-18")).is_ok());
    assert!(version::validate(&policy.version, &RevisionId::parse("nope")).is_err());
}

/// N27: any path can be asked for, with a default; what is on can be listed and described.
#[test]
fn paths_can_be_queried_with_defaults() {
    let set = lenient(
        Side::Server,
        &json!({"resources": {"subscribe": true}, "tools": {"listChanged": false}}),
    );
    assert!(set.flag_or("resources.subscribe", false));
    assert!(!set.flag_or("resources.listChanged", false));
    assert!(
        set.flag_or("resources.listChanged", true),
        "the default is the caller's"
    );
    assert!(!set.flag_or("tools.listChanged", true), "said is said");
    assert!(!set.flag_or("prompts.listChanged", false));
    let enabled: Vec<_> = set.declared().iter().map(Capability::path).collect();
    assert_eq!(enabled, ["resources", "resources.subscribe", "tools"]);
    for &row in Capability::ALL {
        assert!(row.description().ends_with('.'), "{row} can be described");
    }
}

/// N28: what a side will not do without is named when it is missing.
#[test]
fn required_capabilities_are_enforced_on_both_sides() {
    let mut policy = spec_policy();
    policy.required = vec!["elicitation.form".into(), "roots".into()];
    let mut server = ServerRig::new(policy.clone(), json!({"tools": {}}));
    let out = server.initialize("2025-11-25", json!({"roots": {}}));
    assert_eq!(out[0].code(), -32602);
    assert_eq!(
        out[0].error()["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
    let modern = server.request(1, "tools/list", modern_params(json!({})));
    assert_eq!(modern[0].code(), -32021);
    assert_eq!(
        modern[0].error()["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}, "roots": {}})
    );
    server.ready("2025-11-25", json!({"roots": {}, "elicitation": {}}));

    let mut wants_tools = legacy_only();
    wants_tools.required = vec!["tools".into()];
    let mut client = ClientRig::new(wants_tools, json!({}));
    let first = client.open().remove(0);
    let out = client.answer_to(
        &first,
        initialize_result("2025-11-25", json!({"prompts": {}})),
    );
    assert_eq!(
        out,
        [Out::HangUp],
        "no `initialized` for a server that is of no use"
    );
}

/// N29, N30: extensions meet by identifier, with settings, prefix and the highest common version.
#[test]
fn extensions_are_negotiated_with_settings_and_versions() {
    let client = lenient(
        Side::Client,
        &json!({"extensions": {
            "a.example/both": {"mimeTypes": ["text/html"]},
            "a.example/client": {},
            "a.example/versioned": {"versions": ["1.2", "1.10", "2.0"]},
            "a.example/apart": {"version": "1"},
            "noprefix": {},
        }}),
    );
    let server = lenient(
        Side::Server,
        &json!({"extensions": {
            "a.example/both": {"x": 1},
            "a.example/versioned": {"versions": ["1.10", "1.2", "3"]},
            "a.example/apart": {"version": "2"},
            "a.example/server": {},
        }}),
    );
    let all = agree(&client, &server, Revision::V2026_07_28);
    let shared = |id: &str| {
        all.iter().find_map(|a| match a {
            Agreement::Shared(s) if &*s.id == id => Some(s),
            _ => None,
        })
    };
    let both = shared("a.example/both").unwrap();
    assert_eq!(
        (&*both.client_settings, &*both.server_settings),
        (r#"{"mimeTypes":["text/html"]}"#, r#"{"x":1}"#)
    );
    assert_eq!(
        shared("a.example/versioned").unwrap().version.as_deref(),
        Some("1.10")
    );
    assert!(all.contains(&Agreement::NoCommonVersion("a.example/apart".into())));
    assert!(all.contains(&Agreement::ClientOnly("a.example/client".into())));
    assert!(all.contains(&Agreement::ServerOnly("a.example/server".into())));
    assert!(all.contains(&Agreement::BadIdentifier("noprefix".into(), Side::Client)));
}

/// N31: name and version are required; the rest is optional and cut to the revision.
#[test]
fn implementation_info_is_checked_and_cut() {
    use mcpact_wire::model::implementation::Implementation;
    let mut server = ServerRig::new(legacy_only(), json!({}));
    let mut params = initialize_params("2025-11-25", json!({}));
    params["clientInfo"] = json!({"name": "n"});
    let out = server.request(1, "initialize", params);
    assert_eq!(
        (out[0].code(), &out[0].error()["data"]["path"]),
        (-32602, &json!("clientInfo.version"))
    );
    let raw = json!({"name": "n", "version": "1", "title": "N", "description": "d", "icons": [],
        "websiteUrl": "https://x.example", "vendor": 1});
    let info = Implementation::parse("serverInfo", Some(&raw.to_string())).unwrap();
    let keys = |revision| {
        let value = parse(&info.encode(revision));
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(keys(Revision::V2025_03_26), "name vendor version");
    assert_eq!(keys(Revision::V2025_06_18), "name title vendor version");
    assert_eq!(parse(&info.encode(Revision::V2025_11_25)), raw);
}

/// N32: a pact does not change, whatever is asked of it.
#[test]
fn a_pact_never_changes() {
    let client = json!({"sampling": {}, "elicitation": {}});
    let pact = Arc::new(pact(Revision::V2025_11_25, client, json!({"tools": {}})));
    assert!(pact.declares(Capability::Sampling));
    assert!(pact.declares(Capability::Tools));
    assert!(!pact.declares(Capability::SamplingTools));
    assert!(!pact.declares(Capability::ElicitationUrl));
    assert_eq!(pact.revision(), Revision::V2025_11_25);
    let before: Pact = (*pact).clone();
    let _ = (
        pact.ignored(),
        pact.rule(Side::Client, Kind::Request, "x"),
        pact.has(Side::Client, "y"),
    );
    assert_eq!(before, *pact);
}

/// N33: the transcript tells offer, answer, decisions and what was left out, and serialises.
#[test]
fn the_trail_tells_the_whole_story() {
    let mut server = ServerRig::new(spec_policy(), json!({"tools": {}, "tasks": {}}));
    server.initialize(
        "2099-01-01",
        json!({"roots": {}, "tasks": {}, "experimental": {"x": {}}}),
    );
    let transcript = serde_json::to_value(server.machine().transcript()).unwrap();
    let events: Vec<_> = transcript
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        events,
        ["declared", "declared", "selected", "dropped", "agreed"]
    );
    assert_eq!(transcript[0]["versions"], json!(["2099-01-01"]));
    assert_eq!(
        transcript[0]["capabilities"],
        json!({"experimental": {"x": {}}, "roots": {}, "tasks": {}})
    );
    assert_eq!(
        transcript[2],
        json!({"event": "selected", "revision": "2025-11-25", "era": "legacy", "how": "counter-offered"})
    );
    assert_eq!(transcript[3]["path"], "experimental.x");

    let mut refusing = ServerRig::new(
        mcpact_engine::policy::Profile::McpvStrict.policy(),
        json!({}),
    );
    refusing.initialize("2024-11-05", json!({}));
    let transcript = serde_json::to_value(refusing.machine().transcript()).unwrap();
    assert_eq!(transcript[0]["event"], "refused");
    assert_eq!(
        (&transcript[0]["reason"], &transcript[0]["code"]),
        (&json!("unsupported_version"), &json!(-32602))
    );

    let offer = |versions: &[&str], capabilities| Offer {
        versions: versions.iter().map(|v| RevisionId::parse(v)).collect(),
        capabilities: Some(capabilities),
        info: None,
    };
    let outcome = negotiate(
        &offer(&["2026-07-28", "2025-11-25"], r#"{"roots":{}}"#),
        &offer(&["2025-06-18"], r#"{"tools":{}}"#),
        &spec_policy(),
    );
    assert_eq!(
        outcome.pact.unwrap_err().reason(),
        "protocol_version_mismatch"
    );
    let outcome = negotiate(
        &offer(
            &["2026-07-28", "2025-11-25", "2025-06-18"],
            r#"{"roots":{}}"#,
        ),
        &offer(&["2025-06-18"], r#"{"tools":{}}"#),
        &spec_policy(),
    );
    assert_eq!(outcome.pact.unwrap().revision(), Revision::V2025_06_18);
}

/// N34: the tables are the one source: a row without a description, or a path that this sheet does
/// not know, fails.
#[test]
fn every_row_is_described_and_in_the_sheet() {
    const SHEET: [(&str, &str); 30] = [
        ("client", "experimental"),
        ("client", "roots"),
        ("client", "roots.listChanged"),
        ("client", "sampling"),
        ("client", "sampling.tools"),
        ("client", "sampling.context"),
        ("client", "elicitation"),
        ("client", "elicitation.form"),
        ("client", "elicitation.url"),
        ("client", "tasks"),
        ("client", "tasks.list"),
        ("client", "tasks.cancel"),
        ("client", "tasks.requests.sampling.createMessage"),
        ("client", "tasks.requests.elicitation.create"),
        ("client", "extensions"),
        ("server", "experimental"),
        ("server", "logging"),
        ("server", "completions"),
        ("server", "prompts"),
        ("server", "prompts.listChanged"),
        ("server", "resources"),
        ("server", "resources.subscribe"),
        ("server", "resources.listChanged"),
        ("server", "tools"),
        ("server", "tools.listChanged"),
        ("server", "tasks"),
        ("server", "tasks.list"),
        ("server", "tasks.cancel"),
        ("server", "tasks.requests.tools.call"),
        ("server", "extensions"),
    ];
    let rows: Vec<_> = Capability::ALL
        .iter()
        .map(|c| (c.owner().as_str(), c.path()))
        .collect();
    assert_eq!(rows, SHEET);
    assert_eq!(Method::ALL.len(), 39);
    for &row in Capability::ALL {
        assert!(row.description().len() > 10, "{row}");
        let somewhere = Revision::ALL
            .iter()
            .any(|r| row.presence(*r) == Presence::Defined);
        assert!(somewhere, "{row} is defined nowhere");
    }
}
