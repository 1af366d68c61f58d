//! Many servers as one: our gateway beside those of others.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::between::{FLOOR, SERVE, serve};
use crate::call::TOOL;
use crate::error::LoadError;
use crate::http::{Caller, PATH};
use crate::lines;
use crate::plan::{Effort, Failed, Programs, Row, Selection};
use crate::process::{Subject, own_cpu};
use crate::raw::RawCaller;
use crate::relay::{Behind, Goal, Recipe, Relay};
use crate::role::Era;
use crate::sample::{Sample, Stretch};

/// Timeout until every tool is listed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Timeout until a gateway and its servers have ended.
const END: Duration = Duration::from_secs(10);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// Number of concurrent clients to weigh.
const VISITORS: usize = 1000;
/// Number of clients before the first measurement, to allocate shared state.
const BEFORE: usize = 16;
/// Number of rounds.
const VISITS: usize = 3;

/// Processes that are started at a time without a gateway.
const PARALLEL: usize = 16;

/// Measured property of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// From its start to the first initialized client; the floor starts and initializes the servers itself.
    First,
    /// From its start to the first whole list.
    Cold,
    /// The whole list, for a client that has just come.
    Warm,
    /// The whole list, again and again.
    List,
    /// A call that goes to one of the servers.
    Call,
}

struct Contest {
    name: &'static str,
    question: Question,
    has_peers: bool,
}

/// Number of servers behind a gateway, and of tools of each.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Number of servers.
    pub servers: usize,
    /// Number of tools of each server.
    pub tools: usize,
}

const TEN: Crowd = Crowd {
    servers: 10,
    tools: 2,
};

const HUNDRED: Crowd = Crowd {
    servers: 100,
    tools: 20,
};

const fn contest(name: &'static str, question: Question, has_peers: bool) -> Contest {
    Contest {
        name,
        question,
        has_peers,
    }
}

/// Contests with the same servers behind each gateway.
const CONTESTS: &[(Crowd, &[Contest])] = &[
    (
        TEN,
        &[
            contest(
                "gateway, 10 servers, start to first list",
                Question::Cold,
                true,
            ),
            contest(
                "gateway, 10 servers, new client to list",
                Question::Warm,
                true,
            ),
            contest("gateway, 10 servers, routed call", Question::Call, true),
        ],
    ),
    (
        HUNDRED,
        &[
            contest(
                "gateway, 100 servers, start to first client",
                Question::First,
                false,
            ),
            contest(
                "gateway, 100 servers, start to first list",
                Question::Cold,
                false,
            ),
            contest(
                "gateway, 100 servers, list of 2,000 tools",
                Question::List,
                true,
            ),
        ],
    ),
];

/// Runs the selected contests; `recipes` are gateways of other projects.
///
/// # Errors
/// Our own gateway failed. Failures of others are reported in the findings.
pub async fn run(
    programs: &Programs,
    effort: Effort,
    selection: &Selection,
    recipes: &[Recipe],
) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    let ours = serve(programs, Behind::Many);
    let others = recipes.iter().filter(|one| one.behind == Behind::Many);
    let recipes: Vec<&Recipe> = std::iter::once(&ours).chain(others).collect();
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for (crowd, contests) in CONTESTS {
        let wanted = contests.iter().filter(|one| selection.has(one.name));
        let mut gateways = Vec::new();
        for recipe in &recipes {
            gateways.push(Gateway::new(programs, *crowd, recipe)?);
        }
        for contest in wanted {
            let takes_part = |gateway: &&mut Gateway<'_>| contest.has_peers || gateway.is_ours();
            let mut chosen: Vec<&mut Gateway<'_>> =
                gateways.iter_mut().filter(takes_part).collect();
            let mut floor = Vec::new();
            for _ in 0..effort.rounds {
                if contest.question == Question::First {
                    floor.push(bare_start(programs, *crowd).await?.sample(Duration::ZERO));
                }
                for gateway in &mut chosen {
                    gateway.round(contest.question, effort.stretch).await;
                }
            }
            if !floor.is_empty() {
                rows.push(Row::new(contest.name, 1, FLOOR, floor, None));
            }
            for gateway in chosen {
                match gateway.finish(contest.name) {
                    Ok(row) => rows.push(row),
                    Err(trouble) if gateway.is_ours() => return Err(trouble),
                    Err(trouble) => {
                        failures.push(Failed::new(contest.name, &gateway.recipe.name, &trouble));
                    }
                }
            }
        }
        for gateway in gateways {
            end(gateway.relay).await;
        }
    }
    Ok((rows, failures))
}

