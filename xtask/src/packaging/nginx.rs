//! The nginx example, run between curl and `mcpact serve`: TLS, the token, and events that arrive while a stream is open.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::{Outcome, is_installed, replaced};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::listening::Listening;
use crate::process::{capture, program_at, remove, run, succeeds};

const SITE: &str = "packaging/nginx.conf";
const FOLDER: &str = "target/packaging/nginx";
/// nginx from the package of Debian, unpacked and not installed.
const UNPACKED: &str = "target/packaging/nginx-package";
const TOKEN: &str = "example-token-for-a-test";
/// Time for nginx to start, and for an event to arrive.
const LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const CONFIG: &str = r#"[gateway]
allow_hosts = ["gateway.example"]
token = "example-token-for-a-test"

[servers.demo]
builtin = "everything"
"#;

/// Around the example: no daemon and one process, so that it ends with the check.
const AROUND: &str = "daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include site.conf;
}
";

/// Settings that a short test cannot tell from their defaults.
const SETTINGS: [&str; 4] = [
    "proxy_buffering off;",
    "proxy_http_version 1.1;",
    "proxy_next_upstream off;",
    "proxy_read_timeout 1h;",
];

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"check","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CHANGE: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"demo__test_trigger_tool_change","arguments":{}}}"#;

pub(super) fn check(checkout: &Checkout, program: &Path) -> Result<Outcome, Failure> {
    for needed in ["curl", "openssl"] {
        if !succeeds(program_at(checkout, needed).arg("version")) && !is_installed(checkout, needed)
        {
            return Ok(Outcome::Skipped("curl or openssl is not installed"));
        }
    }
    let Some(nginx) = nginx(checkout)? else {
        return Ok(Outcome::Skipped(
            "nginx is not installed, and apt-get cannot download it",
        ));
    };
    let folder = checkout.path(FOLDER);
    remove(&folder)?;
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    make_certificate(checkout, &folder)?;
    let gateway = start_gateway(&folder, program)?;
    // A loopback address of its own: a fixed port that no other program has.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 99, high, low.clamp(1, 254)], 8443));
    write_configs(checkout, &folder, gateway.url(), address)?;
    let _nginx = start_nginx(checkout, &nginx, &folder, address)?;
    let client = Client { folder, address };
    let lines = exercise(&client)?;
    Failure::unless_clean(
        "nginx.conf",
        lines,
        "its log is target/packaging/nginx/error.log",
    )?;
    Ok(Outcome::Passed(
        "calls, token and open streams work through nginx",
    ))
}

/// nginx of this machine, or of the package of its distribution.
fn nginx(checkout: &Checkout) -> Result<Option<PathBuf>, Failure> {
    let unpacked = checkout.path(UNPACKED).join("usr/sbin/nginx");
    let runs = |program: &Path| succeeds(program_at(checkout, program).arg("-v"));
    for program in [Path::new("nginx"), Path::new("/usr/sbin/nginx"), &unpacked] {
        if runs(program) {
            return Ok(Some(program.to_owned()));
        }
    }
    let folder = checkout.path(UNPACKED);
    remove(&folder)?;
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let mut download = program_at(checkout, "apt-get");
    if !succeeds(download.args(["download", "nginx"]).current_dir(&folder)) {
        return Ok(None);
    }
    let mut packages = fs::read_dir(&folder).map_err(Failure::file(&folder))?;
    let Some(Ok(package)) = packages.next() else {
        return Ok(None);
    };
    let mut unpack = program_at(checkout, "dpkg");
    run(unpack.arg("--extract").arg(package.path()).arg(&folder))?;
    Ok(runs(&unpacked).then_some(unpacked))
}

fn make_certificate(checkout: &Checkout, folder: &Path) -> Result<(), Failure> {
    let mut openssl = program_at(checkout, "openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-subj", "/CN=gateway.example"]);
    openssl.args(["-addext", "subjectAltName=DNS:gateway.example"]);
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]);
    run(openssl.current_dir(folder).stderr(Stdio::null()))
}

fn start_gateway(folder: &Path, program: &Path) -> Result<Listening, Failure> {
    let config = folder.join("mcpact.toml");
    fs::write(&config, CONFIG).map_err(Failure::file(&config))?;
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(&config);
    for variable in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
        command.env(variable, folder.join("state"));
    }
    Listening::start("mcpact serve", command, &folder.join("mcpact.log"))
}

