//! Negotiation log of a server.

use mcpact::client::{Client, EraMode, Revision};
use mcpact::log::field;
use mcpact::server::{NoArgs, Server};
use tracing::Level;

use crate::record::{Entry, Log, ask, client, initialize, modern};

fn server() -> Server {
    Server::new("seen", "1.2").tool("ping", "p", |_: NoArgs, _| async { Ok("pong") })
}

#[track_caller]
fn says(entry: &Entry, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(entry.get(name), *value, "`{name}` of {entry:?}");
    }
}

/// A handshake produces a span and an event with all negotiated values.
#[tokio::test]
async fn handshake_is_logged() {
    let (log, _guard) = Log::start();
    let mut client = client(server());
    ask(&mut client, initialize("2025-06-18")).await;
    let events = log.negotiations("server");
    let spans = log.spans("server");
    assert_eq!((events.len(), spans.len()), (1, 1), "{events:?}");
    for entry in [&events[0], &spans[0]] {
        says(
            entry,
            &[
                (field::REQUEST_ID, "7"),
                (field::METHOD, "initialize"),
                (field::CLIENT_VERSION, "2025-06-18"),
                (field::CLIENT_CAPABILITIES, "negotiated"),
                (
                    field::CLIENT_CAPABILITY_LIST,
                    "roots, roots.listChanged, sampling",
                ),
                (field::CLIENT_INFO, "handmade 0.1"),
                (field::SERVER_INFO, "seen 1.2"),
                (field::REVISION, "2025-06-18"),
                (field::ERA, "legacy"),
                (field::OUTCOME, "agreed"),
                (field::STATUS, "ok"),
            ],
        );
        assert!(
            entry.get(field::TRANSPORT_ID).starts_with("lines-"),
            "{entry:?}"
        );
        assert!(
            entry.get(field::SERVER_CAPABILITY_LIST).contains("tools"),
            "{entry:?}"
        );
        assert_eq!(entry.level, Level::INFO);
    }
}

/// Discovery and the first request of a modern client are logged at `INFO`, further ones are not.
#[tokio::test]
async fn modern_client_is_logged_once() {
    let (log, _guard) = Log::start();
    let mut client = client(server());
    ask(&mut client, modern(1, "tools/list", "2026-07-28")).await;
    ask(&mut client, modern(2, "tools/list", "2026-07-28")).await;
    ask(&mut client, modern(3, "server/discover", "2026-07-28")).await;
    let events = log.negotiations("server");
    assert_eq!(events.len(), 1, "{events:?}");
    says(
        &events[0],
        &[
            (field::REQUEST_ID, "1"),
            (field::METHOD, "tools/list"),
            (field::CLIENT_VERSION, "2026-07-28"),
            (
                field::CLIENT_CAPABILITY_LIST,
                "elicitation, elicitation.form",
            ),
            (field::CLIENT_INFO, "handmade 0.2"),
            (field::ERA, "modern"),
            (field::STATUS, "ok"),
        ],
    );
}

/// A version mismatch is a warning with both offers and advice; its repetition is not.
#[tokio::test]
async fn repeated_mismatch_is_logged_once() {
    let (log, _guard) = Log::start();
    let only = server().revisions(&[Revision::V2026_07_28]);
    let mut client = client(only);
    for _ in 0..3 {
        ask(&mut client, modern(4, "tools/list", "2025-06-18")).await;
    }
    let events = log.negotiations("server");
    let loud: Vec<&Entry> = events.iter().filter(|e| e.level == Level::WARN).collect();
    assert_eq!((loud.len(), events.len()), (1, 3), "{events:?}");
    says(
        loud[0],
        &[
            (field::OUTCOME, "refused"),
            (field::STATUS, "protocol_version_mismatch"),
            (field::CLIENT_VERSION, "2025-06-18"),
            (field::SERVER_VERSIONS, "2026-07-28"),
            (field::CLIENT_CAPABILITIES, "unused"),
            (
                field::CLIENT_CAPABILITY_LIST,
                "elicitation, elicitation.form",
            ),
            (field::SERVER_CAPABILITY_LIST, "tools, tools.listChanged"),
            (
                field::ADVICE,
                "let the client ask for 2026-07-28, or let the server speak 2025-06-18, or put \
                 `mcpact bridge` between the two",
            ),
        ],
    );
}

/// A missing required capability, and a handshake refused before its capabilities are read, are warnings, too.
#[tokio::test]
async fn refused_handshakes_are_logged() {
    let (log, _guard) = Log::start();
    let strict = server().settings(|settings| {
        settings.policy.required.push("elicitation".into());
    });
    ask(&mut client(strict), initialize("2025-06-18")).await;
    let exact = mcpact_engine::policy::Profile::McpvStrict.policy();
    let exact = server().settings(|settings| settings.policy = exact);
    ask(&mut client(exact), initialize("2024-11-05")).await;
    let events = log.negotiations("server");
    says(
        &events[0],
        &[
            (field::STATUS, "missing_capability"),
            (field::CLIENT_CAPABILITIES, "insufficient"),
            (
                field::ADVICE,
                "declare `elicitation` in the client's capabilities",
            ),
        ],
    );
    says(
        &events[1],
        &[
            (field::STATUS, "protocol_version_mismatch"),
            (field::CLIENT_VERSION, "2024-11-05"),
            (field::CLIENT_INFO, "handmade 0.1"),
            (
                field::CLIENT_CAPABILITY_LIST,
                "roots, roots.listChanged, sampling",
            ),
        ],
    );
}

/// The same over every HTTP transport.
#[tokio::test]
async fn every_http_transport_logs() {
    for (revision, path, transport, method) in [
        (Revision::V2025_11_25, "/mcp", "http-", "initialize"),
        (Revision::V2026_07_28, "/mcp", "http", "server/discover"),
        (Revision::V2024_11_05, "/sse", "http+sse-", "initialize"),
    ] {
        let (log, _guard) = Log::start();
        let listening = server()
            .settings(|settings| settings.http_sse = true)
            .listen(([127, 0, 0, 1], 0).into())
            .await
            .unwrap();
        let url = listening.url().replace("/mcp", path);
        let serving = tokio::spawn(listening.run(std::future::pending()));
        let client = Client::builder("t", "1")
            .mode(EraMode::Pin(revision))
            .connect(url)
            .await
            .unwrap();
        client.list_tools().await.unwrap();
        let events = log.negotiations("server");
        let last = events.last().unwrap();
        says(
            last,
            &[
                (field::METHOD, method),
                (field::REVISION, revision.as_str()),
            ],
        );
        assert!(
            last.get(field::TRANSPORT_ID).starts_with(transport),
            "{last:?}"
        );
        assert_eq!(
            events
                .iter()
                .filter(|e| e.get(field::STATUS) == "ok")
                .count(),
            1
        );
        client.close().await;
        serving.abort();
    }
}

/// N19: a wrongly typed capability that is ignored makes the line of the negotiation a warning, which names it.
#[tokio::test]
async fn ignored_capability_is_logged_once() {
    let (log, _guard) = Log::start();
    let mut wrong = initialize("2025-06-18");
    wrong["params"]["capabilities"]["roots"]["listChanged"] = "x".into();
    ask(&mut client(server()), wrong).await;
    let events = log.negotiations("server");
    assert_eq!(
        (events.len(), events[0].level),
        (1, Level::WARN),
        "{events:?}"
    );
    let fault = "`capabilities.roots.listChanged` must be a boolean, found string";
    says(
        &events[0],
        &[(field::STATUS, "ok"), (field::IGNORED, fault)],
    );
}
