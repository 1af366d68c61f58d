//! What every command has in common that talks to a gateway that runs.

use std::path::{Path, PathBuf};

use mcpact_gateway::catalog::{inspect, nearest_config};
use mcpact_gateway::control::{self, Answer, ControlError, Conversation, Fault, Request};
use mcpact_transport::unix;

use crate::args::Which;
use crate::error::CliError;

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
        Some(socket) => socket.clone(),
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
            let serving = running().await?.into_iter();
            let serving = serving.filter(|found| found.serves(&config));
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
        return Ok(socket);
    }
    let serves = |found: &Found| config.as_deref().is_some_and(|config| found.serves(config));
    let (mut serving, mut running): (Vec<Found>, Vec<Found>) =
        running().await?.into_iter().partition(serves);
    if let Some(one) = serving.pop() {
        if serving.is_empty() {
            return Ok(one.socket);
        }
        serving.push(one);
        let running = serving.iter().map(Found::in_words).collect();
        return Err(CliError::WhichGateway { config, running });
    }
    let words = running.iter().map(Found::in_words).collect();
    match (running.pop(), named) {
        (Some(only), None) if running.is_empty() => Ok(only.socket),
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

/// The socket that a config names.
fn configured(config: &Path) -> Option<PathBuf> {
    // A config that is wrong is what may have to be found out.
    let (_, reading) = inspect(config).ok()?;
    reading.catalog?.gateway.control
}

/// The gateways of this user that use the usual place.
async fn running() -> Result<Vec<Found>, CliError> {
    let Some(folder) = folder() else {
        return Ok(Vec::new());
    };
    let sockets = unix::sweep(&folder).await.map_err(|source| {
        CliError::Control(ControlError::Door {
            path: folder,
            source,
        })
    })?;
    let mut running = Vec::new();
    for socket in sockets {
        let request = Request::Status { server: None };
        let Ok(mut conversation) = Conversation::begin(&socket, &request).await else {
            continue;
        };
        if let Ok(Some(Answer::Status(status))) = conversation.next().await {
            let config = status.gateway.config.map(PathBuf::from);
            running.push(Found { socket, config });
        }
    }
    Ok(running)
}
