//! Instructions per call through `mcpact bridge` and `mcpact serve`, counted by callgrind.
//!
//! Only the `mcpact` process runs under valgrind; the client and the upstream server do not. Each cell is run twice with a
//! different number of calls. The difference divided by the extra calls is free of start-up, shutdown and the first call.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::call::{self, Size, TOOL};
use crate::error::LoadError;
use crate::http::{Caller, PATH};
use crate::plan::Programs;
use crate::process::Subject;
use crate::relay::{Behind, Goal, Recipe, Relay};
use crate::role::Era;

/// Name of the upstream server in the config of `mcpact serve`.
pub(crate) const SERVER: &str = "up";

/// Command of `mcpact` under test.
#[derive(Clone, Copy)]
enum Command {
    UpstreamServer,
    Serve,
}

/// Number of calls in the short and in the long run.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// Calls of the short run.
    pub few: u64,
    /// Calls of the long run.
    pub many: u64,
}

/// Instructions per call of one combination.
#[derive(Debug, Serialize)]
pub struct Cell {
    command: &'static str,
    client: &'static str,
    server: &'static str,
    upstream: &'static str,
    instructions: u64,
}

/// A combination of command, client era, server era and upstream transport.
#[derive(Clone, Copy)]
struct Setup {
    command: Command,
    client: Era,
    server: Era,
    upstream: Behind,
}

impl Setup {
    const fn command(self) -> &'static str {
        match self.command {
            Command::UpstreamServer => "bridge",
            Command::Serve => "serve",
        }
    }

    const fn upstream(self) -> &'static str {
        match self.upstream {
            Behind::Http => "HTTP",
            Behind::Stdio | Behind::Many => "stdio",
        }
    }

    fn name(self) -> String {
        let (client, server) = (self.client.as_str(), self.server.as_str());
        format!("{} {client} {server} {}", self.command(), self.upstream())
    }
}

/// Counts every combination with a name, such as `bridge legacy modern stdio`, that contains the filter.
///
/// # Errors
/// A process fails, or a call is not answered.
pub async fn count(
    programs: &Programs,
    mcpact: &Path,
    calls: Calls,
    filter: &str,
) -> Result<Vec<Cell>, LoadError> {
    let mut cells = Vec::new();
    for command in [Command::UpstreamServer, Command::Serve] {
        for upstream in [Behind::Http, Behind::Stdio] {
            for client in [Era::Legacy, Era::Modern] {
                for server in [Era::Legacy, Era::Modern] {
                    let setup = Setup {
                        command,
                        client,
                        server,
                        upstream,
                    };
                    if setup.name().contains(filter) {
                        cells.push(cell(programs, mcpact, calls, setup).await?);
                    }
                }
            }
        }
    }
    Ok(cells)
}

async fn cell(
    programs: &Programs,
    mcpact: &Path,
    calls: Calls,
    setup: Setup,
) -> Result<Cell, LoadError> {
    let few = run(programs, mcpact, setup, calls.few).await?;
    let many = run(programs, mcpact, setup, calls.many).await?;
    let extra = calls.many.saturating_sub(calls.few).max(1);
    Ok(Cell {
        command: setup.command(),
        client: setup.client.as_str(),
        server: setup.server.as_str(),
        upstream: setup.upstream(),
        instructions: many.saturating_sub(few) / extra,
    })
}

/// Instructions of one whole run of the process with this many calls, one after another.
async fn run(
    programs: &Programs,
    mcpact: &Path,
    setup: Setup,
    calls: u64,
) -> Result<u64, LoadError> {
    let folder = programs.named("instructions");
    // Both runs start without cached server metadata.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let load_ours = programs.named("load-ours");
    let era = ["--era", setup.server.as_str()];
    let mut upstream = Subject::start(&load_ours, &[&["http"], &era[..]].concat())?;
    let host = upstream.address().await?;
    let program = load_ours.display().to_string();
    let server = [&[program.as_str(), "stdio"], &era[..]].concat();
    let server: Vec<String> = server.into_iter().map(str::to_owned).collect();
    let goal = Goal {
        config: config(&folder, setup.upstream, &host, &server)?,
        host,
        server,
    };
    let counts = folder.join("callgrind.out");
    let relay = Relay::start(&recipe(mcpact, setup, &folder, &counts), &goal).await?;
    call(&relay.address, setup, calls).await?;
    relay.subject.stop().await?;
    total(&counts)
}

fn recipe(mcpact: &Path, setup: Setup, folder: &Path, counts: &Path) -> Recipe {
    let target: &[&str] = match (setup.command, setup.upstream) {
        (Command::Serve, _) => &["--config", "{config}"],
        (Command::UpstreamServer, Behind::Http) => &["{url}"],
        (Command::UpstreamServer, Behind::Stdio | Behind::Many) => &["--", "{server}"],
    };
    let mcpact = mcpact.display().to_string();
    let mut words = vec![
        String::from("env"),
        // With several workers the count depends on which of them wakes up first.
        String::from("TOKIO_WORKER_THREADS=1"),
        format!("XDG_CACHE_HOME={}", folder.display()),
        format!("XDG_RUNTIME_DIR={}", folder.display()),
        String::from("valgrind"),
        String::from("--tool=callgrind"),
        format!("--callgrind-out-file={}", counts.display()),
    ];
    let arguments = [&mcpact, setup.command(), "--listen", "127.0.0.1:{port}"];
    let arguments = arguments.iter().chain(target);
    words.extend(arguments.map(|word| (*word).to_owned()));
    Recipe {
        name: String::from("mcpact"),
        behind: setup.upstream,
        words,
        path: PATH.to_owned(),
    }
}

/// Writes a config of `mcpact serve` with one server.
pub(crate) fn config(
    folder: &Path,
    upstream: Behind,
    host: &str,
    server: &[String],
) -> Result<PathBuf, LoadError> {
    let entry = match upstream {
        Behind::Http => json!({ "url": format!("http://{host}{PATH}") }),
        Behind::Stdio | Behind::Many => {
            json!({ "command": server.first(), "args": server.get(1..) })
        }
    };
    let file = folder.join("config.json");
    fs::write(
        &file,
        json!({ "mcpServers": { SERVER: entry } }).to_string(),
    )?;
    Ok(file)
}

/// One call more than asked for: its answer is compared with the request.
async fn call(address: &str, setup: Setup, calls: u64) -> Result<(), LoadError> {
    let tool = match setup.command {
        Command::UpstreamServer => TOOL.to_owned(),
        Command::Serve => format!("{SERVER}__{TOOL}"),
    };
    let body = call::request(setup.client, 1, Size::Small).replacen(TOOL, &tool, 1);
    let body = body.into();
    let mut caller = Caller::connect(address, PATH).await?;
    caller.open(setup.client, &tool).await?;
    let answer = caller.call(&body, Size::Small).await?;
    if !Size::Small.is_answer(&answer) {
        return Err(LoadError::wrong(200, &answer));
    }
    for _ in 0..calls {
        caller.call(&body, Size::Small).await?;
    }
    caller.close().await
}

/// The sum that callgrind writes at the end of a run.
fn total(counts: &Path) -> Result<u64, LoadError> {
    let text = fs::read_to_string(counts)?;
    let sum = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let sum = sum.and_then(|sum| sum.trim().parse().ok());
    sum.ok_or_else(|| LoadError::Silent(String::from("callgrind")))
}
