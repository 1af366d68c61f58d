//! Load over pipes: a window of calls is open, and every answer makes room for the next call.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};

use crate::call;
use crate::error::LoadError;
use crate::process::own_cpu;
use crate::sample::{Stretch, WARM_UP};

const CHUNK: usize = 64 * 1024;

/// A conversation over the pipes of a subject.
struct Pipes {
    input: ChildStdin,
    output: ChildStdout,
    heard: Vec<u8>,
}

impl Pipes {
    /// Reads on until at least one line is whole, and gives what is whole.
    async fn lines(&mut self) -> Result<Vec<u8>, LoadError> {
        loop {
            if let Some(end) = self.heard.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.heard.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.heard, rest));
            }
            self.heard.reserve(CHUNK);
            if self.output.read_buf(&mut self.heard).await? == 0 {
                return Err(LoadError::wrong(0, &self.heard));
            }
        }
    }

    async fn say(&mut self, text: &[u8]) -> Result<(), LoadError> {
        self.input.write_all(text).await?;
        Ok(self.input.flush().await?)
    }

    /// Reads the remaining output, so that the server does not write into a broken pipe.
    async fn close(mut self) -> Result<(), LoadError> {
        drop(self.input);
        self.output.read_to_end(&mut self.heard).await?;
        Ok(())
    }

    /// Performs the handshake and one call with a checked response.
    async fn open(&mut self) -> Result<(), LoadError> {
        self.say(format!("{}\n", call::initialize()).as_bytes())
            .await?;
        self.lines().await?;
        let text = format!("{}\n{}\n", call::INITIALIZED, call::legacy(1));
        self.say(text.as_bytes()).await?;
        loop {
            let answer = self.lines().await?;
            if call::is_echo(&answer, &call::text()) {
                return Ok(());
            }
            // A floor gives the notification back, too.
            if answer != format!("{}\n", call::INITIALIZED).as_bytes() {
                return Err(LoadError::wrong(0, &answer));
            }
        }
    }
}

/// Initializes a server and returns its pipes.
///
/// # Errors
/// The server ended.
pub async fn initialized(
    pipes: (ChildStdin, ChildStdout),
) -> Result<(ChildStdin, ChildStdout), LoadError> {
    let (input, output) = pipes;
    let mut pipes = Pipes {
        input,
        output,
        heard: Vec::new(),
    };
    pipes
        .say(format!("{}\n", call::initialize()).as_bytes())
        .await?;
    pipes.lines().await?;
    pipes
        .say(format!("{}\n", call::INITIALIZED).as_bytes())
        .await?;
    Ok((pipes.input, pipes.output))
}

/// The calls of a stretch, and when each open one was made.
struct Window {
    head: String,
    tail: String,
    next: u64,
    open: Vec<Instant>,
}

impl Window {
    fn new(size: usize) -> Self {
        let call = call::legacy(0);
        let (head, tail) = call.split_once("\"id\":0").unwrap_or((&call, ""));
        Self {
            head: format!("{head}\"id\":"),
            tail: format!("{tail}\n"),
            next: 2,
            open: vec![Instant::now(); size],
        }
    }

    fn slot(&mut self, id: u64) -> Option<&mut Instant> {
        let size = self.open.len() as u64;
        let place = usize::try_from(id % size.max(1)).ok()?;
        self.open.get_mut(place)
    }

    fn ask(&mut self, id: u64, now: Instant, out: &mut Vec<u8>) {
        if let Some(slot) = self.slot(id) {
            *slot = now;
        }
        out.extend_from_slice(self.head.as_bytes());
        out.extend_from_slice(id.to_string().as_bytes());
        out.extend_from_slice(self.tail.as_bytes());
    }

    /// Takes an answer and asks again in its place.
    fn answered(&mut self, line: &[u8], now: Instant, out: &mut Vec<u8>) -> Option<Duration> {
        let id = call::id(line).filter(|_| line.len() > call::TEXT_LENGTH)?;
        let took = now.duration_since(*self.slot(id)?);
        let size = self.open.len() as u64;
        self.ask(id + size, now, out);
        Some(took)
    }
}

/// Loads a server with this many calls open at a time.
///
/// # Errors
/// The server ended, or gave an answer that is not the echo.
pub async fn load(
    pipes: (ChildStdin, ChildStdout),
    window: usize,
    duration: Duration,
) -> Result<Stretch, LoadError> {
    let (input, output) = pipes;
    let mut pipes = Pipes {
        input,
        output,
        heard: Vec::new(),
    };
    pipes.open().await?;
    let mut calls = Window::new(window);
    let mut out = Vec::new();
    let (begin, cpu) = (Instant::now(), own_cpu());
    for id in (calls.next..).take(window) {
        calls.ask(id, begin, &mut out);
    }
    pipes.say(&out).await?;
    let mut stretch = Stretch::default();
    let mut start = None;
    loop {
        let lines = pipes.lines().await?;
        let now = Instant::now();
        out.clear();
        for line in lines.split(|byte| *byte == b'\n').filter(|l| !l.is_empty()) {
            let took = calls.answered(line, now, &mut out);
            let took = took.ok_or_else(|| LoadError::wrong(0, line))?;
            match start {
                Some(_) => stretch.latencies.push(Stretch::nanoseconds(took)),
                None => stretch.uncounted += 1,
            }
        }
        match start {
            None if now.duration_since(begin) >= WARM_UP => start = Some(now),
            Some(start) if now.duration_since(start) >= duration => {
                stretch.elapsed = Stretch::nanoseconds(now.duration_since(start));
                let used = own_cpu().saturating_sub(cpu);
                stretch.generator = used.as_secs_f64() / begin.elapsed().as_secs_f64();
                pipes.close().await?;
                return Ok(stretch);
            }
            None | Some(_) => {}
        }
        pipes.say(&out).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_its_id_and_makes_room() {
        let mut window = Window::new(4);
        let mut out = Vec::new();
        let line = call::legacy(6);
        assert!(
            window
                .answered(line.as_bytes(), Instant::now(), &mut out)
                .is_some()
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{}\n", call::legacy(10))
        );
        assert!(
            window
                .answered(b"{\"id\":6}", Instant::now(), &mut Vec::new())
                .is_none()
        );
    }
}
