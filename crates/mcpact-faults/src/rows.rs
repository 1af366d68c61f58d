//! The faults, one after the other.
//!
//! A row is named after its row in the table of faults of the project's safety document, and its limits are
//! those that stand there.

mod approval;
mod asking;
mod availability;
mod config;
mod ending;
mod ids;
mod input;
mod leaving;
mod load;
mod local;
mod meaning;
mod memory;
mod network;
mod noise;
mod operation;
mod principals;
mod queues;
mod sandbox;
mod secrets;
mod silence;

use std::io::Write;
use std::pin::Pin;
use std::time::Instant;

use crate::error::RowError;
use crate::figure::Figures;

/// Amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Effort {
    /// A little of every fault.
    Quick,
    /// As much as the table of faults says.
    Full,
    /// That, and the load of many minutes.
    Long,
}

impl Effort {
    /// A little, or all of it.
    pub(crate) const fn of(self, little: usize, all: usize) -> usize {
        match self {
            Self::Quick => little,
            Self::Full | Self::Long => all,
        }
    }
}

/// Future of a running row.
struct Running<'a>(Pin<Box<dyn Future<Output = Result<(), RowError>> + 'a>>);

/// A fault and how it is brought about.
struct Row {
    id: &'static str,
    fault: &'static str,
    run: for<'a> fn(Effort, &'a mut Figures) -> Running<'a>,
}

macro_rules! rows {
    ($($id:literal $fault:literal $run:path;)*) => {
        /// Every row, in the order of the table of faults.
        const ROWS: &[Row] = &[$(Row {
            id: $id,
            fault: $fault,
            run: |effort, figures| Running(Box::pin($run(effort, figures))),
        }),*];
    };
}

rows! {
    "F01" "a server is killed while it is called" ending::killed;
    "F01" "connections of a server on HTTP are cut, stall, come in pieces" network::weather;
    "F02" "a server hears and never answers" silence::hangs;
    "F03" "a server stops reading" silence::stopped;
    "F04" "a line without end" noise::flood;
    "F05" "lines that are no messages, half a line" noise::noise;
    "F06" "a flood on standard error" noise::murmur;
    "F07" "a server ignores the end of its input and SIGTERM" ending::stubborn;
    "F08" "a server ends at each start" ending::crash_loop;
    "F09" "trees of processes come and go" ending::trees;
    "F10" "the gateway is killed" ending::gateway_killed;
    "F11" "clients leave in the middle of a call" leaving::disconnect;
    "F12" "a client reads one byte per second" leaving::slow_reader;
    "F14" "many sessions at many servers, again and again" load::sessions;
    "F15" "calls without end" load::soak;
    "F16" "bodies that are too long, or lie about it" input::oversized;
    "F17" "JSON that is deep, wide or long" input::deep;
    "F18" "what is no JSON-RPC" input::garbage;
    "F19" "stray, duplicate and late responses" ids::strangers;
    "F20" "cancellation and answer at the same time" ids::races;
    "F21" "the same id twice at a time in one session" ids::same_id;
    "F22" "the same ids and tokens from many clients" ids::same_ids;
    "F23" "a shared server asks" asking::asked;
    "F24" "the session of another client" secrets::hijack;
    "F30" "secrets in every place" secrets::redaction;
    "F31" "configs that would do harm" config::dangerous;
    "F32" "configs and programs that others may change" config::foreign_files;
    "F32" "files that other users could read or replace" local::private_files;
    "F33" "another config while clients call" operation::reload;
    "F34" "SIGTERM while clients call" operation::drain;
    "F38" "open files are exhausted" memory::descriptors;
    "F48" "bodies that never end, unread results, large calls under a small limit" memory::budget;
    "F49" "too many sessions on one connection" memory::sessions;
    "F50" "one message, two meanings" meaning::ambiguous;
    "F55" "a hostile server in a sandbox" sandbox::escapes;
    "F54" "approved code is exchanged" approval::exchanged;
    "F52" "every handle of another client" principals::handles;
    "F44" "a storm of notifications" queues::storm;
    "F46" "a server sends requests and never reads" queues::demanding_server;
    "F47" "a WebSocket client pings and never reads" queues::silent_client;
    "F47" "WebSocket clients begin large messages and do not end them" queues::unfinished_messages;
    "F51" "servers are killed again and again" availability::killed_again;
    "F53" "another local user calls" local::other_users;
}

/// Runs the rows and writes each one's report on a line of its own.
pub(crate) async fn run(effort: Effort, only: Option<&str>) -> Result<(), RowError> {
    for row in ROWS {
        if only.is_some_and(|only| only != row.id) {
            continue;
        }
        let mut figures = Figures::default();
        let begin = Instant::now();
        let broke = (row.run)(effort, &mut figures).0.await.err();
        let broke = broke.map(|trouble| trouble.told());
        let report = figures.report(row.id, row.fault, begin.elapsed(), broke);
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        out.flush()?;
    }
    Ok(())
}
