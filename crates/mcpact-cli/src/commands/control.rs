//! What every command has in common that talks to a gateway that runs.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use mcpact_config::{inspect, nearest_config};
use mcpact_gateway::control::{self, Answer, ControlError, Conversation, Fault, Request};
use mcpact_transport::error::DoorError;
use mcpact_transport::unix;

use crate::args::Which;
use crate::error::{CliError, remedy};
use crate::report;

/// The folder of the sockets of this user's gateways.
pub(super) fn folder() -> Option<PathBuf> {
    control::folder(|name| std::env::var_os(name))
}

/// A gateway that runs.
struct Found {
    socket: PathBuf,
    config: Option<PathBuf>,
}

impl Found {
    fn serves(&self, config: &Path) -> bool {
        self.config.as_deref() == Some(config)
    }

    fn in_words(&self) -> String {
        let socket = self.socket.display();
        match &self.config {
            Some(config) => format!("`{}` at `{socket}`", config.display()),
            None => format!("one with built-in servers at `{socket}`"),
        }
    }
}

/// Asks the gateway that is meant.
pub(super) async fn ask(which: &Which, request: &Request) -> Result<Conversation, CliError> {
    let socket = match &which.socket {
        Some(socket) => known_to_answer(socket.clone()).await?,
        None => find(which).await?,
    };
    ask_at(&socket, request).await
}

async fn ask_at(socket: &Path, request: &Request) -> Result<Conversation, CliError> {
    let conversation = Conversation::begin(socket, request).await;
    conversation.map_err(CliError::Control)
}

/// The whole answer where it is one line.
pub(super) async fn answer(which: &Which, request: &Request) -> Result<Answer, CliError> {
    whole(ask(which, request).await?).await
}

async fn whole(mut conversation: Conversation) -> Result<Answer, CliError> {
    let answer = conversation.next().await.map_err(CliError::Control)?;
    answer.ok_or(CliError::Answer).and_then(granted)
}

/// The answers of all gateways that serve this config.
pub(super) async fn answers_of(config: &Path, request: &Request) -> Result<Vec<Answer>, CliError> {
    let config = std::path::absolute(config).map_err(CliError::Here)?;
    let sockets = match configured(&config) {
        Some(socket) => vec![socket],
        None => {
            let Gateways { running, stuck } = gateways().await?;
            // Any of them may serve this config.
            for one in &stuck {
                report::hint(&format!("there is {}", stuck_in_words(one)));
            }
            let serving = running.into_iter().filter(|found| found.serves(&config));
            serving.map(|found| found.socket).collect()
        }
    };
    let mut answers = Vec::new();
    for socket in sockets {
        match ask_at(&socket, request).await {
            Ok(conversation) => answers.push(whole(conversation).await?),
            // It has gone meanwhile, or does not run.
            Err(CliError::Control(ControlError::Door { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answers)
}

/// What was asked for, unless it was refused.
pub(super) fn granted(answer: Answer) -> Result<Answer, CliError> {
    match answer {
        Answer::Fault(Fault::NoServer {
            name,
            servers,
            filters,
        }) => Err(CliError::NoServer {
            name,
            servers,
            filters,
        }),
        Answer::Fault(Fault::Unread { why }) => Err(CliError::Unread(why)),
        Answer::Fault(Fault::Busy) => Err(CliError::Busy),
        Answer::Status(_)
        | Answer::Line(_)
        | Answer::Reload(_)
        | Answer::Agreed(_)
        | Answer::Bundle(_) => Ok(answer),
    }
}

/// The gateway of the config that was named, or else of the nearest one, or else the only one.
async fn find(which: &Which) -> Result<PathBuf, CliError> {
    let named = match &which.config {
        None => None,
        Some(path) => Some(std::path::absolute(path).map_err(CliError::Here)?),
    };
    let here = std::env::current_dir().ok();
    let nearest = || nearest_config(here.as_deref()?);
    let config = named.clone().or_else(nearest);
    if let Some(socket) = config.as_deref().and_then(configured) {
        return known_to_answer(socket).await;
    }
    let Gateways { running, mut stuck } = gateways().await?;
    let serves = |found: &Found| config.as_deref().is_some_and(|config| found.serves(config));
    let (mut serving, mut running): (Vec<Found>, Vec<Found>) =
        running.into_iter().partition(serves);
    if let Some(one) = serving.pop() {
        if serving.is_empty() {
            return Ok(one.socket);
        }
        serving.push(one);
        let running = serving.iter().map(Found::in_words).collect();
        return Err(CliError::WhichGateway { config, running });
    }
    if running.is_empty() && stuck.len() == 1 {
        return Err(stuck.pop().map_or(CliError::Answer, CliError::Control));
    }
    let words = running.iter().map(Found::in_words);
    let words = words.chain(stuck.iter().map(stuck_in_words)).collect();
    match (running.pop(), named) {
        (Some(only), None) if running.is_empty() && stuck.is_empty() => Ok(only.socket),
        (Some(_), None) => Err(CliError::WhichGateway {
            config: None,
            running: words,
        }),
        (_, config) => Err(CliError::NoGateway {
            config,
            running: words,
        }),
    }
}

/// A gateway that may be the one that is meant, and what to do about it.
fn stuck_in_words(error: &ControlError) -> String {
    match remedy(error) {
        Some(remedy) => format!("one more: {error}; {remedy}"),
        None => format!("one more: {error}"),
    }
}

/// The socket that a config names.
fn configured(config: &Path) -> Option<PathBuf> {
    // A config that is wrong is what may have to be found out.
    let (_, reading) = inspect(config).ok()?;
    reading.catalog?.gateway.control
}

/// The gateways of this user that use the usual place.
struct Gateways {
    running: Vec<Found>,
    /// Why the others cannot be asked.
    stuck: Vec<ControlError>,
}

/// Asks all of them at the same time: none has to wait for one that is stuck.
async fn gateways() -> Result<Gateways, CliError> {
    let mut found = Gateways {
        running: Vec::new(),
        stuck: Vec::new(),
    };
    let Some(folder) = folder() else {
        return Ok(found);
    };
    let sockets = unix::sweep(&folder).await.map_err(|source| {
        CliError::Control(ControlError::Door {
            path: folder,
            source,
        })
    })?;
    for (socket, config) in join_all(sockets.into_iter().map(knock)).await {
        match config {
            Ok(config) => found.running.push(Found { socket, config }),
            // It has gone meanwhile.
            Err(ControlError::Door {
                source: DoorError::Address { .. },
                ..
            }) => {}
            Err(error) => found.stuck.push(error),
        }
    }
    Ok(found)
}

/// What the gateway at this socket serves, if it tells in time.
async fn knock(socket: PathBuf) -> (PathBuf, Result<Option<PathBuf>, ControlError>) {
    let config = served(&socket).await;
    (socket, config)
}

async fn served(socket: &Path) -> Result<Option<PathBuf>, ControlError> {
    let request = Request::Status { server: None };
    let mut conversation = Conversation::begin(socket, &request).await?;
    Ok(match conversation.next().await? {
        Some(Answer::Status(status)) => status.gateway.config.map(PathBuf::from),
        _ => None,
    })
}

/// The socket again, after its gateway has answered: what is asked of it next may take long.
async fn known_to_answer(socket: PathBuf) -> Result<PathBuf, CliError> {
    served(&socket).await.map_err(CliError::Control)?;
    Ok(socket)
}
