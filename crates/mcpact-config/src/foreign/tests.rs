use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;

use crate::config::{Launch, NameStyle, Probe, ProxyConfig, Strategy};
use crate::read::tests::{found_in, taken_from};
use crate::{Catalog, Secret, ServerConfig};

fn program(server: &ServerConfig) -> Vec<&str> {
    match &server.launch {
        Launch::Command(command) => std::iter::once(&command.program)
            .chain(&command.args)
            .map(|text| text.value())
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn env<'c>(server: &'c ServerConfig, name: &str) -> &'c str {
    match &server.launch {
        Launch::Command(command) => command.env[name].reveal(),
        other => panic!("{other:?}"),
    }
}

fn address(server: &ServerConfig) -> (&str, Vec<(&str, &str)>) {
    match &server.launch {
        Launch::Url(url) => {
            let headers = url.headers.iter();
            let headers = headers.map(|(name, value)| (name.as_str(), value.reveal()));
            (url.url.value(), headers.collect())
        }
        other => panic!("{other:?}"),
    }
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.servers.keys().map(|name| name.as_str()).collect()
}

/// `mcpServers`, used by Claude Desktop, Claude Code, Cursor, Windsurf, Cline and others.
#[test]
fn mcp_servers_table_is_read() {
    let catalog = taken_from(
        "claude_desktop_config.json",
        r#"{
  // a comment
  "globalShortcut": "",
  "mcpServers": {
    "files": {"type": "stdio", "command": "npx", "args": ["-y", "server-files", "${userHome}"],
              "env": {"A": "${TOKEN}", "PORT": 80, "NONE": null}, "autoApprove": ["read"], "timeout": 60},
    "My Tickets": {"type": "http", "url": "https://t.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
    "surf": {"serverUrl": "https://s.example/sse", "disabled": true},
    "gem": {"httpUrl": "https://g.example/mcp", "args": [], "trust": true, "includeTools": ["a"], "excludeTools": ["b"]},
  },
}"#,
    );
    assert_eq!(names(&catalog), ["My-Tickets", "files", "gem", "surf"]);
    let files = &catalog.servers["files"];
    assert_eq!(program(files), ["npx", "-y", "server-files", "/home/ada"]);
    assert_eq!((env(files, "A"), env(files, "PORT")), ("hunter2", "80"));
    let (url, headers) = address(&catalog.servers["My-Tickets"]);
    assert_eq!(url, "https://t.example/mcp");
    assert_eq!(headers, [("Authorization", "Bearer hunter2")]);
    assert!(!catalog.servers["surf"].enabled);
    let tools = &catalog.servers["gem"].tools;
    assert_eq!(
        (&tools.only[..], &tools.hidden[..]),
        (&["a".to_owned()][..], &["b".to_owned()][..])
    );
}

/// VS Code, `mcp.json` and settings.
#[test]
fn vs_code_is_read() {
    let text = r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "a", "cwd": "${workspaceFolder}"}}}"#;
    let Launch::Command(command) = taken_from("mcp.json", text).servers["a"].launch.clone() else {
        panic!("no command");
    };
    assert_eq!(command.cwd.unwrap().value(), "/work/shop");
    let text = r#"{"editor.tabSize": 2, "mcp": {"servers": {"a": {"command": "a"}}}}"#;
    assert_eq!(names(&taken_from("settings.json", text)), ["a"]);
    let both = r#"{"mcpServers": {"a": {"command": "a"}}, "servers": {"b": {"command": "b"}, "a": {"command": "x"}}}"#;
    let catalog = taken_from("mcp.json", both);
    assert_eq!(names(&catalog), ["a", "b"]);
    assert_eq!(program(&catalog.servers["a"]), ["a"]);
    let asking = r#"{"servers": {"a": {"command": "a", "env": {"K": "${input:key}"}}}}"#;
    let found = found_in("mcp.json", asking);
    assert!(
        found[0].contains("mcp.json:1:") && found[0].contains("prompts the user"),
        "{found:?}"
    );
}

