//! Hostile servers in a sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;
use tokio::process::Command;

use super::Effort;
use crate::client::Era;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::GatewaySetup;

/// Server that tries to leave its sandbox.
const HOSTILE: &str = include_str!("hostile.py");

/// Outcome of each attempt, by group: `ok`, or an error.
type Attempts = BTreeMap<String, BTreeMap<String, String>>;

/// A hostile server cannot read other files, or use sockets that its level denies. What every server needs works.
pub(super) async fn escapes(_: Effort, figures: &mut Figures) -> Result<(), RowError> {
    for (level, groups) in [
        ("standard", &["files"][..]),
        ("strict", &["files", "network"][..]),
    ] {
        let (attempts, left) = attack(level).await?;
        let succeeded = |group: &str| {
            let all = attempts.get(group).into_iter().flatten();
            all.filter(|(_, outcome)| *outcome == "ok").count()
        };
        let tried = groups.iter().filter_map(|group| attempts.get(*group));
        let tried: usize = tried.map(BTreeMap::len).sum();
        let escapes = groups.iter().map(|group| succeeded(group)).sum();
        figures.at_least(format!("attempts in `{level}`"), tried, 25);
        figures.none(format!("escapes from `{level}`"), escapes);
        let usual = attempts.get("usual").map_or(0, BTreeMap::len);
        let denied = usual.saturating_sub(succeeded("usual"));
        figures.none(format!("usual actions that `{level}` denies"), denied);
        figures.none("temporary folders left", left);
    }
    Ok(())
}

/// Runs the hostile server at a level; returns its attempts, and the number of temporary folders that remain.
async fn attack(level: &str) -> Result<(Attempts, usize), RowError> {
    let setup = GatewaySetup::new()?;
    let home = setup.folder().to_owned();
    for (name, text) in [
        (".ssh/id_ed25519", "secret"),
        ("moved", ""),
        ("deleted", ""),
        ("truncated", "text"),
        ("state/approvals", "x"),
        ("work/working.txt", "x"),
        ("projects/other/server.txt", "x"),
        ("projects/hostile/own.txt", "x"),
        ("projects/hostile/hostile.py", HOSTILE),
        ("readable/file", "x"),
        ("writable/file", "x"),
    ] {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&home))?;
        fs::write(path, text)?;
    }
    fs::create_dir(home.join("temporary"))?;
    let [allowed, forbidden] = [listener()?, listener()?];
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    let _unix = UnixListener::bind(home.join("agent.sock"))?;
    let _datagrams = UnixDatagram::bind(home.join("datagrams.sock"))?;
    let name = format!("mcpact-faults-{}-{level}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let path = |name: &str| home.join(name).display().to_string();
    let allowed_port = allowed.local_addr()?.port();
    let target = json!({
        "home": path(""),
        "other": path("projects/other"),
        "config": path("mcpact.toml"),
        "state": path("state/approvals"),
        "shared": path(""),
        "readable": path("readable"),
        "writable": path("writable"),
        "socket": path("agent.sock"),
        "datagrams": path("datagrams.sock"),
        "abstract": name,
        "process": std::process::id(),
        "udp": udp.local_addr()?.port(),
        "allowed": allowed_port,
        "forbidden": forbidden.local_addr()?.port(),
    });
    let ports = match level {
        "strict" => format!("allow_ports = [{allowed_port}]\n"),
        _ => String::new(),
    };
    let keys = format!(
        "era = \"legacy\"\nsandbox = {level:?}\ncwd = {:?}\nenv = {{ TMPDIR = {:?} }}\nallow_read = [{:?}]\nallow_write = [{:?}]\n{ports}",
        path("work"),
        path("temporary"),
        path("readable"),
        path("writable"),
    );
    let (python, script) = (python().await?, path("projects/hostile/hostile.py"));
    let words = [python.as_str(), script.as_str(), &target.to_string()];
    let mut gateway = setup.command("hostile", &words, &keys).serve().await?;
    let client = gateway.client("hostile", Era::Legacy).await?;
    let reply = client.call(&json!(1), "attack", json!({})).await?;
    let answers = reply.answers();
    let text = answers
        .first()
        .and_then(|answer| answer["result"]["content"][0]["text"].as_str());
    let text = text.ok_or_else(|| RowError::stage(format!("no report: {answers:?}")))?;
    let attempts = serde_json::from_str(text)?;
    gateway.signal(Signal::TERM);
    gateway.ended().await?;
    Ok((attempts, fs::read_dir(home.join("temporary"))?.count()))
}

fn listener() -> Result<TcpListener, RowError> {
    Ok(TcpListener::bind("127.0.0.1:0")?)
}

/// Path of the interpreter; `python3` may be a script of a version manager.
async fn python() -> Result<String, RowError> {
    let mut command = Command::new("python3");
    let output = command.args(["-c", "import sys; print(sys.executable)"]);
    let output = output.output().await?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match Path::new(&path).is_absolute() {
        true => Ok(path),
        false => Err(RowError::stage("`python3` does not run")),
    }
}
