//! Finds a running gateway and sends it requests over its control socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use mcpact_config::{inspect, nearest_config};
use mcpact_gateway::control::{
    self, ControlClient, ControlError, ControlFault, ControlReply, ControlRequest, Status,
};
use mcpact_transport::error::TransportError;
use mcpact_transport::unix;

use crate::args::GatewaySelector;
use crate::error::{CliError, control_hint};
use crate::report;
use crate::target::is_same_file;

/// Returns the directory of the control sockets of this user's gateways.
pub(super) fn socket_dir() -> Option<PathBuf> {
    control::socket_dir(|name| std::env::var_os(name))
}

/// A gateway that replies.
struct RunningGateway {
    socket: PathBuf,
    config: Option<PathBuf>,
    url: Option<String>,
}

impl RunningGateway {
    /// Returns true if both paths lead to the same file.
    fn serves(&self, config: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = self.config.as_deref();
        own.is_some_and(|own| own == config || real(own) == real(config))
    }

    fn describe(&self) -> String {
        let socket = self.socket.display();
        match &self.config {
            Some(config) => format!("`{}` at `{socket}`", config.display()),
            None => format!("built-in servers at `{socket}`"),
        }
    }
}

/// Sends a request to the selected gateway.
pub(super) async fn open(
    selector: &GatewaySelector,
    request: &ControlRequest,
) -> Result<ControlClient, CliError> {
    let socket = match &selector.socket {
        Some(socket) => check_responsive(socket.clone()).await?,
        None => find(selector).await?,
    };
    open_at(&socket, request).await
}

async fn open_at(socket: &Path, request: &ControlRequest) -> Result<ControlClient, CliError> {
    let client = ControlClient::connect(socket, request).await;
    client.map_err(CliError::Control)
}

/// Sends a request to the selected gateway and returns its only response.
pub(super) async fn request(
    selector: &GatewaySelector,
    request: &ControlRequest,
) -> Result<ControlReply, CliError> {
    response(open(selector, request).await?).await
}

async fn response(mut client: ControlClient) -> Result<ControlReply, CliError> {
    let reply = client.next().await.map_err(CliError::Control)?;
    reply.ok_or(CliError::UnexpectedResponse).and_then(check)
}