/// Codex keeps servers in TOML and refers to variables by name.
#[test]
fn codex_is_read() {
    let catalog = taken_from(
        "config.toml",
        r#"
model = "gpt"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
startup_timeout_sec = 20
tool_timeout_sec = 30.5
enabled_tools = ["search"]
[mcp_servers.remote]
url = "https://r.example/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-A" = "1" }
env_http_headers = { "X-B" = "TOKEN" }
enabled = false
[mcp_servers.remote2]
url = "https://r.example/mcp"
bearer_token_env_var = "TOKEN"
"#,
    );
    assert_eq!(catalog.servers["docs"].run.start_timeout.as_secs(), 20);
    assert_eq!(catalog.servers["docs"].run.call_timeout.as_millis(), 30_500);
    assert!(!catalog.servers["remote"].enabled);
    let (_, headers) = address(&catalog.servers["remote2"]);
    assert_eq!(headers, [("Authorization", "Bearer hunter2")]);
}

/// Codex refers to variables by bare names, also in tables; the hint for an unset one fits that syntax.
#[test]
fn codex_variables_are_names() {
    let text = "[mcp_servers.a]\ncommand = \"a\"\nenv_vars = [\"HOME\", { name = \"TOKEN\", source = \"local\" }]\n";
    let catalog = taken_from("config.toml", text);
    let server = &catalog.servers["a"];
    assert_eq!(
        (env(server, "HOME"), env(server, "TOKEN")),
        ("/home/ada", "hunter2")
    );
    for keys in [
        "bearer_token_env_var = \"NOPE\"",
        "env_http_headers = { X = \"NOPE\" }",
    ] {
        let text = format!("[mcp_servers.a]\nurl = \"https://a.example/\"\n{keys}\n");
        let found = found_in("config.toml", &text);
        let told = found.iter().find(|line| line.contains("error"));
        let told = told.unwrap();
        assert!(
            told.ends_with("variable `NOPE` is not set; set it"),
            "{told}"
        );
    }
}

/// Disabled servers cause no warnings.
#[test]
fn disabled_servers_cause_no_warnings() {
    for server in [
        r#"{"disabled": true}"#,
        r#"{"enabled": false, "type": "ws", "url": "wss://b.example/"}"#,
        r#"{"disabled": true, "command": "no-such", "args": null, "env": {"LD_PRELOAD": "${NOPE}"}}"#,
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "a"}}, "b": {server}}}}}"#);
        let found = found_in("x.json", &text);
        let is_note = |line: &String| line.contains(": note: ");
        assert!(found.iter().all(is_note), "{server}: {found:?}");
        assert!(taken_from("x.json", &text).wrong.is_empty(), "{server}");
    }
}

/// Problems name the key as it is written in the file.
#[test]
fn problems_name_the_original_key() {
    for (pair, expected) in [
        (
            r#""disabled": "true""#,
            "`disabled` must be true or false, not a string",
        ),
        (
            r#""enabled": "true""#,
            "`enabled` must be true or false, not a string",
        ),
        (
            r#""disabledTools": 3"#,
            "`disabledTools` must be a list of strings, not a number",
        ),
        (
            r#""excludeTools": [{}]"#,
            "`excludeTools` must be a list of strings, but contains a table",
        ),
        (
            r#""environment": {"A": {}}"#,
            "`environment.A` must be a string, not a table",
        ),
        (r#""workingDirectory": """#, "`workingDirectory` is empty"),
        (
            r#""maxInstances": "x""#,
            "`maxInstances` must be an integer",
        ),
        (
            r#""idleSeconds": -1"#,
            "`idleSeconds` must be a number of seconds",
        ),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "a", {pair}}}}}}}"#);
        let found = found_in("x.json", &text);
        let is_told = |line: &String| line.contains(expected);
        assert!(found.iter().any(is_told), "{pair}: {found:?}");
    }
}

