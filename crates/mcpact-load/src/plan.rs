//! Measurements and their order.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::between;
use crate::call::{Size, TOOL};
use crate::cost;
use crate::error::LoadError;
use crate::http::{self, LoadSpec, PATH, Sessions};
use crate::lines;
use crate::many;
use crate::memory::{self, Stream};
use crate::process::{Subject, capture};
use crate::relay::Recipe;
use crate::role::Era;
use crate::sample::{Sample, Stretch};

/// Numbers of concurrent calls: sequential, and many at once.
const OPEN: [usize; 2] = [1, 32];

/// Maximum number of rounds in which memory is measured.
const WEIGHED: usize = 3;

/// Number of idle sessions of a relay to weigh: `bridge` has at most 1,000 upstream sessions by default.
const RELAYED: usize = 900;

/// Number of idle sessions to weigh.
const SESSIONS: usize = 1000;

/// Number and length of intervals.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The stretches of each subject; they alternate with those of its rivals.
    pub rounds: usize,
    /// The length of one stretch.
    pub stretch: Duration,
}

/// Parts of the whole run.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Parts of names of contests; all contests without any.
    pub contests: Vec<String>,
    /// Names of our own relays besides the floor; all without any.
    pub subjects: Vec<String>,
}

impl Selection {
    /// Returns `true` if the contest is measured.
    #[must_use]
    pub fn has(&self, contest: &str) -> bool {
        self.contests.is_empty() || self.contests.iter().any(|part| contest.contains(part))
    }

    /// Returns `true` if the subject takes part.
    #[must_use]
    pub fn takes(&self, subject: &str) -> bool {
        self.subjects.is_empty() || self.subjects.iter().any(|name| name == subject)
    }
}

/// The programs, which lie beside each other.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those beside the program that runs.
    ///
    /// # Errors
    /// The system does not tell where that is.
    pub fn beside_us() -> Result<Self, LoadError> {
        let own = std::env::current_exe()?;
        let folder = own.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self { folder })
    }

    fn path(&self, subject: &Rival) -> PathBuf {
        self.named(subject.program)
    }

    /// The one of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// One of those that are compared.