/// Sends a request to every running gateway that serves this config.
pub(super) async fn request_all(
    config: &Path,
    request: &ControlRequest,
) -> Result<Vec<ControlReply>, CliError> {
    let config = std::path::absolute(config).map_err(CliError::CurrentDir)?;
    let sockets = match configured_socket(&config) {
        Some(socket) => vec![socket],
        None => {
            let Gateways {
                running,
                unresponsive,
            } = gateways().await?;
            // Any of these may serve the config.
            for one in &unresponsive {
                report::hint(&describe_unresponsive(one));
            }
            let serving = running.into_iter().filter(|found| found.serves(&config));
            serving.map(|found| found.socket).collect()
        }
    };
    let mut replies = Vec::new();
    for socket in sockets {
        match open_at(&socket, request).await {
            Ok(client) => replies.push(response(client).await?),
            // Not running, or stopped since it was found.
            Err(CliError::Control(ControlError::Socket { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(replies)
}

/// Turns an error response into an error.
pub(super) fn check(reply: ControlReply) -> Result<ControlReply, CliError> {
    match reply {
        ControlReply::Fault(ControlFault::NoServer {
            name,
            servers,
            filters,
        }) => Err(CliError::NoServer {
            name,
            servers,
            filters,
        }),
        ControlReply::Fault(ControlFault::Unread { why }) => Err(CliError::RequestRejected(why)),
        ControlReply::Fault(ControlFault::Busy) => Err(CliError::Busy),
        reply => Ok(reply),
    }
}

/// Finds the gateway of the given config, else of the nearest config, else the only one.
async fn find(selector: &GatewaySelector) -> Result<PathBuf, CliError> {
    let given = match &selector.config {
        None => None,
        Some(path) => Some(std::path::absolute(path).map_err(CliError::CurrentDir)?),
    };
    let dir = std::env::current_dir().ok();
    let nearest = || nearest_config(dir.as_deref()?);
    let config = given.clone().or_else(nearest);
    if let Some(socket) = config.as_deref().and_then(configured_socket) {
        return check_responsive(socket).await;
    }
    let Gateways {
        running,
        mut unresponsive,
    } = gateways().await?;
    let serves = |found: &RunningGateway| {
        let config = config.as_deref();
        config.is_some_and(|config| found.serves(config))
    };
    let (serving, mut others): (Vec<_>, Vec<_>) = running.into_iter().partition(serves);
    match serving.as_slice() {
        [] => {}
        [only] => return Ok(only.socket.clone()),
        several => {
            let running = several.iter().map(RunningGateway::describe).collect();
            return Err(CliError::AmbiguousGateway { config, running });
        }
    }
    if others.is_empty() && unresponsive.len() == 1 {
        let only = unresponsive.pop();
        return Err(only.map_or(CliError::UnexpectedResponse, CliError::Control));
    }
    let running = others.iter().map(RunningGateway::describe);
    let running = running
        .chain(unresponsive.iter().map(describe_unresponsive))
        .collect();
    match (others.pop(), given) {
        (Some(only), None) if others.is_empty() && unresponsive.is_empty() => Ok(only.socket),
        (Some(_), None) => Err(CliError::AmbiguousGateway {
            config: None,
            running,
        }),
        (_, config) => Err(CliError::NoGateway { config, running }),
    }
}

/// Describes a gateway that may be the one to use but does not reply.
fn describe_unresponsive(error: &ControlError) -> String {
    match control_hint(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Returns the socket that a config sets.
fn configured_socket(config: &Path) -> Option<PathBuf> {
    // An invalid config must not keep `status` from reporting it.
    let (_, outcome) = inspect(config).ok()?;
    outcome.catalog?.gateway.control
}

/// Gateways of this user with a socket in the default directory.
struct Gateways {
    running: Vec<RunningGateway>,
    unresponsive: Vec<ControlError>,
}

/// Probes all gateways concurrently, so that an unresponsive one does not delay the others.
async fn gateways() -> Result<Gateways, CliError> {
    let mut found = Gateways {
        running: Vec::new(),
        unresponsive: Vec::new(),
    };
    let Some(dir) = socket_dir() else {
        return Ok(found);
    };
    let sockets = unix::sweep(&dir)
        .await
        .map_err(|source| CliError::Control(ControlError::Socket { path: dir, source }))?;
    for (socket, reply) in join_all(sockets.into_iter().map(probe)).await {
        match reply {
            Ok(Served { config, url }) => found.running.push(RunningGateway {
                socket,
                config,
                url,
            }),
            // Stopped since the directory was read.
            Err(ControlError::Socket {
                source: TransportError::Address { .. },
                ..
            }) => {}
            Err(error) => found.unresponsive.push(error),
        }
    }
    Ok(found)
}

/// What a gateway serves.
#[derive(Debug, Default)]
struct Served {
    config: Option<PathBuf>,
    url: Option<String>,
}

async fn probe(socket: PathBuf) -> (PathBuf, Result<Served, ControlError>) {
    let served = served(&socket).await;
    (socket, served)
}

/// Asks the gateway at this socket for its config and URL.
async fn served(socket: &Path) -> Result<Served, ControlError> {
    let request = ControlRequest::Status { server: None };
    let mut client = ControlClient::connect(socket, &request).await?;
    Ok(match client.next().await? {
        Some(ControlReply::Status(status)) => {
            let gateway = status.gateway;
            Served {
                config: gateway.config.map(PathBuf::from),
                url: gateway.url,
            }
        }
        _ => Served::default(),
    })
}

/// Describes the running gateway that listens on this port: its config and URL.
pub(super) async fn gateway_on_port(port: u16) -> Option<String> {
    let found = gateways().await.ok()?;
    let mut running = found.running.into_iter();
    running.find_map(|one| {
        let url = one.url.as_deref()?;
        let authority = url.split_once("://")?.1.split('/').next()?;
        let is_same = authority.rsplit_once(':')?.1.parse() == Ok(port);
        let config = match &one.config {
            Some(config) => format!("`{}`", config.display()),
            None => String::from("built-in servers"),
        };
        is_same.then(|| format!("a gateway serves {config} at {url}"))
    })
}

/// Returns the socket after its gateway has answered, because the actual request may take long.
async fn check_responsive(socket: PathBuf) -> Result<PathBuf, CliError> {
    served(&socket).await.map_err(CliError::Control)?;
    Ok(socket)
}

/// Returns the status of the gateway that serves a config, if one answers soon. `socket` is its configured control
/// socket.
pub(crate) async fn gateway_of(config: &Path, socket: Option<PathBuf>) -> Option<Status> {
    /// A gateway that answers later is not used.
    const PATIENCE: Duration = Duration::from_secs(1);
    let sockets = match socket {
        Some(socket) => vec![socket],
        None => unix::sweep(&socket_dir()?).await.ok()?,
    };
    let statuses = sockets.iter().map(|socket| async move {
        let status = tokio::time::timeout(PATIENCE, status_at(socket)).await;
        status.ok().flatten()
    });
    let mut found = join_all(statuses).await.into_iter().flatten();
    found.find(|status| {
        let served = status.gateway.config.as_deref();
        served.is_some_and(|served| is_same_file(Path::new(served), config))
    })
}

async fn status_at(socket: &Path) -> Option<Status> {
    let request = ControlRequest::Status { server: None };
    let mut client = ControlClient::connect(socket, &request).await.ok()?;
    match client.next().await.ok()?? {
        ControlReply::Status(status) => Some(*status),
        _ => None,
    }
}