/// Starts `mcpact serve` with these servers; all of them run.
///
/// # Errors
/// It failed.
pub async fn started(programs: &Programs, crowd: Crowd) -> Result<Relay, LoadError> {
    let recipe = serve(programs, Behind::Many);
    let mut gateway = Gateway::new(programs, crowd, &recipe)?;
    gateway.whole_list().await?.close().await?;
    let silent = || LoadError::Silent(recipe.name.clone());
    gateway.relay.ok_or_else(silent)
}

/// Name of a tool of the first server behind `mcpact serve`.
#[must_use]
pub fn tool(name: &str) -> String {
    format!("s00__{name}")
}

/// Starts the servers without a gateway and initializes each.
async fn bare_start(programs: &Programs, crowd: Crowd) -> Result<Stretch, LoadError> {
    let program = programs.named("load-ours");
    let start = Instant::now();
    let places = Arc::new(Semaphore::new(PARALLEL));
    let mut starting = JoinSet::new();
    for _ in 0..crowd.servers {
        let (program, places) = (program.clone(), Arc::clone(&places));
        starting.spawn(async move {
            let _place = places.acquire_owned().await;
            let tools = crowd.tools.to_string();
            let words = ["stdio", "--era", "legacy", "--tools", &tools];
            let mut server = Subject::start(&program, &words)?;
            let pipes = lines::initialized(server.pipes()?).await?;
            Ok::<_, LoadError>((server, pipes))
        });
    }
    let mut servers = Vec::new();
    while let Some(started) = starting.join_next().await {
        servers.push(started.map_err(std::io::Error::from)??);
    }
    let stretch = once(start);
    for (server, pipes) in servers {
        drop(pipes);
        server.stop().await?;
    }
    Ok(stretch)
}

/// Ends a gateway, with its servers if it ends in time.
async fn end(relay: Option<Relay>) {
    if let Some(relay) = relay {
        // One that does not end is killed.
        let _ = tokio::time::timeout(END, relay.subject.stop()).await;
    }
}

/// Memory of a session that has called every server of our gateway: of the first clients, and of the last ones after
/// all others have left.
///
/// # Errors
/// The gateway or a call failed.
pub async fn weigh(programs: &Programs) -> Result<[f64; 2], LoadError> {
    let recipe = serve(programs, Behind::Many);
    let mut gateway = Gateway::new(programs, TEN, &recipe)?;
    let names = gateway.whole_list().await?.tools().await?;
    let is_echo = |name: &String| name.ends_with(TOOL);
    let echoes: Vec<String> = names.into_iter().filter(is_echo).collect();
    let before = gateway.visit(BEFORE, &echoes).await?;
    let mut weights = Vec::new();
    for _ in 0..VISITS {
        let held = gateway.visit(VISITORS, &echoes).await?;
        weights.push(held.saturating_sub(before) as f64 / VISITORS as f64);
    }
    Ok([weights[0], weights[VISITS - 1]])
}

/// One of those that are compared, with its servers.
struct Gateway<'a> {
    recipe: &'a Recipe,
    goal: Goal,
    expected: usize,
    relay: Option<Relay>,
    samples: Vec<Sample>,
    failed: Option<LoadError>,
}