/// Null values are reported everywhere.
#[test]
fn null_values_are_reported() {
    for (name, text, expected) in [
        (".mcp.json", "null", "a config must be a table"),
        (
            ".mcp.json",
            r#"{"mcpServers": null}"#,
            "no servers configured",
        ),
        (
            ".mcp.json",
            r#"{"mcpServers": {"a": null}}"#,
            "1:17: warning: `a` is not a server and is ignored",
        ),
        (
            ".mcp.json",
            r#"{"mcpServers": {"a": {"command": "npx", "args": null}}}"#,
            "1:41: warning: `args` has no value in server `a`",
        ),
        (
            "mcpact.yaml",
            "servers:\n  a:\n    command: npx\n    args:\n",
            "4:5: error: `args` has no value in server `a`; set a value or remove the key",
        ),
        (
            "mcpact.json",
            r#"{"gateway": {"commands": {"allow": null}}}"#,
            "1:27: error: `allow` has no value in `[gateway.commands]`",
        ),
        (
            "x.json",
            r#"{"gateway": null, "servers": {}}"#,
            "1:2: error: `gateway` has no value in the config",
        ),
        (
            ".mcp.json",
            r#"{"routeTimeoutSeconds": null, "mcpServers": {"a": {"command": "npx"}}}"#,
            "1:2: warning: `routeTimeoutSeconds` has no value",
        ),
    ] {
        let found = found_in(name, text);
        assert!(
            found.iter().any(|found| found.contains(expected)),
            "{text}: {found:?}"
        );
    }
    assert_eq!(found_in("mcpact.yaml", ""), Vec::<String>::new());
}

/// Zed, opencode, Amp, Goose and Continue.
#[test]
fn other_formats_are_read() {
    let zed = r#"{"context_servers": {
        "a": {"source": "custom", "command": {"path": "a", "args": ["b"], "env": {"C": "d"}}},
        "b": {"settings": {}}, "c": {"enabled": true, "command": "c"}}}"#;
    let catalog = taken_from("settings.json", zed);
    assert_eq!(names(&catalog), ["a", "c"]);
    assert_eq!(program(&catalog.servers["a"]), ["a", "b"]);
    assert_eq!(env(&catalog.servers["a"], "C"), "d");

    let opencode = r#"{"$schema": "x", "mcp": {"a": {"type": "local", "command": ["bun", "x", "s"],
        "environment": {"K": "{env:TOKEN}"}}, "b": {"type": "remote", "url": "https://b.example/"}}}"#;
    let catalog = taken_from("opencode.json", opencode);
    assert_eq!(program(&catalog.servers["a"]), ["bun", "x", "s"]);
    assert_eq!(env(&catalog.servers["a"], "K"), "hunter2");

    let amp = r#"{"amp.mcpServers": {"a": {"command": "a"}}}"#;
    assert_eq!(names(&taken_from("settings.json", amp)), ["a"]);

    let goose = "extensions:\n  developer:\n    type: builtin\n    enabled: true\n  a:\n    type: stdio\n    cmd: uvx\n    args: [a]\n    envs: {B: c}\n    enabled: true\n    timeout: 300\n";
    let catalog = taken_from("config.yaml", goose);
    assert_eq!(names(&catalog), ["a"]);
    assert_eq!(program(&catalog.servers["a"]), ["uvx", "a"]);

    let listed =
        "name: x\nmcpServers:\n  - name: Ada's files\n    command: npx\n    args: [-y, 5]\n";
    let catalog = taken_from("config.yaml", listed);
    assert_eq!(program(&catalog.servers["Ada-s-files"]), ["npx", "-y", "5"]);

    let gemini = r#"{"mcpServers": {"a": {"command": "a", "env": {"K": "$TOKEN"}}}}"#;
    let catalog = taken_from("/home/ada/.gemini/settings.json", gemini);
    assert_eq!(env(&catalog.servers["a"], "K"), "hunter2");
    let catalog = taken_from("/home/ada/.cursor/mcp.json", gemini);
    assert_eq!(env(&catalog.servers["a"], "K"), "$TOKEN");
    for key in [r#""trust": true"#, r#""httpUrl": null"#] {
        let known = gemini.replace(r#""env""#, &format!(r#"{key}, "env""#));
        let catalog = taken_from("/home/ada/shop/.mcp.json", &known);
        assert_eq!(env(&catalog.servers["a"], "K"), "hunter2", "{key}");
    }
}

