//! Approval of commands and sent values.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcpact::client::Client;
use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::Revision;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::harness::{Harness, Running, combined_output};

async fn echo(client: &Client) -> Result<String, String> {
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    match echoed {
        Ok(result) => Ok(result.all_text()),
        Err(error) => Err(error.to_string()),
    }
}

const CONFIG: &str =
    "[servers.a]\ncommand = \"SERVER\"\nargs = [\"one two\"]\nenv = { TOKEN = \"hunter2\" }\n";

/// Returns the mark that `approve` shows.
fn mark(harness: &Harness) -> String {
    let output = harness.run(&["approve"]);
    assert_eq!(
        output.status.code(),
        Some(7),
        "{}",
        combined_output(&output)
    );
    let shown = combined_output(&output);
    for words in [
        harness.server().to_string_lossy().as_ref(),
        "one two",
        "TOKEN",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    let line = shown.lines().find(|line| line.contains("mark")).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

/// An approval takes effect at once. Other arguments, another directory or another program content
/// need a new one.
#[tokio::test(flavor = "multi_thread")]
async fn found_config_starts_nothing_without_approval() {
    let harness = Harness::new();
    harness.configure("mcpact.toml", CONFIG);
    let running = harness.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(
        why.contains("not approved") && why.contains("mcpact approve"),
        "{why}"
    );
    assert!(!harness.was_started());
    let first = mark(&harness);
    let approved = harness.run(&["approve", "--mark", &first]);
    assert_eq!(
        approved.status.code(),
        Some(0),
        "{}",
        combined_output(&approved)
    );
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
    assert!(harness.was_started());
    drop(running);

    fs::remove_file(harness.path().join("args")).unwrap();
    let changes: [(&str, &str); 3] = [
        ("args", &CONFIG.replace("one two", "one two three")),
        ("cwd", &format!("{CONFIG}cwd = \"/\"\n")),
        (
            "env",
            &CONFIG.replace("TOKEN =", "LD_LIBRARY_PATH = \"/x\", TOKEN ="),
        ),
    ];
    for (what, text) in changes {
        harness.configure("mcpact.toml", text);
        let running = harness.serve(&[]);
        let client = running.client(Revision::V2025_11_25).await;
        let why = echo(&client).await.unwrap_err();
        assert!(why.contains("not approved"), "{what}: {why}");
        assert!(!harness.was_started(), "{what}");
    }
    harness.configure("mcpact.toml", CONFIG);
    harness.install("changed");
    let running = harness.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("not approved"), "{why}");
    assert!(!harness.was_started());
    assert_ne!(mark(&harness), first);
}

/// Returns the mark of the only item that is not approved.
fn any_mark(harness: &Harness) -> String {
    let shown = combined_output(&harness.run(&["approve"]));
    let line = shown.lines().find(|line| line.contains("  mark ")).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

fn approve(harness: &Harness) {
    let approved = harness.run(&["approve", "--mark", &any_mark(harness)]);
    let shown = combined_output(&approved);
    assert_eq!(approved.status.code(), Some(0), "{shown}");
}

/// The script is named in the dialogue. A changed one is not started.
#[tokio::test(flavor = "multi_thread")]
async fn changed_script_is_not_started() {
    let harness = Harness::new();
    let text = "[servers.a]\ncommand = \"env\"\nargs = [\"sh\", \"-e\", \"SERVER\"]\n";
    harness.configure("mcpact.toml", text);
    let shown = combined_output(&harness.run(&["approve"]));
    let script = format!("script     {}", harness.server().display());
    assert!(shown.contains(&script), "{shown}");
    assert!(
        shown.contains("contents of packages are not covered"),
        "{shown}"
    );
    approve(&harness);
    let running = harness.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
    drop(running);
    fs::remove_file(harness.path().join("args")).unwrap();
    harness.install_with(": > MARKER");
    let running = harness.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("not approved"), "{why}");
    assert!(!harness.was_started());
    approve(&harness);
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
    assert!(harness.was_started());
}

/// The server replaces its own file during the start, so the file differs from the approved one when it answers.
#[tokio::test(flavor = "multi_thread")]
async fn program_exchanged_during_the_start_is_stopped() {
    let harness = Harness::new();
    harness.install_with("echo $$ > MARKER; cp \"$0\" \"$0.new\"; mv \"$0.new\" \"$0\"");
    harness.configure("mcpact.toml", CONFIG);
    approve(&harness);
    let running = harness.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("the approved code was exchanged"), "{why}");
    assert!(why.contains(&*harness.server().to_string_lossy()), "{why}");
    let pid = harness.read_file("marker");
    let process = std::path::Path::new("/proc").join(pid.trim());
    wait_until(|| !process.exists());
}

