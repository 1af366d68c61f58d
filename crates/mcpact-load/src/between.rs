//! Calls through relays, beside the same calls without one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::call::{Size, TOOL};
use crate::error::LoadError;
use crate::http::{self, LoadSpec, PATH, Sessions};
use crate::instructions::{SERVER, config};
use crate::lines;
use crate::plan::{Effort, Failed, Programs, Row, Selection};
use crate::process::Subject;
use crate::relay::{Behind, Goal, Recipe, Relay};
use crate::role::Era;
use crate::sample::Sample;

/// Subject of a contest: the server without a relay.
const DIRECT: &str = "direct";

/// Subject of a contest: the bare proxy.
pub(crate) const FLOOR: &str = "floor";

/// Subject of a contest: `mcpact bridge`.
const BRIDGE: &str = "bridge";

/// Subject of a contest: `mcpact serve` with one server in its config.
pub(crate) const SERVE: &str = "serve";

/// Time over its plan after which a measurement fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls of a client of one era to a server of one era.
struct Crossing {
    name: &'static str,
    front: Era,
    behind: Behind,
    server: Era,
    size: Size,
    open: &'static [usize],
    rivals: Rivals,
}

/// Relays of a contest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rivals {
    /// Ours, those of other projects, the floor and the server itself.
    All,
    /// Ours and the floor.
    Ours,
}

const fn relay(name: &'static str, era: Era, behind: Behind) -> Crossing {
    Crossing {
        name,
        front: era,
        behind,
        server: era,
        size: Size::Small,
        open: &[1, 32],
        rivals: Rivals::All,
    }
}

const fn translate(name: &'static str, front: Era, behind: Behind, server: Era) -> Crossing {
    Crossing {
        server,
        open: &[32],
        rivals: Rivals::Ours,
        ..relay(name, front, behind)
    }
}

const fn large(name: &'static str, era: Era, behind: Behind, size: Size) -> Crossing {
    Crossing {
        size,
        open: &[1],
        rivals: Rivals::Ours,
        ..relay(name, era, behind)
    }
}

use Behind::{Http, Many, Stdio};
use Era::{Legacy, Modern};

const ONE: Size = Size::Quoted { mebibytes: 1 };
const TEN: Size = Size::Quoted { mebibytes: 10 };

const CROSSINGS: &[Crossing] = &[
    relay("relay, HTTP to HTTP, legacy", Legacy, Http),
    relay("relay, HTTP to HTTP, modern", Modern, Http),
    relay("relay, HTTP to stdio, legacy", Legacy, Stdio),
    relay("relay, HTTP to stdio, modern", Modern, Stdio),
    translate(
        "translate, HTTP to HTTP, legacy to modern",
        Legacy,
        Http,
        Modern,
    ),
    translate(
        "translate, HTTP to HTTP, modern to legacy",
        Modern,
        Http,
        Legacy,
    ),
    translate(
        "translate, HTTP to stdio, legacy to modern",
        Legacy,
        Stdio,
        Modern,
    ),
    translate(
        "translate, HTTP to stdio, modern to legacy",
        Modern,
        Stdio,
        Legacy,
    ),
    large("large, HTTP to HTTP, legacy, 1 MiB echo", Legacy, Http, ONE),
    large("large, HTTP to HTTP, modern, 1 MiB echo", Modern, Http, ONE),
    large(
        "large, HTTP to stdio, legacy, 1 MiB echo",
        Legacy,
        Stdio,
        ONE,
    ),
    large(
        "large, HTTP to stdio, modern, 1 MiB echo",
        Modern,
        Stdio,
        ONE,
    ),
    large(
        "large, HTTP to HTTP, legacy, 10 MiB echo",
        Legacy,
        Http,
        TEN,
    ),
    large(
        "large, HTTP to HTTP, modern, 10 MiB echo",
        Modern,
        Http,
        TEN,
    ),
    large(
        "large, HTTP to stdio, legacy, 10 MiB echo",
        Legacy,
        Stdio,
        TEN,
    ),
    large(
        "large, HTTP to stdio, modern, 10 MiB echo",
        Modern,
        Stdio,
        TEN,
    ),
    large(
        "large, HTTP to HTTP, legacy, 1 MiB result",
        Legacy,
        Http,
        Size::Large,
    ),
    large(
        "large, HTTP to HTTP, modern, 1 MiB result",
        Modern,
        Http,
        Size::Large,
    ),
];

