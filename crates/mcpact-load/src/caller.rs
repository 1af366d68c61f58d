//! What the clients of both libraries do: call as often as they can, so many at a time.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::call;
use crate::process::own_cpu;
use crate::sample::{Stretch, WARM_UP};
use crate::trouble::Trouble;

/// Calls with this many workers, each with its own copy of the client.
///
/// # Errors
/// A call failed, or did not give the text back.
pub async fn drive<C, F, Fut>(
    client: C,
    open: usize,
    duration: Duration,
    call: F,
) -> Result<Stretch, Trouble>
where
    C: Clone + Send + 'static,
    F: Fn(C, String) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Result<String, Trouble>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for _ in 0..open {
        running.spawn(work(client.clone(), duration, call));
    }
    let mut all = Stretch::default();
    while let Some(ended) = running.join_next().await {
        all.join(ended.map_err(std::io::Error::from)??);
    }
    all.cpu = Stretch::nanoseconds(own_cpu()?);
    Ok(all)
}

async fn work<C, F, Fut>(client: C, duration: Duration, call: F) -> Result<Stretch, Trouble>
where
    C: Clone + Send,
    F: Fn(C, String) -> Fut + Send,
    Fut: Future<Output = Result<String, Trouble>> + Send,
{
    let text = call::text();
    let answer = call(client.clone(), text.clone()).await?;
    if answer != text {
        return Err(Trouble::wrong(0, answer.as_bytes()));
    }
    let mut stretch = Stretch::default();
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        call(client.clone(), text.clone()).await?;
        stretch.uncounted += 1;
    }
    let start = Instant::now();
    let mut before = start;
    while before.duration_since(start) < duration {
        call(client.clone(), text.clone()).await?;
        let after = Instant::now();
        let took = after.duration_since(before);
        stretch.latencies.push(Stretch::nanoseconds(took));
        before = after;
    }
    stretch.elapsed = Stretch::nanoseconds(before.duration_since(start));
    Ok(stretch)
}

/// Writes a stretch down for whoever started this program.
///
/// # Errors
/// Nobody reads it.
pub fn tell(stretch: &Stretch) -> Result<(), Trouble> {
    Ok(serde_json::to_writer(std::io::stdout().lock(), stretch)?)
}

/// Says where a server listens.
///
/// # Errors
/// Nobody reads it.
pub fn announce(address: &str) -> Result<(), Trouble> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{address}")?;
    Ok(out.flush()?)
}