impl<'a> Gateway<'a> {
    fn new(programs: &Programs, crowd: Crowd, recipe: &'a Recipe) -> Result<Self, LoadError> {
        let goal = Goal {
            host: String::new(),
            server: Vec::new(),
            config: config(programs, crowd)?,
        };
        Ok(Self {
            recipe,
            goal,
            expected: crowd.servers * crowd.tools,
            relay: None,
            samples: Vec::new(),
            failed: None,
        })
    }

    fn is_ours(&self) -> bool {
        self.recipe.name == SERVE
    }

    /// Measures one round; a gateway that has failed once is skipped.
    async fn round(&mut self, question: Question, duration: Duration) {
        if self.failed.is_some() {
            return;
        }
        match self.measure(question, duration).await {
            Ok(stretch) => self.samples.push(stretch.sample(Duration::ZERO)),
            Err(trouble) => self.failed = Some(trouble),
        }
    }

    async fn measure(
        &mut self,
        question: Question,
        duration: Duration,
    ) -> Result<Stretch, LoadError> {
        if question != Question::Call && self.recipe.path != PATH {
            let why = "it serves each server apart and has no list of all";
            return Err(LoadError::Theirs(why.to_owned()));
        }
        match question {
            Question::First => self.first().await,
            Question::Cold => self.cold().await,
            Question::Warm => self.warm(duration).await,
            Question::List => self.list(duration).await,
            Question::Call => self.call(duration).await,
        }
    }

    /// Result of the contest; the next one begins without it.
    fn finish(&mut self, contest: &'static str) -> Result<Row, LoadError> {
        let samples = std::mem::take(&mut self.samples);
        if let Some(trouble) = self.failed.take() {
            return Err(trouble);
        }
        let resident = self.relay.as_ref().map(|relay| relay.subject.peak());
        let resident = resident.transpose()?;
        Ok(Row::new(contest, 1, &self.recipe.name, samples, resident))
    }

    /// Starts without any cached state.
    async fn first(&mut self) -> Result<Stretch, LoadError> {
        end(self.relay.take()).await;
        forget().await?;
        let start = Instant::now();
        self.relay().await?;
        let mut caller = self.caller().await?;
        let stretch = once(start);
        caller.close().await?;
        Ok(stretch)
    }

    /// Starts without any cached state.
    async fn cold(&mut self) -> Result<Stretch, LoadError> {
        end(self.relay.take()).await;
        forget().await?;
        let start = Instant::now();
        self.whole_list().await?;
        Ok(once(start))
    }

    async fn warm(&mut self, duration: Duration) -> Result<Stretch, LoadError> {
        self.whole_list().await?;
        repeated(duration, async || {
            let mut caller = self.caller().await?;
            self.whole(&mut caller).await?;
            caller.close().await
        })
        .await
    }

    async fn list(&mut self, duration: Duration) -> Result<Stretch, LoadError> {
        let mut caller = self.whole_list().await?;
        // The generator does not parse the lists that count: that would take longer than the gateway does.
        let pages = caller.pages().await?;
        let address = self.relay.as_ref().map_or("", |relay| &relay.address);
        let mut connection = RawCaller::connect(address).await?;
        let stretch = repeated(duration, async || {
            for (request, length) in &pages {
                let reply = connection.call(request).await?;
                // Ids of events may grow.
                if reply.status != 200 || reply.length.abs_diff(*length) > 16 {
                    return Err(connection.wrong());
                }
            }
            Ok(())
        });
        let stretch = stretch.await?;
        caller.close().await?;
        Ok(stretch)
    }

    async fn call(&mut self, duration: Duration) -> Result<Stretch, LoadError> {
        self.relay().await?;
        let mut caller = self.caller().await?;
        let names = caller.tools().await?;
        let is_echo = |name: &&String| name.ends_with(TOOL);
        let tool = names.iter().find(is_echo).cloned().unwrap_or_default();
        let stretch = repeated(duration, async || caller.echo(&tool).await).await?;
        caller.close().await?;
        Ok(stretch)
    }