/// Continue: request headers, `apiKey` (which wins over headers) and secrets by name.
#[test]
fn continue_headers_and_keys_are_read() {
    let text = "\
mcpServers:
  - name: a
    type: streamable-http
    url: https://a.example/mcp
    apiKey: ${{ secrets.TOKEN }}
    requestOptions:
      verifySsl: false
      headers: {authorization: Basic x, X-Team: '${{secrets.TOKEN}}s'}
  - name: b
    url: https://b.example/mcp
    requestOptions: {headers: {Authorization: 'Bearer ${TOKEN}'}}
    apiKey: ''
  - name: c
    command: c
    apiKey: k
    env: {K: '${{ inputs.K }}'}
";
    let found = found_in("config.yaml", text);
    let told = |words: &str| found.iter().any(|line| line.contains(words));
    assert!(told("unused keys of server `a`: `verifySsl`"), "{found:?}");
    assert!(told("unused keys of server `c`: `apiKey`"), "{found:?}");
    assert!(told("error: `{ inputs.K ` is not a variable"), "{found:?}");
    let catalog = taken_from("config.yaml", text.split("  - name: c").next().unwrap());
    let headers = |name: &str| address(&catalog.servers[name]).1;
    let of_a = [("Authorization", "Bearer hunter2"), ("X-Team", "hunter2s")];
    assert_eq!(headers("a"), of_a);
    assert_eq!(headers("b"), [("Authorization", "Bearer hunter2")]);
}

/// Catalog of mcpv, with all server and instance settings.
#[test]
fn mcpv_catalogs_are_read() {
    let text = r#"
routeTimeoutSeconds: 10
pingIntervalSeconds: 0
serverInitRetryBaseSeconds: 2
toolNamespaceStrategy: "flat"
reloadMode: lenient
servers:
  - name: weather
    transport: stdio
    cmd: ["node", "./build/index.js"]
    env: {KEY: "${TOKEN}"}
    cwd: /srv
    tags: [a, b]
    idleSeconds: 60
    maxConcurrent: 1
    strategy: stateful
    sessionTTLSeconds: 30
    disabled: false
    minReady: 0
    activationMode: always-on
    drainTimeoutSeconds: 5
    protocolVersion: "2025-11-25"
    exposeTools: [get]
  - name: remote
    transport: streamable_http
    http:
      endpoint: https://r.example/mcp
      headers: {A: b}
      maxRetries: 3
  - name: old
    cmd: ["old"]
    sticky: false
    persistent: true
"#;
    let catalog = taken_from("catalog.yaml", text);
    assert_eq!(catalog.gateway.names, NameStyle::Flat);
    let weather = &catalog.servers["weather"];
    assert_eq!(program(weather), ["node", "./build/index.js"]);
    assert_eq!(weather.era, EraMode::Pin(Revision::V2025_11_25));
    assert_eq!(weather.tags.len(), 2);
    assert_eq!(weather.tools.only, ["get"]);
    let run = &weather.run;
    assert_eq!(run.strategy, Strategy::Stateful);
    let seconds = [
        run.idle,
        run.session,
        run.drain,
        run.call_timeout,
        run.restarts.backoff,
    ];
    assert_eq!(seconds.map(|time| time.as_secs()), [60, 30, 5, 10, 2]);
    assert_eq!((run.max_concurrent, run.min_ready), (1, 1));
    assert_eq!(
        address(&catalog.servers["remote"]),
        ("https://r.example/mcp", vec![("A", "b")])
    );
    assert_eq!(catalog.servers["old"].run.strategy, Strategy::Persistent);
}

