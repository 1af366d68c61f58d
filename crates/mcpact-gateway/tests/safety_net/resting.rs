//! The pause of a shared stdio connection after a cancelled call.
//!
//! A legacy server on stdio does not say which call a request belongs to. After a cancelled call, the server may still send
//! requests for it. So the connection accepts no other call that allows input requests for a while.

use std::time::Duration;

use mcpact_sim::scripted::TestClient;
use mcpact_spec::Revision;
use serde_json::json;
use tokio::time::Instant;

use crate::rig::{ERAS, Server, call, client, config, form, gateway, load};
use crate::scripted_server::Role;

const REST: Duration = Duration::from_secs(2);

async fn cancel(peer: &mut TestClient, id: u64) {
    let params = json!({"requestId": id});
    peer.notify("notifications/cancelled", params).await;
}

/// For two seconds after a cancelled call that allows input requests, the connection accepts no other such call, and a late
/// request of the server reaches no client. Calls without input requests are not delayed.
#[tokio::test(start_paused = true)]
async fn shared_connection_pauses_after_a_cancelled_call() {
    for revision in ERAS {
        let mut server = Server::lines(Role::new(Revision::V2025_11_25));
        let shared = config("one", "strategy = \"stateless\"\nmax_instances = 1\n");
        let gateway = gateway(shared, &[("one", &server)]);
        let can = json!({"elicitation": {}});
        let mut ann = client(&gateway, revision, can.clone()).await;
        let mut bob = client(&gateway, revision, can).await;

        ann.request(1, "tools/call", call()).await;
        let cancelled = server.next_of("tools/call").await;
        cancel(&mut ann, 1).await;
        server.next_of("notifications/cancelled").await;
        let since = Instant::now();

        bob.request(1, "tools/call", call()).await;
        cancelled.ask("late", "elicitation/create", form("for ann"));
        let refused = server.next().await;
        assert_eq!(refused.message["id"], "late", "{revision}");
        assert!(refused.message["error"].is_object(), "{revision}");
        let complete = json!({"ref": {"type": "ref/prompt", "name": "s__p"},
            "argument": {"name": "a", "value": "b"}});
        bob.request(2, "completion/complete", complete).await;
        let completed = server.next_of("completion/complete").await;
        assert_eq!(completed.connection, cancelled.connection, "{revision}");
        completed.result(json!({"resultType": "complete", "completion": {"values": []}}));
        assert_eq!(bob.recv().await["id"], 2, "{revision}");
        assert!(
            since.elapsed() < REST,
            "{revision}: only askable calls wait"
        );
        assert_eq!(load(&gateway), (0, 1), "{revision}");

        let next = server.next_of("tools/call").await;
        assert_eq!(next.connection, cancelled.connection, "{revision}");
        let waited = since.elapsed();
        assert!(waited >= REST, "{revision}: {waited:?}");
        assert!(
            waited < REST + Duration::from_millis(100),
            "{revision}: {waited:?}"
        );
        next.text("done");
        let answer = bob.recv().await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{revision}");
        ann.expect_silence().await;
        assert_eq!(load(&gateway), (0, 0), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn shared_connection_does_not_pause_after_a_response() {
    for revision in ERAS {
        let mut server = Server::lines(Role::new(Revision::V2025_11_25));
        let shared = config("one", "strategy = \"stateless\"\nmax_instances = 1\n");
        let gateway = gateway(shared, &[("one", &server)]);
        let can = json!({"elicitation": {}});
        let mut ann = client(&gateway, revision, can.clone()).await;
        let mut bob = client(&gateway, revision, can).await;
        ann.request(1, "tools/call", call()).await;
        let said = server.next_of("tools/call").await;
        bob.request(1, "tools/call", call()).await;
        let since = Instant::now();
        said.text("done");
        let next = server.next_of("tools/call").await;
        assert_eq!(next.connection, said.connection, "{revision}");
        assert!(since.elapsed() < REST, "{revision}");
        next.text("done");
        for peer in [&mut ann, &mut bob] {
            assert!(peer.recv().await["result"].is_object(), "{revision}");
        }
    }
}
