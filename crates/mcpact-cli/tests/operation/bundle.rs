//! Diagnostic bundle.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{Harness, wait_until};

/// A server that logs its arguments and token, and never responds.
const TALKER: &str = "#!/bin/sh\necho \"given $* and $TOKEN\" >&2\necho \"seen canary-of-an-address\" >&2\ncat > /dev/null\n";

const CANARIES: [&str; 9] = [
    "canary-of-the-gateway",
    "canary-of-a-variable",
    "canary-of-a-file",
    "canary-of-an-option",
    "canary-of-a-header",
    "canary-of-an-address",
    "canary-of-an-argument",
    "canary-of-a-password",
    "canary-named-token-6a1",
];

/// It has versions, config, states, every start with its last step, and the last log lines. Config
/// secrets are masked even in server output.
#[test]
fn bundle_contains_diagnostics_but_no_secrets() {
    let harness = Harness::new("");
    let [
        token,
        variable,
        file,
        option,
        header,
        address,
        sent,
        password,
        named,
    ] = CANARIES;
    fs::write(harness.path("secret"), file).unwrap();
    let talker = harness.path("talker");
    fs::write(&talker, TALKER).unwrap();
    fs::set_permissions(&talker, fs::Permissions::from_mode(0o755)).unwrap();
    harness.configure(&format!(
        "token = \"{token}\"\ntokens = {{ ada = \"{named}\" }}\n[servers.talker]\ncommand = \"{}\"\nmin_ready = 1\n\
         args = [\"--from=${{file:secret}}\", \"--api-key\", \"{option}\", \"--header\", \
         \"Authorization: Bearer {sent}\", \"postgres://ada:{password}@host/db\"]\nenv = {{ TOKEN = \"{variable}\" }}\n\
         [servers.far]\nurl = \"http://127.0.0.1:1/mcp?k={address}\"\n\
         headers = {{ Authorization = \"Bearer {header}\" }}\nmin_ready = 1\n",
        talker.display()
    ));
    let _gateway = harness.serve();
    let bundle = || {
        let path = harness.path("bundle.json");
        let (code, _, stderr) = harness.run(&["status", "--bundle", path.to_str().unwrap()]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("before you share it"), "{stderr}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it is for its owner alone");
        fs::read_to_string(path).unwrap()
    };
    let is_reported = |text: &str| text.contains("given ") && text.contains("start_failure");
    wait_until(|| is_reported(&bundle()));
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
    assert_eq!(found["config"]["gateway"]["tokens"]["ada"], "***");
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
    let (code, stdout, _) = harness.run(&["status", "--bundle", "-"]);
    assert!(code == 0 && stdout.starts_with('{'), "{stdout}");
}
