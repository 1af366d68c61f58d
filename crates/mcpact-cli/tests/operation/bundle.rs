//! Everything that helps to find out what is wrong, in one file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::house::{House, until};

/// A server that tells its log everything that it was given, and never answers.
const TALKER: &str = "#!/bin/sh\necho \"given $* and $TOKEN\" >&2\necho \"seen canary-of-an-address\" >&2\ncat > /dev/null\n";

const CANARIES: [&str; 8] = [
    "canary-of-the-gateway",
    "canary-of-a-variable",
    "canary-of-a-file",
    "canary-of-an-option",
    "canary-of-a-header",
    "canary-of-an-address",
    "canary-of-an-argument",
    "canary-of-a-password",
];

/// One document has versions, config, states, every start with the step where it hangs, and the last
/// lines of the logs; no secret of the config is in it, even if a server tells it.
#[test]
fn a_bundle_tells_everything_but_secrets() {
    let house = House::new("");
    let [
        token,
        variable,
        file,
        option,
        header,
        address,
        sent,
        password,
    ] = CANARIES;
    fs::write(house.path("secret"), file).unwrap();
    let talker = house.path("talker");
    fs::write(&talker, TALKER).unwrap();
    fs::set_permissions(&talker, fs::Permissions::from_mode(0o755)).unwrap();
    house.configure(&format!(
        "token = \"{token}\"\n[servers.talker]\ncommand = \"{}\"\nmin_ready = 1\n\
         args = [\"--from=${{file:secret}}\", \"--api-key\", \"{option}\", \"--header\", \
         \"Authorization: Bearer {sent}\", \"postgres://ada:{password}@host/db\"]\nenv = {{ TOKEN = \"{variable}\" }}\n\
         [servers.far]\nurl = \"http://127.0.0.1:1/mcp?k={address}\"\n\
         headers = {{ Authorization = \"Bearer {header}\" }}\nmin_ready = 1\n",
        talker.display()
    ));
    let _gateway = house.serve();
    let bundle = || {
        let path = house.path("bundle.json");
        let (code, _, told) = house.run(&["status", "--bundle", path.to_str().unwrap()]);
        assert_eq!(code, 0, "{told}");
        assert!(told.contains("before you show it"), "{told}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it is for its owner alone");
        fs::read_to_string(path).unwrap()
    };
    let is_told = |text: &str| text.contains("given ") && text.contains("start_failure");
    until(|| is_told(&bundle()));
    let text = bundle();
    for canary in CANARIES {
        assert!(!text.contains(canary), "{canary}: {text}");
    }
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        found["config"]["servers"]["talker"]["args"][0],
        "--from=${file:secret}"
    );
    assert_eq!(found["config"]["servers"]["talker"]["args"][2], "***");
    assert_eq!(found["config"]["servers"]["talker"]["env"]["TOKEN"], "***");
    assert_eq!(
        found["config"]["servers"]["far"]["headers"]["Authorization"],
        "***"
    );
    assert_eq!(found["config"]["gateway"]["token"], "***");
    let attempts = found["attempts"].as_array().unwrap();
    let of = |server: &str| {
        attempts
            .iter()
            .find(|attempt| attempt["server"] == server)
            .unwrap()
    };
    let hangs = of("talker");
    assert_eq!(hangs["state"], "handshaking", "{hangs}");
    assert!(hangs["state_seconds"].is_u64());
    let steps = hangs["steps"].as_array().unwrap().iter();
    let steps: Vec<&str> = steps.map(|step| step["event"].as_str().unwrap()).collect();
    assert_eq!(steps, ["start_attempt", "spawned"]);
    let fails = of("far");
    let last = fails["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["event"], "start_failure", "{fails}");
    let servers = found["status"]["servers"].as_array().unwrap();
    let far = servers
        .iter()
        .find(|server| server["name"] == "far")
        .unwrap();
    assert!(far["last_error"]["why"].is_string(), "{far}");
    let lines = found["log"].as_array().unwrap();
    let said = lines
        .iter()
        .find(|line| line["server"] == "talker" && line["event"].is_null());
    assert_eq!(
        said.unwrap()["text"],
        "given --from=*** --api-key *** --header Authorization: *** postgres://ada:***@host/db and ***"
    );
    let (code, printed, _) = house.run(&["status", "--bundle", "-"]);
    assert!(code == 0 && printed.starts_with('{'), "{printed}");
}
