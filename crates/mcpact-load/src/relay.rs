//! Relays between client and server: our bridge, bare baselines, and those of other projects.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};

use crate::error::LoadError;
use crate::process::Subject;

/// Timeout until a relay listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// Number of starts.
const ATTEMPTS: usize = 2;

/// Pause between two checks: short, because start-up is measured, too.
const PAUSE: Duration = Duration::from_millis(2);

/// Kind of server behind a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behind {
    /// A server on HTTP.
    Http,
    /// A server that the relay starts and talks to over pipes.
    Stdio,
    /// Many servers as one, which are named in a file.
    Many,
}

/// Command of a relay. Placeholders: `{port}` is the listen port, `{host}` and `{url}` the HTTP server, `{server}` the
/// words that start a stdio server, `{server line}` the same as one word, and `{config}` a file with many servers.
#[derive(Clone, Debug, Deserialize)]
pub struct Recipe {
    /// Its name in the report.
    pub name: String,
    /// Kind of server.
    pub behind: Behind,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Path of its endpoint.
    pub path: String,
}

/// The server that a relay leads to.
#[derive(Clone, Debug)]
pub struct Goal {
    /// `host:port` of a server on HTTP; nothing listens there where pipes are meant.
    pub host: String,
    /// The words that start a server on pipes.
    pub server: Vec<String>,
    /// A file that names servers, where many are meant.
    pub config: PathBuf,
}

impl Recipe {
    fn filled(&self, port: u16, goal: &Goal) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{port}", &port.to_string())
                .replace("{url}", &format!("http://{}/mcp", goal.host))
                .replace("{host}", &goal.host)
                .replace("{config}", &goal.config.to_string_lossy())
                .replace("{server line}", &goal.server.join(" "))
        };
        let words = self.words.iter().flat_map(|word| match word.as_str() {
            "{server}" => goal.server.clone(),
            _ => vec![fill(word)],
        });
        words.collect()
    }
}

/// A relay that listens.
#[derive(Debug)]
pub struct Relay {
    /// Its process.
    pub subject: Subject,
    /// `host:port`
    pub address: String,
}

impl Relay {
    /// Starts a relay and waits until it listens. Another process may take its port first, so it is started again.
    ///
    /// # Errors
    /// It does not start or does not listen in time.
    pub async fn start(recipe: &Recipe, goal: &Goal) -> Result<Self, LoadError> {
        for _ in 1..ATTEMPTS {
            if let Ok(relay) = Self::attempt(recipe, goal).await {
                return Ok(relay);
            }
        }
        Self::attempt(recipe, goal).await
    }

    async fn attempt(recipe: &Recipe, goal: &Goal) -> Result<Self, LoadError> {
        let port = free_port().await?;
        let words = recipe.filled(port, goal);
        let silent = || LoadError::Silent(recipe.name.clone());
        let (program, arguments) = words.split_first().ok_or_else(silent)?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut subject = Subject::start_quietly(Path::new(program), &arguments)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string();
        let start = Instant::now();
        while TcpStream::connect(&address).await.is_err() {
            if start.elapsed() > PATIENCE || subject.has_ended() {
                return Err(silent());
            }
            tokio::time::sleep(PAUSE).await;
        }
        if subject.has_ended() {
            return Err(silent());
        }
        Ok(Self { subject, address })
    }
}

/// Finds a free port: most relays cannot pick one.
async fn free_port() -> Result<u16, LoadError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_filled_with_port_and_server() {
        let recipe = Recipe {
            name: String::from("r"),
            behind: Behind::Stdio,
            words: ["r", "--port={port}", "{url}", "{server line}", "{server}"]
                .map(str::to_owned)
                .to_vec(),
            path: String::from("/mcp"),
        };
        let goal = Goal {
            host: String::from("h:1"),
            server: vec![String::from("s"), String::from("stdio")],
            config: PathBuf::new(),
        };
        let words = recipe.filled(7, &goal);
        let expected = ["r", "--port=7", "http://h:1/mcp", "s stdio", "s", "stdio"];
        assert_eq!(words, expected);
    }
}