/// A rotated secret asks nothing. A literal value does.
#[tokio::test(flavor = "multi_thread")]
async fn rotated_secrets_stay_approved() {
    let harness = Harness::new();
    let text = "[servers.a]\ncommand = \"SERVER\"\nargs = [\"${SECRET}\"]\ninherit = [\"OTHER\"]\n\
                env = { A = \"${SECRET}\", B = \"${file:key}\", C = \"literal\" }\n";
    harness.configure("mcpact.toml", text);
    let run = |secret: &str| {
        fs::write(harness.path().join("key"), secret).unwrap();
        let mut command = harness.command(&["approve"]);
        command.env("SECRET", secret).env("OTHER", secret);
        let output = command.output().unwrap();
        (output.status.code(), combined_output(&output))
    };
    let (_, shown) = run("one");
    let mark = shown.lines().find(|line| line.contains("  mark ")).unwrap();
    let mark = mark.split_whitespace().last().unwrap();
    let mut approving = harness.command(&["approve", "--mark", mark]);
    let approved = approving
        .env("SECRET", "two")
        .env("OTHER", "two")
        .output()
        .unwrap();
    assert_eq!(
        approved.status.code(),
        Some(0),
        "{}",
        combined_output(&approved)
    );
    assert_eq!(run("three").0, Some(0));
    harness.configure("mcpact.toml", &text.replace("literal", "changed"));
    assert_eq!(run("three").0, Some(7));
    let stored = harness.read_file("state/mcpact/approvals");
    assert_eq!(stored.lines().count(), 1, "{stored}");
}

#[test]
fn unpinned_package_is_shown_with_its_pin() {
    let harness = Harness::new();
    let npx = harness.path().join("npx");
    fs::copy(harness.server(), &npx).unwrap();
    let home = harness.path().join("home");
    let cached = home.join(".npm/_npx/1/node_modules/tickets");
    let shown = |args: &str| {
        let text = format!("[servers.a]\ncommand = {npx:?}\nargs = {args}\n");
        harness.configure("mcpact.toml", &text);
        let output = harness.command(&["approve"]).env("HOME", &home).output();
        combined_output(&output.unwrap())
    };
    let unknown = shown("[\"-y\", \"tickets\"]");
    let note =
        "`npx` runs the newest version of `tickets`, and updates will not ask; to pin it, write ";
    assert!(
        unknown.contains(&format!("{note}\"tickets@VERSION\"")),
        "{unknown}"
    );
    fs::create_dir_all(&cached).unwrap();
    fs::write(cached.join("package.json"), "{\"version\": \"1.2.3\"}").unwrap();
    let known = shown("[\"-y\", \"tickets\"]");
    assert!(
        known.contains(&format!("{note}\"tickets@1.2.3\"")),
        "{known}"
    );
    let pinned = shown("[\"-y\", \"tickets@1.2.3\"]");
    assert!(!pinned.contains("newest version"), "{pinned}");
}

