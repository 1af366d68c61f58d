//! A gateway whose config leads back to it.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::json;

use crate::house::{House, builtin, request, until};

/// The config of a gateway with servers that lead to this address.
fn config(listen: &str, url: &str) -> String {
    let program = env!("CARGO_BIN_EXE_mcpact");
    let local = builtin("local");
    format!(
        "[gateway]\nlisten = \"{listen}\"\n[servers.direct]\nurl = \"{url}/mcp\"\n\
         [servers.around]\ncommand = \"{program}\"\nargs = [\"bridge\", \"{url}/servers/local/mcp\"]\n{local}"
    )
}

/// What clients are told to paste may stand in the config that the gateway reads: it is left out, from the start on
/// and when it is added, and both `check` and the log say so.
#[test]
fn a_gateway_does_not_serve_itself() {
    let house = House::new(&builtin("local"));
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    let url = format!("http://localhost:{}", address.port());
    fs::write(house.path("self.toml"), config(&address.to_string(), &url)).unwrap();
    let (code, printed, _) = house.run(&["check", "self.toml"]);
    assert_eq!(code, 0, "{printed}");
    let told = format!("a gateway on `{address}` would serve itself here");
    assert_eq!(printed.matches(&told).count(), 2, "{printed}");
    drop(free);

    let names = |status: &serde_json::Value| {
        let servers = status["servers"].as_array().unwrap().iter();
        servers
            .map(|server| server["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let gateway = house.serve_as_configured("self.toml");
    assert_eq!(names(&house.status()), ["local"]);
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("local__echo"), "{listed:?}");
    assert!(!listed.body.contains("direct__"), "{listed:?}");
    let (_, printed, _) = house.run(&["logs"]);
    for server in ["around", "direct"] {
        let told = format!("`{server}` is this gateway itself, and is left out");
        assert!(printed.contains(&told), "{printed}");
    }
    drop(gateway);

    // The port of this one is known when it listens.
    let gateway = house.serve();
    let text = config("127.0.0.1:0", &gateway.origin);
    fs::write(house.path("mcpact.toml"), text).unwrap();
    let (code, printed, told) = house.run(&["reload", "--json"]);
    assert_eq!(code, 0, "{told}");
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["unchanged"], json!(["local"]), "{printed}");
    assert_eq!(report["started"], json!([]), "{printed}");
    assert_eq!(names(&house.status()), ["local"]);
}

/// Leads everybody who comes to another address, for as long as the test lasts.
fn relay_to(address: SocketAddr) -> SocketAddr {
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

/// Where no address tells that a server is the gateway itself, its requests do: they are refused, and the log says so.
#[test]
fn a_gateway_knows_its_own_requests() {
    let house = House::new(&builtin("local"));
    let gateway = house.serve();
    let address = gateway.origin.strip_prefix("http://").unwrap();
    let around = relay_to(address.parse().unwrap());
    let config = format!(
        "{}[servers.around]\nurl = \"http://{around}/mcp\"\n",
        builtin("local")
    );
    house.configure(&config);
    assert_eq!(house.run(&["reload"]).0, 0);
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("local__echo"), "{listed:?}");
    assert!(!listed.body.contains("around__"), "{listed:?}");
    let why = || house.status()["servers"][0]["last_error"]["why"].to_string();
    until(|| why().contains("or is this very one"));
    let (_, printed, _) = house.run(&["logs"]);
    let told = "goes round in a circle was refused: this gateway serves the one that asks";
    assert!(printed.contains(told), "{printed}");
}