/// A subject under load.
struct Runner {
    name: String,
    way: Way,
    /// The samples for each number of open calls.
    samples: Vec<Vec<Sample>>,
    failed: Option<LoadError>,
}

enum Way {
    /// The server itself, on HTTP.
    Direct { address: String },
    /// The server itself, on pipes.
    Pipes { words: Vec<String> },
    Relay {
        relay: Box<Relay>,
        path: String,
        /// Name of the tool there.
        tool: String,
    },
    /// It did not start.
    Nowhere,
}

/// Runs the selected measurements; `recipes` are relays of other projects.
///
/// # Errors
/// One of our own subjects failed. Failures of others are reported in the findings.
pub async fn run(
    programs: &Programs,
    effort: Effort,
    selection: &Selection,
    recipes: &[Recipe],
) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for crossing in CROSSINGS {
        if selection.has(crossing.name) {
            let (more, failed) = compete(programs, effort, crossing, selection, recipes).await?;
            rows.extend(more);
            failures.extend(failed);
        }
    }
    Ok((rows, failures))
}

/// Starts all subjects, then measures them in turns.
async fn compete(
    programs: &Programs,
    effort: Effort,
    crossing: &Crossing,
    selection: &Selection,
    recipes: &[Recipe],
) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    // A floor cannot translate: it is measured in front of a server that speaks as its client does.
    let (same, _first) = goal(programs, crossing.behind, crossing.front).await?;
    let (other, _second) = goal(programs, crossing.behind, crossing.server).await?;
    let has_all = crossing.rivals == Rivals::All;
    let mut others = Vec::new();
    for recipe in recipes {
        if has_all && recipe.behind == crossing.behind {
            others.push(started(recipe, &other, TOOL).await);
        }
    }
    // Others take their time to start, and a server of ours on pipes hangs up on a client that does not
    // say anything for long.
    let mut runners = Vec::new();
    if has_all && selection.takes(DIRECT) {
        runners.push(runner(DIRECT, direct(programs, crossing.behind, &same)));
    }
    runners.push(
        started(
            &floor(programs, crossing.behind),
            &same,
            crossing.size.tool(),
        )
        .await,
    );
    if selection.takes(BRIDGE) {
        let recipe = bridge(programs, crossing.behind);
        runners.push(started(&recipe, &other, crossing.size.tool()).await);
    }
    if selection.takes(SERVE) {
        let tool = format!("{SERVER}__{}", crossing.size.tool());
        runners.push(started(&serve(programs, crossing.behind), &other, &tool).await);
    }
    runners.extend(others);
    for open in crossing.open {
        for runner in &mut runners {
            runner.samples.push(Vec::new());
        }
        for round in 0..effort.rounds {
            // Another one begins in each round.
            let count = runners.len();
            for place in 0..count {
                if let Some(runner) = runners.get_mut((place + round) % count) {
                    runner.stretch(crossing, *open, effort.stretch).await;
                }
            }
        }
    }
    told(crossing, runners)
}

fn runner(name: &str, way: Way) -> Runner {
    Runner {
        name: name.to_owned(),
        way,
        samples: Vec::new(),
        failed: None,
    }
}

async fn started(recipe: &Recipe, goal: &Goal, tool: &str) -> Runner {
    match Relay::start(recipe, goal).await {
        Ok(relay) => {
            let (relay, path, tool) = (Box::new(relay), recipe.path.clone(), tool.to_owned());
            runner(&recipe.name, Way::Relay { relay, path, tool })
        }
        Err(trouble) => Runner {
            failed: Some(trouble),
            ..runner(&recipe.name, Way::Nowhere)
        },
    }
}

impl Runner {
    /// Measures one interval; a subject that has failed once is skipped.
    async fn stretch(&mut self, crossing: &Crossing, open: usize, duration: Duration) {
        if self.failed.is_some() {
            return;
        }
        let measured = tokio::time::timeout(
            duration + PATIENCE,
            measure(&self.way, crossing, open, duration),
        );
        match measured.await {
            Ok(Ok(sample)) => self
                .samples
                .last_mut()
                .into_iter()
                .for_each(|samples| samples.push(sample)),
            Ok(Err(trouble)) => self.failed = Some(trouble),
            Err(_) => self.failed = Some(LoadError::Silent(self.name.clone())),
        }
    }
}

