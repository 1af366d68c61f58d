//! Calls through relays, beside the same calls without one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::call::Size;
use crate::error::LoadError;
use crate::http::{self, LoadSpec, PATH, Sessions};
use crate::lines;
use crate::plan::{Effort, Failed, Programs, Row};
use crate::process::Subject;
use crate::relay::{Behind, Goal, Recipe, Relay};
use crate::role::Era;
use crate::sample::{Sample, median};

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
}

const fn small(name: &'static str, front: Era, behind: Behind, server: Era) -> Crossing {
    Crossing {
        name,
        front,
        behind,
        server,
        size: Size::Small,
        open: &[1, 32],
    }
}

const fn large(name: &'static str, front: Era, behind: Behind, server: Era) -> Crossing {
    Crossing {
        size: Size::Large,
        open: &[1],
        ..small(name, front, behind, server)
    }
}

use Behind::{Http, Many, Stdio};
use Era::{Legacy, Modern};

const CROSSINGS: &[Crossing] = &[
    small("bridge, HTTP to HTTP, legacy", Legacy, Http, Legacy),
    small("bridge, HTTP to HTTP, modern", Modern, Http, Modern),
    small(
        "bridge, HTTP to HTTP, legacy to modern",
        Legacy,
        Http,
        Modern,
    ),
    small(
        "bridge, HTTP to HTTP, modern to legacy",
        Modern,
        Http,
        Legacy,
    ),
    small("bridge, HTTP to stdio, legacy", Legacy, Stdio, Legacy),
    small("bridge, HTTP to stdio, modern", Modern, Stdio, Modern),
    small(
        "bridge, HTTP to stdio, legacy to modern",
        Legacy,
        Stdio,
        Modern,
    ),
    small(
        "bridge, HTTP to stdio, modern to legacy",
        Modern,
        Stdio,
        Legacy,
    ),
    large("bridge, HTTP to HTTP, legacy, 1 MiB", Legacy, Http, Legacy),
    large("bridge, HTTP to HTTP, modern, 1 MiB", Modern, Http, Modern),
    large(
        "bridge, HTTP to HTTP, legacy to modern, 1 MiB",
        Legacy,
        Http,
        Modern,
    ),
    large(
        "bridge, HTTP to HTTP, modern to legacy, 1 MiB",
        Modern,
        Http,
        Legacy,
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
    Direct {
        address: String,
    },
    /// The server itself, on pipes.
    Pipes {
        words: Vec<String>,
    },
    Relay {
        relay: Box<Relay>,
        path: String,
    },
    /// It did not start.
    Nowhere,
}

/// Runs all measurements with names that contain the filter; `recipes` are relays of other projects.
///
/// # Errors
/// One of our own subjects failed. Failures of others are reported in the findings.
pub async fn run(
    programs: &Programs,
    effort: Effort,
    filter: &str,
    recipes: &[Recipe],
) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for crossing in CROSSINGS {
        if crossing.name.contains(filter) {
            let (more, failed) = compete(programs, effort, crossing, recipes).await?;
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
    recipes: &[Recipe],
) -> Result<(Vec<Row>, Vec<Failed>), LoadError> {
    // A floor cannot translate: it is measured in front of a server that speaks as its client does.
    let (same, _first) = goal(programs, crossing.front).await?;
    let (other, _second) = goal(programs, crossing.server).await?;
    let mut others = Vec::new();
    for recipe in recipes.iter().filter(|one| one.behind == crossing.behind) {
        others.push(started(recipe, &other).await);
    }
    // Others take their time to start, and a server of ours on pipes hangs up on a client that does not
    // say anything for long.
    let floor = floor(programs, crossing.behind);
    let mut runners = vec![
        runner("direct", direct(programs, crossing.behind, &same)),
        started(&floor, &same).await,
        started(&ours(programs, crossing.behind), &other).await,
    ];
    runners.extend(others);
    for open in crossing.open {
        for runner in &mut runners {
            runner.samples.push(Vec::new());
        }
        for _ in 0..effort.rounds {
            for runner in &mut runners {
                runner.stretch(crossing, *open, effort.stretch).await;
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

async fn started(recipe: &Recipe, goal: &Goal) -> Runner {
    match Relay::start(recipe, goal).await {
        Ok(relay) => {
            let (relay, path) = (Box::new(relay), recipe.path.clone());
            runner(&recipe.name, Way::Relay { relay, path })
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
    let spec = |address, path| LoadSpec {
        address,
        path,
        era: crossing.front,
        workers: open,
        sessions: Sessions::Shared,
        size: crossing.size,
        duration,
    };
    match way {
        Way::Direct { address } => {
            let load = http::load(spec(address, PATH)).await?;
            Ok(load.sample(Duration::ZERO))
        }
        Way::Pipes { words } => {
            let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            let program = words.first().map_or("", String::as_str);
            let mut server = Subject::start(Path::new(program), &arguments)?;
            let load = lines::load(server.pipes()?, open, duration).await?;
            Ok(load.sample(Duration::ZERO))
        }
        Way::Relay { relay, path } => {
            let before = relay.subject.cpu()?;
            let load = http::load(spec(&relay.address, path)).await?;
            Ok(load.sample(relay.subject.cpu()?.saturating_sub(before)))
        }
        Way::Nowhere => Err(LoadError::Silent(String::from("no subject"))),
    }
}

/// A server of one era on HTTP, and how to start one on pipes.
async fn goal(programs: &Programs, era: Era) -> Result<(Goal, Subject), LoadError> {
    let program = programs.named("load-ours");
    let mut server = Subject::start(&program, &["http", "--era", era.as_str()])?;
    let host = server.address().await?;
    let goal = Goal {
        host,
        server: self::server(programs, era),
        config: PathBuf::new(),
    };
    Ok((goal, server))
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
    recipe("floor", programs, "load-floor-proxy", words, behind)
}

fn ours(programs: &Programs, behind: Behind) -> Recipe {
    let words: &[&str] = match behind {
        Http => &["bridge", "--listen", "127.0.0.1:{port}", "{url}"],
        Stdio => &["bridge", "--listen", "127.0.0.1:{port}", "--", "{server}"],
        Many => &[],
    };
    recipe("ours", programs, "mcpact", words, behind)
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
        let is_ours = ["direct", "floor", "ours"].contains(&runner.name.as_str());
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
        for (open, samples) in crossing.open.iter().zip(&runner.samples) {
            let sample = median(samples);
            rows.push(Row::new(
                crossing.name,
                *open,
                &runner.name,
                sample,
                resident,
            ));
        }
    }
    Ok((rows, failures))
}