/// A catalog of mcpv with one server, and the given keys of the catalog and of the server.
fn catalog(root: &str, server: &str) -> String {
    format!(
        "{root}\nservers:\n- name: a\n  {}\n",
        server.replace('\n', "\n  ")
    )
}

/// K3: a key of mcpv that protects something is never dropped in silence, and the error names its replacement.
#[test]
fn unsupported_keys_of_mcpv_are_refused() {
    for (root, server, expected) in [
        (
            "plugins: [{name: p, category: audit, required: true, cmd: [p]}]",
            "cmd: [a]",
            "`plugins` of mcpv is not supported: requests would pass without them; write each plugin as a filter program in `[filters.NAME]`",
        ),
        (
            "plugins: [{name: p, required: false}]",
            "cmd: [a]",
            "`plugins` of mcpv",
        ),
        (
            "observability: {listenAddress: '0.0.0.0:9090'}",
            "cmd: [a]",
            "set `listen` in [gateway]",
        ),
        (
            "rpc: {tls: {enabled: true}}",
            "cmd: [a]",
            "set `listen`, `token`, `tls_cert`",
        ),
        (
            "subAgent: {enabledTags: [x], model: m}",
            "cmd: [a]",
            "list the tools in `exposeTools`",
        ),
        (
            "subAgent: {model: gpt, provider: openai}",
            "cmd: [a]",
            "`subAgent` of mcpv is not supported",
        ),
        (
            "reloadMode: strict",
            "cmd: [a]",
            "set `reloadMode: lenient`",
        ),
        (
            "exposeTools: perhaps",
            "cmd: [a]",
            "`exposeTools` must be true or false",
        ),
        (
            "exposeTool: false",
            "cmd: [a]",
            "unknown key `exposeTool` in a catalog of mcpv; did you mean `exposeTools`?",
        ),
        (
            "defaultActivationMode: sometimes",
            "cmd: [a]",
            "unknown key or value of `defaultActivationMode` in the catalog; use `on-demand` or `always-on`",
        ),
        (
            "",
            "cmd: [a]\nexposTools: [x]",
            "unknown key or value of `exposTools` in server `a`",
        ),
        (
            "",
            "cmd: [a]\ntransport: pigeon",
            "unknown key or value of `transport`",
        ),
        (
            "",
            "http: {endpoint: 'https://a.example/', proxy: {no: 1}}",
            "unknown key or value of `proxy.no` in server `a`; correct it or remove it",
        ),
        ("", "transport: stdio", "server `a` has no `cmd`"),
        (
            "",
            "cmd: []",
            "server `a` has neither `cmd` nor `http.endpoint`",
        ),
        (
            "",
            "transport: streamable_http\ncmd: [a]",
            "server `a` has no `http.endpoint`",
        ),
        ("", "http: {endpoint: ''}", "`endpoint` is empty"),
        ("", "cmd: [a]\n- cmd: [b]", "server without a name"),
        (
            "",
            "cmd: [a]\n- {name: '', cmd: [b]}",
            "server without a name",
        ),
        (
            "",
            "cmd: [a]\nmaxConcurrent: -1",
            "`maxConcurrent` must be an integer",
        ),
        (
            "",
            "cmd: [a]\nsessionTTLSeconds: -1",
            "`sessionTTLSeconds` must be a number",
        ),
        (
            "",
            "cmd: [/bin/sh, -c, node x.js]",
            "`/bin/sh -c` runs a shell script; start the program itself, with each argument as a string of its own; or add the server to a `mcpact.toml` with `shells",
        ),
        (
            "proxy: {mode: custom}",
            "http: {endpoint: 'https://a.example/'}",
            "unknown key or value of `proxy.mode` in the catalog; use `inherit`, `disabled`, `system`, or `custom` with a `url`",
        ),
        (
            "",
            "http: {endpoint: 'https://a.example/', proxy: {mode: weird}}",
            "unknown key or value of `proxy.mode` in server `a`; use `inherit`",
        ),
        (
            "proxy: {mode: custom, url: 'http://p.example', noProxy: [b.example]}",
            "http: {endpoint: 'https://a.example/'}",
            "unknown key or value of `proxy.noProxy` in the catalog; write one string",
        ),
        (
            "proxy: {url: p}",
            "http: {endpoint: 'https://a.example/'}",
            "`proxy` is not the URL of a proxy",
        ),
        (
            "bar: 1",
            "cmd: [a]",
            "unknown key `bar` in a catalog of mcpv; remove it",
        ),
        (
            "proxy: {mode: system, noProxy: a.example}",
            "http: {endpoint: 'https://a.example/'}",
            "`no_proxy` works only with the URL of a proxy",
        ),
    ] {
        let text = catalog(root, &server.replace("\n- ", "\n@- ")).replace("  @- ", "- ");
        let found = found_in("catalog.yaml", &text);
        let is_expected = |line: &String| line.contains(": error: ") && line.contains(expected);
        assert!(found.iter().any(is_expected), "{text}: {found:#?}");
    }
}

