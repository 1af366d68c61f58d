//! Other users of the machine: their requests, and files where they could do harm.

use std::collections::VecDeque;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect as connect_to, socket, sockopt};
use rustix::process::{Signal, Uid, geteuid};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::Effort;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::program;
use crate::process::{self, PATIENCE};

/// User ids without an account: of the gateway, of a listed user, and of a user that is not.
const OWN: u32 = 65_533;
const FRIEND: u32 = 65_532;
const STRANGER: u32 = 65_531;

/// Sockets that keep the addresses of reset connections.
const HELD: usize = 32;

/// A call that the gateway counts.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__echo","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"f","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const HEADERS: &str = "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: demo__echo\r\nConnection: close\r\n";

/// A gateway in a folder of its own.
struct LocalGateway {
    folder: TempDir,
    uid: u32,
    child: Option<Child>,
}

impl LocalGateway {
    fn new(uid: u32) -> Result<Self, RowError> {
        let folder = tempfile::tempdir()?;
        if geteuid().is_root() {
            chown(folder.path(), Some(uid), None)?;
        }
        let child = None;
        Ok(Self { folder, uid, child })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, umask: &str, words: &[&str]) -> Result<Command, RowError> {
        let mut command = Command::new("sh");
        command.args(["-c", "umask $0; exec \"$@\"", umask]);
        command.arg(program("mcpact")?).args(words);
        for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path());
        command.current_dir(self.folder.path());
        if geteuid().is_root() {
            command.uid(self.uid);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true);
        Ok(command)
    }

    /// Starts it, instead of an earlier one; returns its URL without the path.
    async fn serve(&mut self, umask: &str, gateway: &str) -> Result<String, RowError> {
        if let Some(mut earlier) = self.child.take() {
            earlier.kill().await?;
        }
        let mcpact = program("mcpact")?;
        let text = format!(
            "[gateway]\n{gateway}\n[servers.demo]\ncommand = {:?}\nargs = [\"everything\"]\n",
            mcpact.display().to_string()
        );
        fs::write(self.path("mcpact.toml"), text)?;
        let mut command = self.command(umask, &["serve", "--config", "mcpact.toml"])?;
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| RowError::stage("there is no standard output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        self.child = Some(child);
        let url = line.trim().strip_suffix("/mcp");
        let url = url.ok_or_else(|| RowError::stage("the gateway did not start"))?;
        Ok(url.to_owned())
    }
}

/// Runs a client as another user, if the row may: the socket belongs to the user of its thread.
fn as_user<T: Send>(
    uid: u32,
    client: impl FnOnce() -> Result<T, RowError> + Send,
) -> Result<T, RowError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if geteuid().is_root() {
                rustix::thread::set_thread_uid(Uid::from_raw(uid)).map_err(std::io::Error::from)?;
            }
            client()
        });
        let ended = thread.join();
        ended.unwrap_or_else(|_| Err(RowError::stage("a client panicked")))
    })
}

fn request(verb: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{verb} {path} HTTP/1.1\r\n{HEADERS}Content-Length: {length}\r\n\r\n{body}")
}