/// Writes the example with the addresses and files of this check.
fn write_configs(
    checkout: &Checkout,
    folder: &Path,
    url: &str,
    address: SocketAddr,
) -> Result<(), Failure> {
    let upstream = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let listen = format!("listen {address} ssl");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let mut site = checkout.read(SITE)?;
    for (from, to) in [
        ("127.0.0.1:6272", upstream),
        ("listen 443 ssl", &listen),
        ("/etc/nginx/gateway.pem", &file("cert.pem")),
        ("/etc/nginx/gateway.key", &file("key.pem")),
    ] {
        site = replaced(&site, SITE, from, to)?;
    }
    for setting in SETTINGS {
        replaced(&site, SITE, setting, setting)?;
    }
    for (name, text) in [("site.conf", site.as_str()), ("nginx.conf", AROUND)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Failure::file(&path))?;
    }
    Ok(())
}

/// A process that is killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_nginx(
    checkout: &Checkout,
    nginx: &Path,
    folder: &Path,
    address: SocketAddr,
) -> Result<Killed, Failure> {
    let command = || {
        let mut command = program_at(checkout, nginx);
        command
            .arg("-p")
            .arg(folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"));
        command.arg("-e").arg(folder.join("error.log"));
        command
    };
    run(command().args(["-q", "-t"]))?;
    let child = command().spawn().map_err(|source| Failure::NotStarted {
        command: "nginx".to_owned(),
        source,
    })?;
    let process = Killed(child);
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        if start.elapsed() > LIMIT {
            let lines = vec![format!("nginx does not listen on {address}")];
            let hint = "its log is target/packaging/nginx/error.log";
            Failure::unless_clean("nginx.conf", lines, hint)?;
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(process)
}

/// curl as a client of the gateway.
struct Client {
    folder: PathBuf,
    address: SocketAddr,
}

impl Client {
    fn curl(&self) -> Command {
        let mut curl = Command::new("curl");
        let (ip, port) = (self.address.ip(), self.address.port());
        curl.args(["--silent", "--show-error", "--max-time", "60", "--cacert"]);
        curl.arg(self.folder.join("cert.pem"));
        curl.args(["--noproxy", "*", "--resolve"]);
        curl.arg(format!("gateway.example:{port}:{ip}"));
        curl.arg(format!("https://gateway.example:{port}/mcp"));
        curl
    }

    fn with_token(&self) -> Command {
        let mut curl = self.curl();
        curl.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
        curl
    }

    /// Posts a message; returns headers and body.
    fn post(&self, session: Option<&str>, message: &str) -> Result<String, Failure> {
        let mut curl = self.with_token();
        curl.args(["--include", "--data", message]);
        curl.args(["--header", "Content-Type: application/json"]);
        curl.args(["--header", "Accept: application/json, text/event-stream"]);
        if let Some(session) = session {
            curl.args(["--header", &format!("Mcp-Session-Id: {session}")]);
        }
        capture(&mut curl)
    }

    /// Opens the event stream of a session; returns its lines as they arrive.
    fn listen(&self, session: &str) -> Result<(Killed, Receiver<String>), Failure> {
        let mut curl = self.with_token();
        curl.args(["--include", "--no-buffer"]);
        curl.args(["--header", "Accept: text/event-stream"]);
        curl.args(["--header", &format!("Mcp-Session-Id: {session}")]);
        let spawned = curl.stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|source| Failure::NotStarted {
            command: "curl".to_owned(),
            source,
        })?;
        let stdout = child.stdout.take();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                // The receiver is gone after the event.
                let _ = sender.send(line);
            }
        });
        Ok((Killed(child), receiver))
    }
}

/// Returns what does not work.
fn exercise(client: &Client) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    let refused = capture(client.curl().arg("--include"))?;
    if !refused.starts_with("HTTP/1.1 401") {
        problems.push(format!(
            "a request without token is answered with `{refused}`"
        ));
    }
    let opened = client.post(None, INITIALIZE)?;
    let Some(session) = header(&opened, "mcp-session-id") else {
        problems.push(format!("`initialize` is answered with `{opened}`"));
        return Ok(problems);
    };
    client.post(Some(&session), INITIALIZED)?;
    let (_stream, lines) = client.listen(&session)?;
    // The empty line after the headers: the stream is open.
    if !arrives(&lines, str::is_empty) {
        problems.push("the event stream does not open".to_owned());
    }
    let called = client.post(Some(&session), CHANGE)?;
    if !called.starts_with("HTTP/1.1 200") {
        problems.push(format!("a call is answered with `{called}`"));
    }
    if !arrives(&lines, |line| line.contains("list_changed")) {
        problems.push("an event does not arrive while its stream is open".to_owned());
    }
    Ok(problems)
}

fn header(response: &str, name: &str) -> Option<String> {
    let lines = response.lines().filter_map(|line| line.split_once(": "));
    let mut values = lines.filter(|(one, _)| one.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim().to_owned())
}

/// Waits for a line.
fn arrives(lines: &Receiver<String>, is_expected: impl Fn(&str) -> bool) -> bool {
    let deadline = Instant::now() + LIMIT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) if is_expected(line.trim()) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