async fn measure(
    way: &Way,
    crossing: &Crossing,
    open: usize,
    duration: Duration,
) -> Result<Sample, LoadError> {
    let spec = |address, path, tool| LoadSpec {
        address,
        path,
        era: crossing.front,
        workers: open,
        sessions: Sessions::Shared,
        size: crossing.size,
        tool,
        duration,
    };
    match way {
        Way::Direct { address } => {
            let load = http::load(spec(address, PATH, crossing.size.tool())).await?;
            Ok(load.sample(Duration::ZERO))
        }
        Way::Pipes { words } => {
            let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            let program = words.first().map_or("", String::as_str);
            let mut server = Subject::start(Path::new(program), &arguments)?;
            let load = lines::load(server.pipes()?, open, duration).await?;
            Ok(load.sample(Duration::ZERO))
        }
        Way::Relay { relay, path, tool } => {
            let before = relay.subject.cpu()?;
            let load = http::load(spec(&relay.address, path, tool)).await?;
            Ok(load.sample(relay.subject.cpu()?.saturating_sub(before)))
        }
        Way::Nowhere => Err(LoadError::Silent(String::from("no subject"))),
    }
}

/// A server of one era on HTTP, how to start one on pipes, and a config of `mcpact serve` with the one behind.
pub(crate) async fn goal(
    programs: &Programs,
    behind: Behind,
    era: Era,
) -> Result<(Goal, Subject), LoadError> {
    let program = programs.named("load-ours");
    let mut subject = Subject::start(&program, &["http", "--era", era.as_str()])?;
    let host = subject.address().await?;
    let server = self::server(programs, era);
    let folder = programs.named("gateways").join(era.as_str());
    fs::create_dir_all(&folder)?;
    let goal = Goal {
        config: config(&folder, behind, &host, &server)?,
        host,
        server,
    };
    Ok((goal, subject))
}

/// The words that start a server of one era on pipes.
fn server(programs: &Programs, era: Era) -> Vec<String> {
    let program = programs.named("load-ours").display().to_string();
    let words = [program.as_str(), "stdio", "--era", era.as_str()];
    words.map(str::to_owned).to_vec()
}

fn direct(programs: &Programs, behind: Behind, goal: &Goal) -> Way {
    match behind {
        Http => Way::Direct {
            address: goal.host.clone(),
        },
        Stdio => Way::Pipes {
            // The load over pipes speaks as legacy clients do.
            words: server(programs, Era::Legacy),
        },
        Many => Way::Nowhere,
    }
}

fn floor(programs: &Programs, behind: Behind) -> Recipe {
    let words: &[&str] = match behind {
        Http => &["http", "{port}", "{host}"],
        Stdio => &["pipe", "{port}", "{server}"],
        Many => &[],
    };
    recipe(FLOOR, programs, "load-floor-proxy", words, behind)
}

pub(crate) fn bridge(programs: &Programs, behind: Behind) -> Recipe {
    let words: &[&str] = match behind {
        Http => &["bridge", "--listen", "127.0.0.1:{port}", "{url}"],
        Stdio => &["bridge", "--listen", "127.0.0.1:{port}", "--", "{server}"],
        Many => &[],
    };
    recipe(BRIDGE, programs, "mcpact", words, behind)
}

pub(crate) fn serve(programs: &Programs, behind: Behind) -> Recipe {
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:{port}",
        "--config",
        "{config}",
    ];
    recipe(SERVE, programs, "mcpact", &words, behind)
}

fn recipe(
    name: &str,
    programs: &Programs,
    program: &str,
    words: &[&str],
    behind: Behind,
) -> Recipe {
    let program = programs.named(program).display().to_string();
    let words = words.iter().map(|word| (*word).to_owned());
    Recipe {
        name: name.to_owned(),
        behind,
        words: std::iter::once(program).chain(words).collect(),
        path: PATH.to_owned(),
    }
}

fn told(crossing: &Crossing, runners: Vec<Runner>) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for runner in runners {
        let is_ours = [DIRECT, FLOOR, BRIDGE, SERVE].contains(&runner.name.as_str());
        if let Some(trouble) = runner.failed {
            if is_ours {
                return Err(trouble);
            }
            failures.push(Failed::new(crossing.name, &runner.name, &trouble));
            continue;
        }
        let resident = match &runner.way {
            Way::Relay { relay, .. } => Some(relay.subject.peak()?),
            Way::Direct { .. } | Way::Pipes { .. } | Way::Nowhere => None,
        };
        for (open, samples) in crossing.open.iter().zip(runner.samples) {
            rows.push(Row::new(
                crossing.name,
                *open,
                &runner.name,
                samples,
                resident,
            ));
        }
    }
    Ok((rows, failures))
}
