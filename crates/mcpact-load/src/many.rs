//! Many servers as one: our gateway beside those of others.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, json};

use crate::call::TOOL;
use crate::error::LoadError;
use crate::http::{Caller, PATH};
use crate::plan::{Effort, Failed, Programs, Row};
use crate::relay::{Behind, Goal, Recipe, Relay};
use crate::role::Era;
use crate::sample::{Sample, Stretch, median};

/// Timeout until every tool is listed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Number of concurrent clients to weigh.
const VISITORS: usize = 1000;
/// Number of clients before the first measurement, to allocate shared state.
const BEFORE: usize = 16;
/// Number of rounds.
const VISITS: usize = 3;

/// Measured property of a gateway.
#[derive(Clone, Copy, Debug)]
enum Question {
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
}

/// Contests with the same servers behind each gateway.
struct Crowd {
    servers: usize,
    tools: usize,
    contests: &'static [Contest],
}

const fn contest(name: &'static str, question: Question) -> Contest {
    Contest { name, question }
}

const CROWDS: &[Crowd] = &[
    Crowd {
        servers: 10,
        tools: 2,
        contests: &[
            contest("gateway, 10 servers, start to first list", Question::Cold),
            contest("gateway, 10 servers, new client to list", Question::Warm),
            contest("gateway, 10 servers, routed call", Question::Call),
        ],
    },
    Crowd {
        servers: 100,
        tools: 20,
        contests: &[contest(
            "gateway, 100 servers with 20 tools each, list",
            Question::List,
        )],
    },
];

/// Runs all contests with names that contain the filter; `recipes` are gateways of other projects.
///
/// # Errors
/// Our own gateway failed. Failures of others are reported in the findings.
pub async fn run(
    programs: &Programs,
    effort: Effort,
    filter: &str,
    recipes: &[Recipe],
) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    let mut all = vec![ours(programs)];
    let others = recipes.iter().filter(|one| one.behind == Behind::Many);
    all.extend(others.cloned());
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for crowd in CROWDS {
        let wanted = crowd.contests.iter();
        let wanted: Vec<&Contest> = wanted.filter(|one| one.name.contains(filter)).collect();
        for recipe in all.iter().filter(|_| !wanted.is_empty()) {
            let mut gateway = Gateway::new(programs, crowd, recipe)?;
            for contest in &wanted {
                let measured = gateway.measure(contest.question, effort).await;
                match measured {
                    Ok(sample) => rows.push(gateway.row(contest.name, sample)?),
                    Err(trouble) if recipe.name == OURS => return Err(trouble),
                    Err(trouble) => {
                        failures.push(Failed::new(contest.name, &recipe.name, &trouble));
                    }
                }
            }
        }
    }
    Ok((rows, failures))
}

/// Memory of a session that has called every server of our gateway: of the first clients, and of the last ones after
/// all others have left.
///
/// # Errors
/// The gateway or a call failed.
pub async fn weigh(programs: &Programs) -> Result<[f64; 2], LoadError> {
    let recipe = ours(programs);
    let mut gateway = Gateway::new(programs, &CROWDS[0], &recipe)?;
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

const OURS: &str = "ours";

fn ours(programs: &Programs) -> Recipe {
    let program = programs.named("mcpact").display().to_string();
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:{port}",
        "--config",
        "{config}",
    ];
    let words = words.iter().map(|word| (*word).to_owned());
    Recipe {
        name: OURS.to_owned(),
        behind: Behind::Many,
        words: std::iter::once(program).chain(words).collect(),
        path: PATH.to_owned(),
    }
}

/// One of those that are compared, with its servers.
struct Gateway<'a> {
    recipe: &'a Recipe,
    goal: Goal,
    expected: usize,
    relay: Option<Relay>,
}

impl<'a> Gateway<'a> {
    fn new(programs: &Programs, crowd: &Crowd, recipe: &'a Recipe) -> Result<Self, LoadError> {
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
        })
    }

    async fn measure(&mut self, question: Question, effort: Effort) -> Result<Sample, LoadError> {
        let lists = !matches!(question, Question::Call);
        if lists && self.recipe.path != PATH {
            let why = "it serves each server apart and has no list of all";
            return Err(LoadError::Theirs(why.to_owned()));
        }
        let mut samples = Vec::new();
        for _ in 0..effort.rounds {
            let stretch = match question {
                Question::Cold => self.cold().await?,
                Question::Warm => self.warm(effort.stretch).await?,
                Question::List => self.list(effort.stretch).await?,
                Question::Call => self.call(effort.stretch).await?,
            };
            samples.push(stretch.sample(Duration::ZERO));
        }
        Ok(median(&samples))
    }

    fn row(&self, contest: &'static str, sample: Sample) -> Result<Row, LoadError> {
        let resident = self.relay.as_ref().map(|relay| relay.subject.peak());
        let resident = resident.transpose()?;
        Ok(Row::new(contest, 1, &self.recipe.name, sample, resident))
    }

    /// Starts without any cached state.
    async fn cold(&mut self) -> Result<Stretch, LoadError> {
        self.relay = None;
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
        let stretch = repeated(duration, async || self.whole(&mut caller).await).await?;
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
    let start = Instant::now();
    let mut stretch = Stretch::default();
    while stretch.latencies.is_empty() || start.elapsed() < duration {
        let before = Instant::now();
        spec().await?;
        stretch
            .latencies
            .push(Stretch::nanoseconds(before.elapsed()));
    }
    stretch.elapsed = Stretch::nanoseconds(start.elapsed());
    Ok(stretch)
}

/// A file with `mcpServers`, which every gateway reads.
fn config(programs: &Programs, crowd: &Crowd) -> Result<PathBuf, LoadError> {
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
