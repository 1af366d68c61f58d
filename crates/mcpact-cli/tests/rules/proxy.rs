//! `proxy` and `no_proxy` of a server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_spec::Revision;

use crate::harness::{Harness, Running, client};

/// Request lines that a proxy received. It reaches no server.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<String>>>);

impl Received {
    fn has(&self, host: &str) -> bool {
        let lines = self.0.lock().unwrap();
        lines.iter().any(|line| line.contains(host))
    }
}

fn start_proxy() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Received::default();
    let lines = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            lines.0.lock().unwrap().push(line);
            let answer =
                b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.get_mut().write_all(answer);
        }
    });
    (url, received)
}

/// K3, T7: each server uses the proxy of its own key; without the key that of the environment, as before.
#[tokio::test(flavor = "multi_thread")]
async fn each_server_uses_its_own_proxy() {
    let (own, of_own) = start_proxy();
    let (system, of_system) = start_proxy();
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        &format!(
            "[gateway]\nlist_seconds = 1\n\
             [servers.own]\nurl = \"http://own.example/mcp\"\nproxy = \"{own}\"\n\
             [servers.excepted]\nurl = \"http://excepted.example/mcp\"\nproxy = \"{own}\"\nno_proxy = [\"excepted.example\"]\n\
             [servers.disabled]\nurl = \"http://disabled.example/mcp\"\nproxy = \"disabled\"\n\
             [servers.system]\nurl = \"http://system.example/mcp\"\n"
        ),
    );
    let mut command =
        harness.command(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
    command.env("HTTP_PROXY", &system).env_remove("NO_PROXY");
    let running = Running::start(command);
    let client = client(Revision::V2025_11_25);
    let connected = client.connect(running.url.clone()).await.unwrap();
    let _ = connected.list_tools().await;
    for _ in 0..200 {
        if of_own.has("own.example") && of_system.has("system.example") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(of_own.has("http://own.example/mcp"));
    assert!(of_system.has("http://system.example/mcp"));
    for received in [&of_own, &of_system] {
        assert!(!received.has("excepted.example") && !received.has("disabled.example"));
    }
}