/// Keys of mcpv without an effect are noted; switched-off ones are accepted.
#[test]
fn keys_without_effect_are_noted() {
    let root = "toolRefreshSeconds: 60\nbootstrapMode: metadata\nclientCheckSeconds: 5\nplugins: [{name: p, disabled: true}]\n\
        subAgent: {enabled: false, model: m}\nexposeTools: true\nreloadMode: lenient";
    let found = found_in("catalog.yaml", &catalog(root, "cmd: [a]"));
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(
        found[0].ends_with(
            "note: `toolRefreshSeconds` has no effect: lists are fetched again when a server reports a change"
        ),
        "{found:#?}"
    );
}

/// `0` and variables are accepted as numbers, quoted or not.
#[test]
fn numbers_of_mcpv_are_read() {
    let run = |server: &str| {
        let text = catalog("", &format!("cmd: [a]\nstrategy: stateful\n{server}"));
        taken_from("catalog.yaml", &text).servers["a"].run.clone()
    };
    let zero = run(
        "idleSeconds: 0\nsessionTTLSeconds: 0\nmaxConcurrent: 0\ndrainTimeoutSeconds: 0\ncwd: ''",
    );
    assert_eq!(zero.idle.as_millis(), 50);
    assert!(zero.session.is_zero());
    assert_eq!((zero.max_concurrent, zero.drain.as_secs()), (8, 10));
    for given in ["${SEVEN}", "\"${SEVEN}\"", "$SEVEN", "'${NOPE:-7}'", "7"] {
        let run = run(&format!("idleSeconds: {given}\nmaxConcurrent: {given}"));
        assert_eq!((run.idle.as_secs(), run.max_concurrent), (7, 7), "{given}");
    }
    for (given, expected) in [
        ("\"7\"", "`idleSeconds` must be a number of seconds"),
        ("${TOKEN}", "`idleSeconds` must be a number of seconds"),
        (
            "${NOPE}",
            "variable `NOPE` is not set; set the variable, or write the number itself",
        ),
    ] {
        let text = catalog("", &format!("cmd: [a]\nidleSeconds: {given}"));
        let found = found_in("catalog.yaml", &text);
        assert!(
            found.iter().any(|line| line.contains(expected)),
            "{given}: {found:?}"
        );
        assert_eq!(found.len(), 1, "{given}: {found:?}");
        assert!(!found.concat().contains("hunter2"), "{found:?}");
        let off = catalog(
            "",
            &format!("cmd: [a]\ndisabled: true\nidleSeconds: {given}"),
        );
        let is_read = given != "\"7\"";
        let found = found_in("catalog.yaml", &off);
        assert_eq!(found.is_empty(), is_read, "{given}: {found:?}");
    }
}