#[derive(Debug)]
struct Rival {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const fn rival(
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> Rival {
    Rival {
        name,
        program,
        arguments,
    }
}

const OURS: Rival = rival("ours", "load-ours", &["http"]);
const THEIRS: Rival = rival("rmcp", "load-rmcp", &["http"]);
const THEIRS_STATELESS: Rival = rival(
    "rmcp without sessions",
    "load-rmcp",
    &["http", "--legacy", "stateless"],
);
const FLOOR: Rival = rival("floor", "load-floor", &["http"]);

/// A way to load a subject.
#[derive(Clone, Copy, Debug)]
enum Way {
    Server(Era),
    Lines,
    Client(Era),
    LineClient,
}

struct Contest {
    name: &'static str,
    way: Way,
    rivals: &'static [Rival],
}

const CONTESTS: &[Contest] = &[
    Contest {
        name: "server, HTTP, legacy",
        way: Way::Server(Era::Legacy),
        rivals: &[OURS, THEIRS, THEIRS_STATELESS, FLOOR],
    },
    Contest {
        name: "server, HTTP, modern",
        way: Way::Server(Era::Modern),
        rivals: &[OURS, THEIRS_STATELESS, FLOOR],
    },
    Contest {
        name: "server, stdio",
        way: Way::Lines,
        rivals: &[
            rival("ours", "load-ours", &["stdio"]),
            rival("rmcp", "load-rmcp", &["stdio"]),
            rival("floor", "load-floor", &["stdio"]),
        ],
    },
    Contest {
        name: "client, HTTP, legacy",
        way: Way::Client(Era::Legacy),
        rivals: &[OURS, THEIRS],
    },
    Contest {
        name: "client, HTTP, modern",
        way: Way::Client(Era::Modern),
        rivals: &[OURS, THEIRS],
    },
    Contest {
        name: "client, stdio",
        way: Way::LineClient,
        rivals: &[OURS, THEIRS],
    },
];

/// The numbers of one subject in one contest.
#[derive(Debug, Serialize)]
pub struct Row {
    contest: &'static str,
    open: usize,
    subject: String,
    /// Figures of each round.
    rounds: Vec<Sample>,
    /// The most memory that it held, in bytes, where that was looked at.
    resident: Option<u64>,
}

impl Row {
    /// Creates the result of a subject with this many concurrent calls.
    #[must_use]
    pub fn new(
        contest: &'static str,
        open: usize,
        subject: &str,
        rounds: Vec<Sample>,
        resident: Option<u64>,
    ) -> Self {
        Self {
            contest,
            open,
            subject: subject.to_owned(),
            rounds,
            resident,
        }
    }
}

/// A subject of others that could not do what was asked of it.
#[derive(Debug, Serialize)]
pub struct Failed {
    contest: &'static str,
    subject: String,
    why: String,
}

impl Failed {
    /// Creates a failure.
    #[must_use]
    pub fn new(contest: &'static str, subject: &str, why: &LoadError) -> Self {
        Self {
            contest,
            subject: subject.to_owned(),
            why: why.to_string(),
        }
    }
}

/// Memory of a process, or of something that it holds.
#[derive(Debug, Serialize)]
pub struct Weight {
    subject: &'static str,
    what: &'static str,
    /// Bytes in each round.
    rounds: Vec<f64>,
}

impl Weight {
    /// Creates a result.
    #[must_use]
    pub fn new(subject: &'static str, what: &'static str, rounds: Vec<f64>) -> Self {
        Self {
            subject,
            what,
            rounds,
        }
    }
}

/// Everything that was seen.
#[derive(Debug, Serialize)]
pub struct Findings {
    rows: Vec<Row>,
    weights: Vec<Weight>,
    failures: Vec<Failed>,
}

/// Runs the selected contests; `recipes` are relays of other projects.
///
/// # Errors
/// A subject failed.
pub async fn run(
    programs: &Programs,
    effort: Effort,
    selection: &Selection,
    recipes: &[Recipe],
) -> Result<Findings, LoadError> {
    let (mut rows, mut failures) = between::run(programs, effort, selection, recipes).await?;
    for contest in CONTESTS {
        for open in OPEN {
            if selection.has(contest.name) {
                rows.extend(compete(programs, effort, contest, open).await?);
            }
        }
    }
    let mut weights = Vec::new();
    if selection.has("memory") {
        weights = weigh_all(programs, effort).await?;
    }
    let (gateways, failed) = many::run(programs, effort, selection, recipes).await?;
    rows.extend(gateways);
    failures.extend(failed);
    rows.extend(cost::run(programs, effort, selection).await?);
    Ok(Findings {
        rows,
        weights,
        failures,
    })
}

async fn weigh_all(programs: &Programs, effort: Effort) -> Result<Vec<Weight>, LoadError> {
    let rounds = effort.rounds.min(WEIGHED);
    let mut weights = Vec::new();
    for stream in [Stream::Absent, Stream::Open] {
        for subject in [OURS, THEIRS] {
            let mut all = Vec::new();
            for _ in 0..rounds {
                all.push(weigh(programs, &subject, stream).await?);
            }
            weights.push(Weight::new(subject.name, stream.as_str(), all));
        }
    }
    weights.extend(memory::relays(programs, rounds, RELAYED).await?);
    let [first, last] = many::weigh(programs).await?;
    let calls = "session with calls to each of 10 servers";
    weights.push(Weight::new("serve", calls, vec![first]));
    weights.push(Weight::new(
        "serve",
        "the same, after 2,000 others",
        vec![last],
    ));
    Ok(weights)
}

/// The rivals alternate, so that whatever else the machine does falls on all of them.
async fn compete(
    programs: &Programs,
    effort: Effort,
    contest: &Contest,
    open: usize,
) -> Result<Vec<Row>, LoadError> {
    let mut samples: Vec<Vec<Sample>> = contest.rivals.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.rounds {
        for (rival, samples) in contest.rivals.iter().zip(&mut samples) {
            samples.push(measure(programs, rival, contest.way, open, effort.stretch).await?);
        }
    }
    let rows = contest.rivals.iter().zip(samples);
    Ok(rows
        .map(|(rival, samples)| Row::new(contest.name, open, rival.name, samples, None))
        .collect())
}

async fn measure(
    programs: &Programs,
    rival: &Rival,
    way: Way,
    open: usize,
    stretch: Duration,
) -> Result<Sample, LoadError> {
    let program = programs.path(rival);
    match way {
        Way::Server(era) => {
            let mut server = Subject::start(&program, rival.arguments)?;
            let address = server.address().await?;
            let before = server.cpu()?;
            let load = http::load(LoadSpec {
                address: &address,
                path: PATH,
                era,
                workers: open,
                sessions: Sessions::Own,
                size: Size::Small,
                tool: TOOL,
                duration: stretch,
            })
            .await?;
            Ok(load.sample(server.cpu()?.saturating_sub(before)))
        }
        Way::Lines => {
            let mut server = Subject::start(&program, rival.arguments)?;
            let load = lines::load(server.pipes()?, open, stretch).await?;
            Ok(load.sample(server.cpu()?))
        }
        // The servers of both clients are ours: the difference is then the client's.
        Way::Client(era) => {
            let mut server = Subject::start(&programs.path(&OURS), OURS.arguments)?;
            let address = format!("http://{}/mcp", server.address().await?);
            call(&program, &address, era, open, stretch).await
        }
        Way::LineClient => {
            let server = programs.path(&OURS).display().to_string();
            call(&program, &server, Era::Legacy, open, stretch).await
        }
    }
}

async fn call(
    program: &Path,
    target: &str,
    era: Era,
    open: usize,
    stretch: Duration,
) -> Result<Sample, LoadError> {
    let (open, milliseconds) = (open.to_string(), stretch.as_millis().to_string());
    let arguments = [
        "client",
        target,
        "--era",
        era.as_str(),
        "--open",
        &open,
        "--milliseconds",
        &milliseconds,
    ];
    let told: Stretch = serde_json::from_slice(&capture(program, &arguments).await?)?;
    let cpu = Duration::from_nanos(told.cpu);
    Ok(told.sample(cpu))
}

async fn weigh(programs: &Programs, rival: &Rival, stream: Stream) -> Result<f64, LoadError> {
    let mut server = Subject::start(&programs.path(rival), rival.arguments)?;
    let address = server.address().await?;
    memory::per_session(&server, &address, SESSIONS, stream).await
}
