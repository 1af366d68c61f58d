//! Load loop of the clients of both libraries: calls as fast as possible, with a fixed concurrency.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::call;
use crate::error::LoadError;
use crate::process::own_cpu;
use crate::sample::{Stretch, WARM_UP};

/// Calls with this many workers, each with its own copy of the client.
///
/// # Errors
/// A call failed, or did not give the text back.
pub async fn drive<C, F, Fut>(
    client: C,
    open: usize,
    duration: Duration,
    call: F,
) -> Result<Stretch, LoadError>
where
    C: Clone + Send + 'static,
    F: Fn(C, String) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Result<String, LoadError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for _ in 0..open {
        running.spawn(work(client.clone(), duration, call));
    }
    let mut all = Stretch::default();
    while let Some(ended) = running.join_next().await {
        all.join(ended.map_err(std::io::Error::from)??);
    }
    all.cpu = Stretch::nanoseconds(own_cpu());
    Ok(all)
}

async fn work<C, F, Fut>(client: C, duration: Duration, call: F) -> Result<Stretch, LoadError>
where
    C: Clone + Send,
    F: Fn(C, String) -> Fut + Send,
    Fut: Future<Output = Result<String, LoadError>> + Send,
{
    let text = call::text();
    let answer = call(client.clone(), text.clone()).await?;
    if answer != text {
        return Err(LoadError::wrong(0, answer.as_bytes()));
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

/// Reports an interval to the parent process.
///
/// # Errors
/// Standard output is closed.
pub fn tell(stretch: &Stretch) -> Result<(), LoadError> {
    Ok(serde_json::to_writer(std::io::stdout().lock(), stretch)?)
}

/// Reports the address of a server.
///
/// # Errors
/// Standard output is closed.
pub fn announce(address: &str) -> Result<(), LoadError> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{address}")?;
    Ok(out.flush()?)
}
