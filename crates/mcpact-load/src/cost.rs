//! Cost of a call through `mcpact serve` with few and with many servers and sessions.

use std::time::Duration;

use crate::call::{Size, TOOL};
use crate::error::LoadError;
use crate::http::{self, LoadSpec, PATH, Sessions};
use crate::many::{self, Crowd};
use crate::memory::{Idle, Stream, settle};
use crate::plan::{Effort, Programs, Row, Selection};
use crate::relay::Relay;
use crate::role::Era;
use crate::sample::Sample;

/// Idle sessions besides those of the load: one less than the default limit of `serve`, with room for the load.
const SESSIONS: usize = 9_990;

/// Numbers of open calls.
const OPEN: [usize; 2] = [1, 32];

/// One gateway of a comparison.
struct Scale {
    name: &'static str,
    servers: usize,
    sessions: usize,
}

struct Comparison {
    name: &'static str,
    scales: [Scale; 2],
}

const fn scale(name: &'static str, servers: usize, sessions: usize) -> Scale {
    Scale {
        name,
        servers,
        sessions,
    }
}

const COMPARISONS: &[Comparison] = &[
    Comparison {
        name: "gateway, call by number of servers",
        scales: [scale("1 server", 1, 0), scale("100 servers", 100, 0)],
    },
    Comparison {
        name: "gateway, call by number of idle sessions",
        scales: [
            scale("1 session", 1, 0),
            scale("10,000 sessions", 1, SESSIONS),
        ],
    },
];

/// A gateway at its scale.
struct Scaled {
    relay: Relay,
    _idle: Idle,
    samples: Vec<Vec<Sample>>,
}

/// Runs the selected comparisons.
///
/// # Errors
/// A gateway or a call failed.
pub async fn run(
    programs: &Programs,
    effort: Effort,
    selection: &Selection,
) -> Result<Vec<Row>, LoadError> {
    let mut rows = Vec::new();
    for comparison in COMPARISONS {
        if selection.has(comparison.name) {
            rows.extend(compare(programs, effort, comparison).await?);
        }
    }
    Ok(rows)
}

async fn compare(
    programs: &Programs,
    effort: Effort,
    comparison: &Comparison,
) -> Result<Vec<Row>, LoadError> {
    let mut all = Vec::new();
    for scale in &comparison.scales {
        all.push(start(programs, scale).await?);
    }
    for open in OPEN {
        for scaled in &mut all {
            scaled.samples.push(Vec::new());
        }
        for _ in 0..effort.rounds {
            for scaled in &mut all {
                let sample = scaled.call(open, effort.stretch).await?;
                if let Some(samples) = scaled.samples.last_mut() {
                    samples.push(sample);
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (scale, scaled) in comparison.scales.iter().zip(all) {
        let resident = Some(scaled.relay.subject.peak()?);
        let each = OPEN.into_iter().zip(scaled.samples);
        rows.extend(
            each.map(|(open, rounds)| {
                Row::new(comparison.name, open, scale.name, rounds, resident)
            }),
        );
    }
    Ok(rows)
}

async fn start(programs: &Programs, scale: &Scale) -> Result<Scaled, LoadError> {
    let crowd = Crowd {
        servers: scale.servers,
        tools: 20,
    };
    let relay = many::started(programs, crowd).await?;
    let idle = settle(&relay.address, scale.sessions, Stream::Absent).await?;
    Ok(Scaled {
        relay,
        _idle: idle,
        samples: Vec::new(),
    })
}

impl Scaled {
    async fn call(&self, open: usize, duration: Duration) -> Result<Sample, LoadError> {
        let (before, tool) = (self.relay.subject.cpu()?, many::tool(TOOL));
        let load = http::load(LoadSpec {
            address: &self.relay.address,
            path: PATH,
            era: Era::Legacy,
            workers: open,
            sessions: Sessions::Shared,
            size: Size::Small,
            tool: &tool,
            duration,
        });
        let load = load.await?;
        Ok(load.sample(self.relay.subject.cpu()?.saturating_sub(before)))
    }
}