/// Settings of the whole catalog apply to each server, which may override them.
#[test]
fn settings_of_a_catalog_apply_to_its_servers() {
    let text = "\
pingIntervalSeconds: 0
serverInitMaxRetries: 3
defaultActivationMode: always-on
exposeTools: false
proxy: {mode: custom, url: 'http://proxy.example:3128', noProxy: 'a.example, 10.0.0.0/8'}
servers:
- {name: program, cmd: [\"$HOME/run\"], minReady: 2}
- {name: lazy, cmd: [a], activationMode: on-demand}
- {name: inherits, http: {endpoint: 'https://b.example/', proxy: {mode: inherit}}}
- {name: direct, http: {endpoint: 'https://b.example/', proxy: {mode: disabled, noProxy: x}}}
- {name: system, http: {endpoint: 'https://b.example/', proxy: {mode: system}}}
- {name: own, http: {endpoint: 'https://b.example/', proxy: {url: 'socks5://own.example'}}}
- {name: except, http: {endpoint: 'https://b.example/', proxy: {noProxy: b.example}}}
";
    let catalog = taken_from("catalog.yaml", text);
    let run = |name: &str| &catalog.servers[name].run;
    assert_eq!((run("program").min_ready, run("lazy").min_ready), (2, 0));
    assert_eq!(run("inherits").min_ready, 1);
    assert_eq!(
        (&run("lazy").health.probe, run("lazy").restarts.failures),
        (&Probe::Off, 3)
    );
    assert!(!catalog.servers["lazy"].tools.admits("x"));
    assert_eq!(program(&catalog.servers["program"]), ["/home/ada/run"]);
    let custom = |url: &str, exceptions: &str| ProxyConfig::Custom {
        url: Secret::new(url),
        exceptions: exceptions.to_owned(),
    };
    let of_all = "http://proxy.example:3128";
    for (name, expected) in [
        ("inherits", custom(of_all, "a.example,10.0.0.0/8")),
        ("direct", ProxyConfig::Disabled),
        ("system", ProxyConfig::System),
        ("own", custom("socks5://own.example", "")),
        ("except", custom(of_all, "b.example")),
    ] {
        let Launch::Url(url) = &catalog.servers[name].launch else {
            panic!("{name} has no URL");
        };
        assert_eq!(url.proxy, expected, "{name}");
    }
}

/// Unused keys are noted and unknown types ignored.
#[test]
fn unused_keys_are_noted() {
    let text = r#"{"mcpServers": {
  "a": {"type": "carrier-pigeon", "command": "a", "frobnicate": 1},
  "b": {"type": "ws", "url": "wss://b.example/"},
  "a b": {"command": "c"}, "a-b": {"command": "d"}, "e": 5,
  "f": {"url": "https://f.example/", "headers": ["A: b"]}
}}"#;
    let found = found_in("x.json", text);
    let expected = [
        "x.json:2:9: note: unused keys of server `a`: `type`, `frobnicate`",
        "x.json:3:3: warning: server `b` has neither a command nor a URL that mcpact can use",
        "x.json:4:3: warning: server `a b` is renamed to `a-b-2`: the name `a-b` is taken",
        "x.json:4:53: warning: `e` is not a server",
        "x.json:5:38: note: unused keys of server `f`: `headers`",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    let taken = taken_from("x.json", text);
    assert_eq!(names(&taken), ["a", "a-b", "a-b-2", "f"]);
}

#[test]
fn file_without_servers_is_an_error() {
    let found = found_in("x.json", "{\"a\": 1}");
    assert!(found[0].contains("no servers configured"), "{found:?}");
}

/// The native format is strict in TOML, JSON and YAML.
#[test]
fn native_format_is_strict_in_every_syntax() {
    let yaml = "servers:\n  a:\n    command: a\n    max_concurent: 3\n";
    let found = found_in("mcpact.yaml", yaml);
    assert!(
        found[0].starts_with("mcpact.yaml:4:5: error: unknown key `max_concurent`"),
        "{found:?}"
    );
    let json = "{\"gateway\": {}, \"servers\": {\"a\": {\"command\": \"a\", \"idle\": 3}}}";
    let found = found_in("x.json", json);
    assert!(
        found[0].starts_with("x.json:1:51: error: unknown key `idle`"),
        "{found:?}"
    );
}

/// `cmd /c` prefixes and redundant headers are removed.
#[test]
fn redundant_wrappers_and_headers_are_removed() {
    let text = r#"{"mcpServers": {
      "a": {"command": "cmd", "args": ["/c", "npx", "-y", "a"]},
      "b": {"type": "http", "url": "https://b.example/mcp", "headers": {"Accept": "application/json", "X": "1"}}}}"#;
    let catalog = taken_from("x.json", text);
    assert_eq!(program(&catalog.servers["a"]), ["npx", "-y", "a"]);
    assert_eq!(address(&catalog.servers["b"]).1, [("X", "1")]);
}