/// Runs `mcpact approve` on a terminal with these answers, one for each prompt; returns what it shows.
fn on_terminal(mut command: Command, answers: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let user = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let stream = || Stdio::from(user.try_clone().unwrap());
    command.stdin(stream()).stdout(stream()).stderr(stream());
    let mut child = TestProcess::spawn(&mut command);
    // The end of the output is the end of the last process that has the terminal.
    drop((user, command));
    let mut terminal = File::from(terminal);
    let mut shown = Vec::new();
    let mut answers = answers.iter();
    let mut chunk = [0; 1024];
    loop {
        match terminal.read(&mut chunk) {
            Ok(read) if read > 0 => shown.extend_from_slice(&chunk[..read]),
            Ok(_) | Err(_) => break,
        }
        if shown.ends_with(b"[y/N] ") || shown.ends_with(b"[y/n/all/quit/?] ") {
            let answer = answers.next().unwrap();
            terminal.write_all(answer.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    assert_eq!(answers.len(), 0, "fewer prompts than answers");
    String::from_utf8(shown).unwrap()
}

/// The pin is written at once, and everything else of the file stays.
#[test]
fn pin_is_written_into_the_config_after_a_prompt() {
    let harness = Harness::new();
    let npx = harness.path().join("npx");
    fs::copy(harness.server(), &npx).unwrap();
    let home = harness.path().join("home");
    let cached = home.join(".npm/_npx/1/node_modules/tickets");
    fs::create_dir_all(&cached).unwrap();
    fs::write(cached.join("package.json"), "{\"version\": \"1.2.3\"}").unwrap();
    let text = format!(
        "# mine\n[servers.a]\ncommand = {npx:?}  # runner\nargs = [\"-y\", '--package=tickets@^1', \"serve\"]\n"
    );
    harness.configure("real.toml", &text);
    let real = harness.path().join("real.toml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.toml", harness.path().join("mcpact.toml")).unwrap();
    let approve = |answers: &[&str]| {
        let mut command = harness.command(&["approve"]);
        command.env("HOME", &home);
        on_terminal(command, answers)
    };
    let declined = approve(&["n\n", "n\n"]);
    assert!(
        declined.contains("write \"--package=tickets@1.2.3\" into"),
        "{declined}"
    );
    assert_eq!(fs::read_to_string(&real).unwrap(), text);
    let inode = || fs::metadata(&real).unwrap().ino();
    let before = inode();
    let written = approve(&["y\n", "y\n"]);
    assert!(written.contains("everything is approved"), "{written}");
    let expected = text.replace("tickets@^1", "tickets@1.2.3");
    assert_eq!(fs::read_to_string(&real).unwrap(), expected);
    assert_ne!(inode(), before, "replaced, so that no reader sees a part");
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    let link = harness.path().join("mcpact.toml");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    let again = approve(&[]);
    assert!(again.contains("everything is approved"), "{again}");
}

/// `quit` and `all` decide about the remaining items. A changed item shows what it was before.
#[test]
fn dialogue_numbers_the_items_and_shows_changes() {
    let harness = Harness::new();
    let configure = |a: &str| {
        let text = format!("{a}[servers.b]\ncommand = \"SERVER\"\n");
        harness.configure("mcpact.toml", &text);
    };
    let approve = |args: &[&str], answers: &[&str]| {
        let args = [&["approve"][..], args].concat();
        on_terminal(harness.command(&args), answers)
    };
    configure(CONFIG);
    let shown = approve(&[], &["?\n", "quit\n"]);
    for words in [
        "(1 of 2)",
        "config     ",
        "what is approved so far stays",
        "2 items are not approved",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("(2 of 2)"), "{shown}");
    let shown = approve(&["a"], &["y\n"]);
    assert!(shown.contains("also not approved: `b`"), "{shown}");
    configure(&CONFIG.replace("one two", "one two three"));
    let shown = approve(&[], &["all\n"]);
    for words in [
        "removed since the last approval: argument one two",
        "added since the last approval: argument one two three",
        "(2 of 2)",
        "everything is approved",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn mark_must_belong_to_an_item() {
    let harness = Harness::new();
    harness.configure("mcpact.toml", CONFIG);
    let wrong = harness.run(&["approve", "--mark", "deadbeef"]);
    let shown = combined_output(&wrong);
    assert_eq!(wrong.status.code(), Some(2), "{shown}");
    assert!(shown.contains("no item has the mark `deadbeef`"), "{shown}");
    let unmarked = combined_output(&harness.run(&["approve"]));
    let hint = "hint: run it in a terminal, or pass `--mark MARK`\n";
    assert!(unmarked.ends_with(hint), "{unmarked}");
    let mark = mark(&harness);
    for heading in ["\napproved: `a` starts a command", ""] {
        let approved = harness.run(&["approve", "a", "--mark", &mark]);
        let shown = combined_output(&approved);
        assert_eq!(approved.status.code(), Some(0), "{shown}");
        assert!(shown.contains(heading), "{shown}");
        assert!(!shown.contains("not approved"), "{shown}");
        assert!(
            shown.contains("the selected servers are approved"),
            "{shown}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_program_does_not_block_other_approvals() {
    let harness = Harness::new();
    let text = format!("[servers.aa]\ncommand = \"no-such-program-4711\"\n{CONFIG}");
    harness.configure("mcpact.toml", &text);
    let shown = harness.run(&["approve"]);
    let text = combined_output(&shown);
    assert_eq!(shown.status.code(), Some(7), "{text}");
    let warning = "warning: cannot approve `aa`: program `no-such-program-4711` not found";
    assert!(text.contains(warning), "{text}");
    let approved = harness.run(&["approve", "--mark", &mark(&harness)]);
    let text = combined_output(&approved);
    assert_eq!(approved.status.code(), Some(7), "{text}");
    assert!(text.contains("1 item is not approved"), "{text}");

    let running = harness.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
    let cause = || {
        let status = harness.run(&["status", "--json", "--config", "mcpact.toml"]);
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        assert!(!status.contains("approvals"), "{status}");
        status.contains("cannot start `no-such-program-4711`: program not found")
    };
    wait_until(cause);
}

/// The server is not contacted. The approval covers the URL and the sources of the values, and
/// shows no value.
#[tokio::test(flavor = "multi_thread")]
async fn found_config_sends_no_values_without_approval() {
    let harness = Harness::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    fs::write(harness.path().join("key"), "from-a-file").unwrap();
    let text = json!({"mcpServers": {"a": {"url": url, "headers": {
        "X-Variable": "Bearer ${SOME_KEY}", "X-File": "${file:key}", "X-Plain": "plain",
    }}}});
    harness.configure(".mcp.json", &text.to_string());
    let with_key = |args: &[&str]| {
        let mut command = harness.command(args);
        command.env("SOME_KEY", "hunter2-hunter2");
        command
    };
    let noted = combined_output(&with_key(&["check"]).output().unwrap());
    assert!(noted.contains("mcpact approve"), "{noted}");
    let running = Running::start(with_key(&["serve", "--listen", "127.0.0.1:0"]));
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("nothing was sent"), "{why}");
    assert!(why.contains("mcpact approve"), "{why}");
    listener.set_nonblocking(true).unwrap();
    let refused = listener.accept().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);

    let shown = with_key(&["approve"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(7), "{}", combined_output(&shown));
    let shown = combined_output(&shown);
    for words in [&*url, "${SOME_KEY} as `X-Variable`", "key} as `X-File`"] {
        assert!(shown.contains(words), "{shown}");
    }
    for secret in ["hunter2", "from-a-file"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let line = shown.lines().find(|line| line.contains("mark")).unwrap();
    let mark = line.split_whitespace().last().unwrap();
    let mut approving = with_key(&["approve", "--mark", mark]);
    // Another value of the variable does not matter.
    approving.env("SOME_KEY", "hunter3-hunter3");
    let approved = approving.output().unwrap();
    assert_eq!(
        approved.status.code(),
        Some(0),
        "{}",
        combined_output(&approved)
    );
    listener.set_nonblocking(false).unwrap();
    let calling = tokio::spawn(async move { echo(&client).await });
    let request = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut chunk = [0; 4096];
        while !text.contains("\r\n\r\n") {
            let read = stream.read(&mut chunk).unwrap();
            assert_ne!(read, 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        text
    });
    let request = request.await.unwrap();
    for value in ["Bearer hunter2-hunter2", "from-a-file", "plain"] {
        assert!(request.contains(value), "{request}");
    }
    calling.abort();
}

/// A command that was approved without them needs a new approval.
#[tokio::test(flavor = "multi_thread")]
async fn answers_and_health_checks_need_approval_for_values() {
    let harness = Harness::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("url = \"http://{}/mcp\"", listener.local_addr().unwrap());
    fs::write(harness.path().join("key"), "from-a-file").unwrap();
    let message = [
        "answers = { sampling = \"${file:key}\" }",
        "answers = { roots = [\"file:///${HOME}\"] }",
        "health = \"tool:${HOME}\"\nhealth_seconds = 0.1\nmin_ready = 1",
    ];
    let everywhere = "[gateway.answers]\nsampling = \"${HOME}\"\n";
    let by_server = message.map(|message| format!("[servers.a]\n{url}\n{message}\n"));
    let by_gateway = format!("{everywhere}[servers.a]\n{url}\n");
    for text in by_server.iter().chain([&by_gateway]) {
        harness.configure("mcpact.toml", text);
        let running = harness.serve(&[]);
        let client = running.client(Revision::V2026_07_28).await;
        let why = echo(&client).await.unwrap_err();
        assert!(why.contains("nothing was sent"), "{text}: {why}");
        let refused = listener.accept().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock, "{text}");
    }

    harness.configure("mcpact.toml", CONFIG);
    let approved = harness.run(&["approve", "--mark", &mark(&harness)]);
    assert_eq!(
        approved.status.code(),
        Some(0),
        "{}",
        combined_output(&approved)
    );
    let by_server = message.map(|message| format!("{CONFIG}{message}\n"));
    let by_gateway = format!("{everywhere}{CONFIG}");
    for text in by_server.iter().chain([&by_gateway]) {
        harness.configure("mcpact.toml", text);
        let shown = harness.run(&["approve"]);
        assert_eq!(
            shown.status.code(),
            Some(7),
            "{text}: {}",
            combined_output(&shown)
        );
        assert!(
            combined_output(&shown).contains("is sent"),
            "{}",
            combined_output(&shown)
        );
    }
}

/// Unless `--approved-only` is set.
#[tokio::test(flavor = "multi_thread")]
async fn config_flag_implies_approval() {
    let harness = Harness::new();
    harness.configure("named.toml", CONFIG);
    let running = harness.serve(&["--config", "named.toml", "--approved-only"]);
    let client = running.client(Revision::V2026_07_28).await;
    assert!(echo(&client).await.unwrap_err().contains("not approved"));
    assert!(!harness.was_started());
    drop(running);
    let running = harness.serve(&["--config", "named.toml"]);
    let client = running.client(Revision::V2026_07_28).await;
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_but_unapproved_server_is_reported_as_failed() {
    let harness = Harness::new();
    harness.configure("named.toml", CONFIG);
    let running = harness.serve(&["--config", "named.toml"]);
    let client = running.client(Revision::V2026_07_28).await;
    client.list_tools().await.unwrap();
    let cache = harness.path().join("cache/mcpact/servers");
    let is_kept = || fs::read_dir(&cache).is_ok_and(|mut files| files.next().is_some());
    wait_until(is_kept);
    drop(running);
    fs::remove_file(harness.path().join("args")).unwrap();

    let _running = harness.serve(&["--config", "named.toml", "--approved-only"]);
    let message = || {
        let status = harness.run(&["status", "--json", "--config", "named.toml"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        let server = &status["servers"][0];
        let missing = server["missing"].as_str().unwrap_or_default();
        server["state"] == "failed"
            && missing.starts_with("the command is not approved")
            && missing.contains("mcpact approve")
    };
    wait_until(message);
    assert!(!harness.was_started());
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_is_noticed_without_a_call() {
    let harness = Harness::new();
    harness.configure("mcpact.toml", &format!("{CONFIG}backoff_max_seconds = 1\n"));
    let running = harness.serve(&[]);
    let mark = mark(&harness);
    until_ready(&running, 503).await;
    assert!(!harness.was_started());
    let approved = harness.run(&["approve", "--mark", &mark]);
    assert_eq!(
        approved.status.code(),
        Some(0),
        "{}",
        combined_output(&approved)
    );
    until_ready(&running, 200).await;
    assert!(harness.was_started());
}

/// Waits for this status of `/readyz`.
async fn until_ready(running: &Running, status: u16) {
    let late = Instant::now() + Duration::from_secs(30);
    while running.send("GET", "/readyz", "").await != status {
        assert!(Instant::now() < late, "it is not {status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Polls until the condition holds.
fn wait_until(is_so: impl Fn() -> bool) {
    let late = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < late, "it did not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}
