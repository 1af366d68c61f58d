//! Loops of a gateway to itself.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::json;

use crate::harness::{Harness, builtin, request, wait_until};

/// Returns a config with servers at this URL.
fn config(listen: &str, url: &str) -> String {
    let program = env!("CARGO_BIN_EXE_mcpact");
    let local = builtin("local");
    format!(
        "[gateway]\nlisten = \"{listen}\"\n[servers.direct]\nurl = \"{url}/mcp\"\n\
         [servers.around]\ncommand = \"{program}\"\nargs = [\"bridge\", \"{url}/servers/local/mcp\"]\n{local}"
    )
}

/// At startup and after a reload; `check` and the log report it.
#[test]
fn own_url_in_the_config_is_skipped() {
    let harness = Harness::new(&builtin("local"));
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    let url = format!("http://localhost:{}", address.port());
    fs::write(
        harness.path("self.toml"),
        config(&address.to_string(), &url),
    )
    .unwrap();
    let (code, stdout, _) = harness.run(&["check", "self.toml"]);
    assert_eq!(code, 0, "{stdout}");
    let message = format!("this server is the gateway itself on `{address}`");
    assert_eq!(stdout.matches(&message).count(), 2, "{stdout}");
    drop(free);

    let names = |status: &serde_json::Value| {
        let servers = status["servers"].as_array().unwrap().iter();
        servers
            .map(|server| server["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let gateway = harness.serve_as_configured("self.toml");
    assert_eq!(names(&harness.status()), ["local"]);
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("local__echo"), "{listed:?}");
    assert!(!listed.body.contains("direct__"), "{listed:?}");
    let (_, stdout, _) = harness.run(&["logs"]);
    for server in ["around", "direct"] {
        let message = format!("server `{server}` skipped: its URL is this gateway");
        assert!(stdout.contains(&message), "{stdout}");
    }
    drop(gateway);

    // Port 0: the address is known only after the start.
    let gateway = harness.serve();
    let text = config("127.0.0.1:0", &gateway.origin);
    fs::write(harness.path("mcpact.toml"), text).unwrap();
    let (code, stdout, stderr) = harness.run(&["reload", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["unchanged"], json!(["local"]), "{stdout}");
    assert_eq!(report["started"], json!([]), "{stdout}");
    assert_eq!(names(&harness.status()), ["local"]);
}

/// Starts a TCP relay to another address.
fn start_relay(address: SocketAddr) -> SocketAddr {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = door.local_addr().unwrap();
    let carry = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    };
    std::thread::spawn(move || {
        for guest in door.incoming().map_while(Result::ok) {
            let Ok(there) = TcpStream::connect(address) else {
                return;
            };
            carry(guest.try_clone().unwrap(), there.try_clone().unwrap());
            carry(there, guest);
        }
    });
    own
}

/// The log reports the loop.
#[test]
fn own_requests_through_a_relay_are_refused() {
    let harness = Harness::new(&builtin("local"));
    let gateway = harness.serve();
    let address = gateway.origin.strip_prefix("http://").unwrap();
    let around = start_relay(address.parse().unwrap());
    let config = format!(
        "{}[servers.around]\nurl = \"http://{around}/mcp\"\n",
        builtin("local")
    );
    harness.configure(&config);
    assert_eq!(harness.run(&["reload"]).0, 0);
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("local__echo"), "{listed:?}");
    assert!(!listed.body.contains("around__"), "{listed:?}");
    let why = || harness.status()["servers"][0]["last_error"]["why"].to_string();
    wait_until(|| why().contains("this server routes back to this gateway"));
    let (_, stdout, _) = harness.run(&["logs"]);
    let message = "proxy loop detected; request refused";
    assert!(stdout.contains(message), "{stdout}");
}