    /// Opens clients that call each of these tools, stay until all have, and leave; returns the memory held for them.
    async fn visit(&self, count: usize, tools: &[String]) -> Result<u64, LoadError> {
        let mut callers = Vec::new();
        for _ in 0..count {
            let mut caller = self.caller().await?;
            for tool in tools {
                caller.echo(tool).await?;
            }
            callers.push(caller);
        }
        let relay = self.relay.as_ref();
        let silent = || LoadError::Silent(self.recipe.name.clone());
        let held = relay.ok_or_else(silent)?.subject.resident()?;
        for caller in &mut callers {
            caller.close().await?;
        }
        Ok(held)
    }

    async fn relay(&mut self) -> Result<&Relay, LoadError> {
        let relay = match self.relay.take() {
            Some(relay) => relay,
            None => Relay::start(self.recipe, &self.goal).await?,
        };
        Ok(self.relay.insert(relay))
    }

    /// A client that has just come; the gateway runs.
    async fn caller(&self) -> Result<Caller, LoadError> {
        let relay = self.relay.as_ref();
        let address = relay.map_or("", |relay| relay.address.as_str());
        let mut caller = Caller::connect(address, &self.recipe.path).await?;
        caller.open(Era::Legacy, TOOL).await?;
        Ok(caller)
    }

    /// A client that has seen every tool.
    async fn whole_list(&mut self) -> Result<Caller, LoadError> {
        let start = Instant::now();
        self.relay().await?;
        let mut caller = self.caller().await?;
        while let Err(trouble) = self.whole(&mut caller).await {
            if start.elapsed() > PATIENCE {
                return Err(trouble);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(caller)
    }

    /// The list, which must be whole.
    async fn whole(&self, caller: &mut Caller) -> Result<(), LoadError> {
        let count = caller.tools().await?.len();
        if count >= self.expected {
            return Ok(());
        }
        let body = format!("{count} of {} tools", self.expected);
        Err(LoadError::wrong(200, body.as_bytes()))
    }
}

fn once(start: Instant) -> Stretch {
    let took = Stretch::nanoseconds(start.elapsed());
    Stretch {
        latencies: vec![took],
        elapsed: took,
        ..Stretch::default()
    }
}

/// The same thing one after the other, at least once.
async fn repeated(
    duration: Duration,
    mut spec: impl AsyncFnMut() -> Result<(), LoadError>,
) -> Result<Stretch, LoadError> {
    let (start, cpu) = (Instant::now(), own_cpu());
    let mut stretch = Stretch::default();
    while stretch.latencies.is_empty() || start.elapsed() < duration {
        let before = Instant::now();
        spec().await?;
        stretch
            .latencies
            .push(Stretch::nanoseconds(before.elapsed()));
    }
    let used = own_cpu().saturating_sub(cpu);
    stretch.generator = used.as_secs_f64() / start.elapsed().as_secs_f64();
    stretch.elapsed = Stretch::nanoseconds(start.elapsed());
    Ok(stretch)
}

/// A file with `mcpServers`, which every gateway reads.
fn config(programs: &Programs, crowd: Crowd) -> Result<PathBuf, LoadError> {
    let program = programs.named("load-ours").display().to_string();
    let tools = crowd.tools.to_string();
    let entry = json!({
        "command": program,
        "args": ["stdio", "--era", "legacy", "--tools", tools],
    });
    let servers = (0..crowd.servers).map(|number| (format!("s{number:02}"), entry.clone()));
    let servers: Map<_, _> = servers.collect();
    let folder = programs.named("gateways");
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{}.json", crowd.servers));
    fs::write(&file, json!({ "mcpServers": servers }).to_string())?;
    Ok(file)
}

/// Removes what gateways keep on disk, if the load was given a place for it.
async fn forget() -> Result<(), LoadError> {
    let Some(cache) = std::env::var_os("XDG_CACHE_HOME") else {
        return Ok(());
    };
    let cache = Path::new(&cache).join("mcpact");
    let late = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir_all(&cache) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // One that was killed may write until it is dead.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && Instant::now() < late => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