/// Sends a call; returns the response.
fn call(mut stream: impl Read + Write) -> Result<String, RowError> {
    stream.write_all(request("POST", "/mcp", CALL).as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// Lists the tools, which the gateway caches.
fn list(mut stream: TcpStream) -> Result<String, RowError> {
    let headers = HEADERS.replace("tools/call\r\nMcp-Name: demo__echo", "tools/list");
    let params = r#""params":{"name":"demo__echo","arguments":{"text":"x"},"#;
    let body = CALL
        .replace(params, r#""params":{"#)
        .replace("tools/call", "tools/list");
    stream.write_all(
        request("POST", "/mcp", &body)
            .replace(HEADERS, &headers)
            .as_bytes(),
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

fn is_ok(response: &str) -> bool {
    response.starts_with("HTTP/1.1 200 ") && response.contains("\"content\"")
}

fn connect(address: SocketAddr) -> Result<TcpStream, RowError> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Number of calls that the gateway passed on.
fn calls(address: SocketAddr) -> Result<u64, RowError> {
    let mut stream = connect(address)?;
    stream.write_all(request("GET", "/metrics", "").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let rows = text.lines().filter(|line| {
        line.starts_with("mcpact_requests_total{") && line.contains("method=\"tools/call\"")
    });
    let counts = rows.filter_map(|row| row.rsplit(' ').next()?.parse::<u64>().ok());
    Ok(counts.sum())
}

/// Requests of other users are refused, with and without a socket that is still open.
pub(super) async fn other_users(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let attempts = effort.of(50, 2000);
    let is_root = geteuid().is_root();
    let mut gateway = LocalGateway::new(OWN)?;
    let url = gateway.serve("022", "listen = \"127.0.0.1:0\"").await?;
    let address = url.strip_prefix("http://").and_then(|at| at.parse().ok());
    let address: SocketAddr = address.ok_or_else(|| RowError::stage("no TCP address"))?;
    figures.shown("attempts of each kind", attempts as f64, "");
    let mut own = 0;
    for _ in 0..attempts {
        own += usize::from(is_ok(&as_user(OWN, || call(connect(address)?))?));
    }
    figures.none("own calls refused", attempts - own);
    if is_root {
        let id = gateway.child.as_ref().and_then(Child::id);
        let id = id.ok_or_else(|| RowError::stage("the gateway has ended"))?;
        strangers(id, address, attempts, figures)?;
        let passed = calls(address)?;
        let foreign = passed.saturating_sub(own as u64);
        figures.none(
            "calls of others passed on",
            usize::try_from(foreign).unwrap_or(usize::MAX),
        );
    } else {
        figures.shown("not checked without root: other users over TCP", 1.0, "");
    }
    unix_socket(&mut gateway, figures).await
}

fn strangers(
    gateway: u32,
    address: SocketAddr,
    attempts: usize,
    figures: &mut Figures,
) -> Result<(), RowError> {
    let (mut accepted, mut named) = (0, 0);
    for _ in 0..attempts {
        let response = as_user(STRANGER, || call(connect(address)?))?;
        accepted += usize::from(!response.starts_with("HTTP/1.1 403 "));
        let names =
            response.contains("allow_users") && response.contains(&format!("user id {STRANGER}"));
        named += usize::from(names);
    }
    figures.none("accepted from another user", accepted);
    figures.at_least("refusals with user id and key", named, attempts);
    // They close the socket before the gateway can look, or only one direction, or reset the connection, and a socket of
    // the gateway's user takes its address over.
    let (mut held, mut taken_over) = (VecDeque::new(), 0);
    for attempt in 0..attempts {
        process::signal(gateway, Signal::STOP);
        let reset = as_user(STRANGER, || {
            let mut stream = connect(address)?;
            stream.write_all(request("POST", "/mcp", CALL).as_bytes())?;
            match attempt % 3 {
                0 => {
                    process::signal(gateway, Signal::CONT);
                    return Ok(None);
                }
                1 => {
                    sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
                        .map_err(std::io::Error::from)?;
                    return Ok(Some(stream.local_addr()?));
                }
                _ => process::signal(gateway, Signal::CONT),
            }
            stream.shutdown(Shutdown::Write)?;
            let mut response = Vec::new();
            // The end of the connection is as good as a refusal.
            let _ = stream.read_to_end(&mut response);
            Ok(None)
        })?;
        if let Some(from) = reset {
            // The port may be in use by now.
            if let Some(socket) = as_user(OWN, || Ok(take_over(from, address).ok()))? {
                taken_over += 1;
                held.push_front(socket);
                held.truncate(HELD);
            }
        }
        process::signal(gateway, Signal::CONT);
    }
    figures.at_least(
        "reset connections whose address was taken over",
        taken_over,
        1,
    );
    Ok(())
}

/// Connects from this address, and sends nothing.
fn take_over(from: SocketAddr, to: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &from)?;
    connect_to(&socket, &to)?;
    Ok(socket)
}

async fn unix_socket(gateway: &mut LocalGateway, figures: &mut Figures) -> Result<(), RowError> {
    let socket = gateway.path("gateway.sock");
    let listen = format!("listen = \"unix:{}\"", socket.display());
    let try_call = |uid| {
        as_user(uid, || match UnixStream::connect(&socket) {
            Ok(stream) => call(stream),
            Err(error) => Ok(error.to_string()),
        })
    };
    gateway.serve("000", &listen).await?;
    let mode = fs::metadata(&socket)?.mode() & 0o777;
    figures.none("socket open to others", usize::from(mode != 0o600));
    let own = is_ok(&try_call(OWN)?);
    figures.at_least("own call over the Unix socket", usize::from(own), 1);
    if !geteuid().is_root() {
        figures.shown(
            "not checked without root: other users over the socket",
            1.0,
            "",
        );
        return Ok(());
    }
    fs::set_permissions(gateway.folder.path(), Permissions::from_mode(0o755))?;
    let closed = is_ok(&try_call(STRANGER)?);
    let listed = format!("{listen}\nallow_users = [{FRIEND}]");
    gateway.serve("022", &listed).await?;
    let friend = is_ok(&try_call(FRIEND)?);
    let open = is_ok(&try_call(STRANGER)?);
    figures.at_least("listed user over the Unix socket", usize::from(friend), 1);
    let accepted = usize::from(closed) + usize::from(open);
    figures.none("accepted from another user over the socket", accepted);
    Ok(())
}

/// Files and folders below a folder that others can read.
fn open_entries(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let each = entries.map(|entry| {
        let path = entry.path();
        let facts = fs::symlink_metadata(&path);
        let is_open = facts.as_ref().is_ok_and(|facts| facts.mode() & 0o077 != 0);
        let is_folder = facts.is_ok_and(|facts| facts.is_dir());
        let inside = if is_folder { open_entries(&path) } else { 0 };
        usize::from(is_open) + inside
    });
    each.sum()
}

/// Cache and state are private under every umask; a bundle is never written through a link.
pub(super) async fn private_files(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let mut open = 0;
    for umask in ["000", "022"] {
        let mut gateway = LocalGateway::new(OWN)?;
        let url = gateway.serve(umask, "listen = \"127.0.0.1:0\"").await?;
        let address = url.strip_prefix("http://").and_then(|at| at.parse().ok());
        let address: SocketAddr = address.ok_or_else(|| RowError::stage("no TCP address"))?;
        as_user(OWN, || list(connect(address)?))?;
        let cache = gateway.path(".cache/mcpact/servers");
        let is_cached = || fs::read_dir(&cache).is_ok_and(|mut entries| entries.next().is_some());
        process::until("a cached server", is_cached).await?;
        open += [".cache", ".local"]
            .map(|name| open_entries(&gateway.path(name)))
            .iter()
            .sum::<usize>();
    }
    figures.none("files and folders open to others", open);
    bundles(effort.of(10, 200), figures).await
}

/// Writes bundles into a folder where another thread puts a link in place of the file.
async fn bundles(attempts: usize, figures: &mut Figures) -> Result<(), RowError> {
    let mut gateway = LocalGateway::new(OWN)?;
    gateway.serve("022", "listen = \"127.0.0.1:0\"").await?;
    let (victim, open) = (gateway.path("victim"), gateway.path("open"));
    fs::write(&victim, "victim")?;
    fs::create_dir(&open)?;
    fs::set_permissions(&open, Permissions::from_mode(0o1777))?;
    if geteuid().is_root() {
        chown(&victim, Some(OWN), None)?;
        chown(&open, Some(OWN), None)?;
    }
    let target = open.join("bundle.json");
    let is_done = AtomicBool::new(false);
    let (mut refused, mut written) = (0, 0);
    let race = || {
        while !is_done.load(Ordering::Relaxed) {
            let _ = symlink(&victim, &target);
            std::thread::sleep(Duration::from_micros(200));
            let _ = fs::remove_file(&target);
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    let name = target.display().to_string();
    let mut commands = Vec::new();
    for _ in 0..attempts {
        commands.push(
            gateway
                .command("022", &["status", "--bundle", &name])?
                .into_std(),
        );
    }
    std::thread::scope(|scope| {
        scope.spawn(race);
        for mut command in commands {
            match command.stdout(Stdio::null()).status() {
                Ok(status) if status.success() => written += 1,
                Ok(_) | Err(_) => refused += 1,
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    figures.shown("bundles refused because of a link", f64::from(refused), "");
    figures.shown("bundles written", f64::from(written), "");
    let is_intact = fs::read_to_string(&victim)? == "victim";
    figures.none("files written through a link", usize::from(!is_intact));
    Ok(())
}