/// Numbers in place of strings keep their spelling: versions, ids and leading zeros.
#[test]
fn numbers_keep_their_spelling() {
    let expected = [
        "1.10",
        "012",
        "12345678901234567890",
        "1e3",
        "-0.50",
        "true",
    ];
    let json = r#"{"mcpServers": {"a": {"command": "a", "args": [1.10, "012", 12345678901234567890, 1e3, -0.50, true], "env": {"V": 2.0}}}}"#;
    let yaml = "mcpServers:\n  a:\n    command: a\n    args: [1.10, 012, 12345678901234567890, 1e3, -0.50 , true]\n    env: {V: 2.0 }  # two\n";
    let list = "mcpServers:\n  a:\n    command: a\n    args:\n      - 1.10 # one\n      - 012\n      - 12345678901234567890\n      - &x 1e3\n      - -0.50\n      - true\n    env:\n      V: 2.0\n";
    let codex = "[mcp_servers.a]\ncommand = \"a\"\nargs = [1.10, \"012\", 12345678901234567890, 1e3, -0.50, true]\nenv = { V = 2.0 }\n";
    for (name, text) in [
        ("a.json", json),
        ("a.yaml", yaml),
        ("b.yaml", list),
        ("config.toml", codex),
    ] {
        let server = &taken_from(name, text).servers["a"];
        assert_eq!(program(server)[1..], expected, "{name}");
        assert_eq!(env(server, "V"), "2.0", "{name}");
    }
}

/// Diacritics are dropped; names that lose letters are reported.
#[test]
fn names_that_lose_letters_are_reported() {
    let text = r#"{"mcpServers": {"été": {"command": "a"}, "文件 2": {"command": "b"}}}"#;
    assert_eq!(names(&taken_from("mcp.json", text)), ["2", "ete"]);
    let found = found_in("mcp.json", text);
    assert_eq!(
        found[0],
        "mcp.json:1:17: note: server `été` is renamed to `ete`"
    );
    assert!(
        found[1].contains(
            "warning: server `文件 2` is renamed to `2`: names consist of ASCII letters, digits, `-` and `_`"
        ),
        "{found:?}"
    );
}

/// Colliding names get a suffix; a server with the exact name keeps it. Renamed servers are reported.
#[test]
fn colliding_names_get_a_suffix() {
    let long = "x".repeat(40);
    let text = format!(
        r#"{{"mcpServers": {{"My Files": {{"command": "a"}}, "My-Files": {{"command": "b"}}, "My  Files": {{"command": "c"}},
            "{long}": {{"command": "d"}}, "{long}y": {{"command": "e"}}}}}}"#
    );
    let catalog = taken_from("mcp.json", &text);
    let other = format!("{}-2", "x".repeat(38));
    for (name, expected) in [
        ("My-Files", "b"),
        ("My-Files-2", "a"),
        ("My-Files-3", "c"),
        (long.as_str(), "d"),
        (other.as_str(), "e"),
    ] {
        assert_eq!(program(&catalog.servers[name]), [expected], "{name}");
    }
    let found = found_in("mcp.json", &text);
    let warned: Vec<&String> = found
        .iter()
        .filter(|line| line.contains("warning"))
        .collect();
    assert_eq!(warned.len(), 3, "{found:?}");
    assert!(
        warned[0]
            .contains("server `My Files` is renamed to `My-Files-2`: the name `My-Files` is taken"),
        "{warned:?}"
    );
}
