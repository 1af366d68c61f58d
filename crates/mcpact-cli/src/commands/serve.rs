//! `mcpact serve`: the gateway.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use mcpact::server::ListenAddress;
use mcpact_config::import::CLIENTS;
use mcpact_config::keys::EVERYTHING;
use mcpact_config::{
    Approvals, Catalog, CatalogError, GatewayConfig, HostEnvironment as _, InvalidServers, Launch,
    LocalHost, PolicySettings, ProgramLookup, ServerConfig, ServerName, Severity, Source, inspect,
    load_with, nearest_config,
};
use mcpact_engine::client::EraMode;
#[cfg(unix)]
use mcpact_gateway::control::{Control, socket_path};
use mcpact_gateway::{ConfigFile, Gateway, GatewayEnv, Local, ParentConfigs, ReloadCause};
use mcpact_spec::{Era, Revision};
#[cfg(unix)]
use mcpact_transport::error::TransportError;
use mcpact_transport::memory;
use mcpact_transport::stdio::child::{Guard, VIA_VARIABLE};
use tokio::task::JoinSet;

use super::cache::ServerCache;
use super::shutdown::{ShutdownSignals, serve_stdio};
use super::{approve, block_on, policy};
use crate::args::ServeArgs;
use crate::error::{CliError, Exit, ListenSettings};
use crate::report;
use crate::report::servers::{ClientSetup, TokenReference};

/// The config without a file: a demo server of each era.
fn demo() -> Catalog {
    let server = |revision| ServerConfig {
        era: EraMode::Pin(revision),
        ..ServerConfig::new(Launch::Builtin(EVERYTHING.to_owned()))
    };
    Catalog {
        servers: BTreeMap::from([
            (
                ServerName::near("legacy"),
                server(Revision::newest(Era::Legacy)),
            ),
            (
                ServerName::near("modern"),
                server(Revision::newest(Era::Modern)),
            ),
        ]),
        ..Catalog::default()
    }
}

pub(super) fn run(args: &ServeArgs) -> Result<Exit, CliError> {
    let policy = policy::settings(&args.policy, None)?;
    let policy = match (args.strict, args.lenient) {
        (true, _) => policy.with_invalid_servers(InvalidServers::Refuse),
        (_, true) => policy.with_invalid_servers(InvalidServers::Skip),
        (false, false) => policy,
    };
    let mut config = Config::load(args, &policy)?;
    if let Some(address) = &args.listen {
        config.catalog.gateway.override_listen(address.clone());
        if let Some((message, hint)) = config.catalog.gateway.missing_host_warning() {
            report::warn(&message, &hint);
        }
    }
    let parents = parent_configs(&config)?;
    let approvals = approvals(args, &config)?;
    block_on(serve(args, config, policy, approvals, parents))?;
    Ok(Exit::Ok)
}

/// Returns the configs of the gateways that started this one, and its own, for loop detection.
fn parent_configs(config: &Config) -> Result<ParentConfigs, CliError> {
    let parents = std::env::var(VIA_VARIABLE).unwrap_or_default();
    let parents = ParentConfigs::parse(&parents);
    let Some((path, _)) = &config.read else {
        return Ok(parents);
    };
    let file = path.canonicalize().unwrap_or_else(|_| path.clone());
    parents.with(&file).map_err(|source| CliError::StartLoop {
        config: path.clone(),
        source,
    })
}

/// Returns the approvals to enforce. `--config` implies approval; a config that was found may come from anyone.
fn approvals(args: &ServeArgs, config: &Config) -> Result<Option<Approvals>, CliError> {
    let Some((file, source)) = &config.read else {
        return Ok(None);
    };
    if args.config.is_some() && !args.approved_only {
        return Ok(None);
    }
    let approvals = approve::open_approvals().ok_or(CliError::NoStateDir)?;
    if args.stdio {
        // There is no listener, so its keys need no approval.
        return Ok(Some(approvals));
    }
    let last = approve::last_approvals().ok_or(CliError::NoStateDir)?;
    let review = approve::Review {
        file,
        approvals: &approvals,
        last: &last,
        marks: &[],
        pins: approve::PinOffer::Show,
    };
    let gateway = &config.catalog.gateway;
    if approve::is_interactive() {
        review.all(&review.items(&config.catalog, &[])?)?;
    }
    let unapproved = review.unapproved_keys(gateway)?;
    if !unapproved.is_empty() {
        return Err(CliError::Catalog(CatalogError::Refused {
            source_text: Box::new(source.clone()),
            problems: unapproved.iter().map(|key| key.refused(source)).collect(),
        }));
    }
    Ok(Some(approvals))
}

async fn serve(
    args: &ServeArgs,
    config: Config,
    policy: PolicySettings,
    approvals: Option<Approvals>,
    parents: ParentConfigs,
) -> Result<(), CliError> {
    let Config { catalog, read } = config;
    let control = catalog.gateway.control.clone();
    let cache = ServerCache::open(args.no_cache);
    let env = GatewayEnv {
        builtins: BTreeMap::from([(EVERYTHING, everything())]),
        verdicts: cache.verdicts,
        cache: cache.servers,
        guard: Some(Guard::this_program(["guard"])),
        parents,
        approvals,
        tools: approve::tool_pins_dir(),
    };
    let address = catalog.gateway.listen.clone();
    let file = read.as_ref().map_or(Path::new("here"), |(path, _)| path);
    let host = LocalHost::around(file).map_err(CliError::CurrentDir)?;
    let setup = ClientSetup {
        program: program_name(&host),
        token: token_reference(&catalog.gateway, &host),
        hosts: remote_hosts(&catalog.gateway),
    };
    let gateway = Gateway::new(catalog, env)?;
    let origin = read.as_ref().map(|(path, _)| path.clone());
    if let Some((path, source)) = read {
        let listen = args.listen.clone();
        let file = ConfigFile {
            path,
            listen,
            policy,
        };
        gateway.set_config_file(file, &source);
    }
    let mut background = JoinSet::new();
    open_control(&gateway, control.as_deref(), &mut background).await?;
    reload_on_change(&gateway, &mut background);
    let signals = ShutdownSignals::listen();
    let drained = signals.clone().drained(gateway.drain());
    let serving = async {
        let served = if args.stdio {
            serve_stdio(|link, stopping| gateway.serve(link, stopping), drained).await
        } else {
            serve_http(&gateway, address, (origin, setup), drained).await
        };
        gateway.close().await;
        served
    };
    signals.abort_on_second(serving).await
}

/// Returns the command with which clients can start this program.
fn program_name(host: &LocalHost) -> String {
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    let own = own.ok().map(|path| path.to_string_lossy().into_owned());
    let default = || String::from("mcpact");
    match own {
        Some(own) if host.program(&ProgramLookup::here(&default())).real.as_ref() != Some(&own) => {
            own
        }
        Some(_) | None => default(),
    }
}

/// Returns how a client refers to the token, if one is required.
pub(super) fn token_reference(gateway: &GatewayConfig, host: &LocalHost) -> Option<TokenReference> {
    if !gateway.requires_token() {
        return None;
    }
    let written = match (&gateway.token, gateway.tokens.values().next()) {
        (None, Some(only)) if gateway.tokens.len() == 1 => only.written.as_deref(),
        _ => gateway.token_written.as_deref(),
    };
    let folder = host.folder();
    Some(match &gateway.token_variable {
        Some(name) => TokenReference::variable(name),
        None => TokenReference::parse(written, Path::new(&folder)),
    })
}

/// Returns the host names for other machines; none on loopback, where a reverse proxy has its own.
fn remote_hosts(gateway: &GatewayConfig) -> Vec<String> {
    match gateway.listen.is_local() {
        true => Vec::new(),
        false => gateway.allow_hosts.clone(),
    }
}

async fn serve_http(
    gateway: &Arc<Gateway>,
    address: ListenAddress,
    (origin, setup): (Option<PathBuf>, ClientSetup),
    drained: impl Future<Output = ()> + Send,
) -> Result<(), CliError> {
    let site = match gateway.listen().await {
        Ok(site) => site,
        Err(error) => return Err(listen_error(address, error).await),
    };
    let url = format!("{}/mcp", site.origin());
    report::print(&format!("{url}\n"))?;
    let overview = tokio::spawn(show_servers(Arc::clone(gateway), url, origin, setup));
    let served = site.run(drained).await;
    overview.abort();
    served.map_err(CliError::Serve)
}

/// Returns the error of a listener. If a gateway of this user holds the address, the error describes it.
async fn listen_error(address: ListenAddress, error: mcpact::Error) -> CliError {
    #[cfg(unix)]
    if let mcpact::Error::Transport(TransportError::Io(cause)) = &error
        && cause.kind() == std::io::ErrorKind::AddrInUse
        && let Some(port) = address.tcp().map(|tcp| tcp.port())
        && let Some(gateway) = super::control::gateway_on_port(port).await
    {
        return CliError::ServedAddress { address, gateway };
    }
    CliError::listen(address, ListenSettings::Config)(error)
}

/// Prints the overview, and a row for each server that starts later. Failures are in the log.
async fn show_servers(
    gateway: Arc<Gateway>,
    url: String,
    origin: Option<PathBuf>,
    setup: ClientSetup,
) {
    /// Time to wait for servers before printing the overview.
    const START_WAIT: Duration = Duration::from_millis(500);
    let mut started = pin!(gateway.connect_all());
    let all = async { while started.next().await.is_some() {} };
    let _ = tokio::time::timeout(START_WAIT, all).await;
    let (servers, filters) = (gateway.reports(), gateway.unapproved_filters().await);
    let invalid = gateway.invalid_servers();
    let found = match &origin {
        None => client_configs(),
        Some(_) => Vec::new(),
    };
    let parts = report::servers::Parts {
        servers: &servers,
        invalid: &invalid,
        filters: &filters,
        found: &found,
    };
    let overview = report::servers::text(&url, origin.as_deref(), &setup, &parts);
    report::eprint(&overview);
    while let Some(server) = started.next().await {
        report::eprint(&report::servers::late(&server, &gateway.reports()));
    }
}

/// Returns the configs of other clients on this machine that have servers, each with the number of servers.
fn client_configs() -> Vec<(PathBuf, usize)> {
    let Ok(folders) = super::import::folders() else {
        return Vec::new();
    };
    let paths = CLIENTS.iter().flat_map(|client| client.paths(&folders));
    let mut found: Vec<(PathBuf, usize)> = Vec::new();
    for path in paths.filter(|path| path.is_file()) {
        let count = inspect(&path).ok().and_then(|(_, outcome)| {
            let catalog = outcome.catalog?;
            Some(catalog.servers.len() + catalog.wrong.len())
        });
        if let Some(count) = count.filter(|count| *count > 0)
            && found.iter().all(|(other, _)| *other != path)
        {
            found.push((path, count));
        }
    }
    found
}

/// Opens the control socket for `mcpact status`, `logs` and `reload`.
#[cfg(unix)]
async fn open_control(
    gateway: &Arc<Gateway>,
    configured: Option<&Path>,
    background: &mut JoinSet<()>,
) -> Result<(), CliError> {
    let opened = match configured {
        Some(path) => Control::open(path).await.map_err(CliError::Control)?,
        None => match open_default_control().await {
            Ok(control) => control,
            // The config does not ask for it, and serving works without it.
            Err(error) => {
                tracing::warn!(
                    error,
                    "no control socket; `mcpact status` cannot find this gateway"
                );
                return Ok(());
            }
        },
    };
    background.spawn(opened.run(Arc::clone(gateway)));
    Ok(())
}

#[cfg(unix)]
async fn open_default_control() -> Result<Control, String> {
    let dir = super::control::socket_dir().ok_or("neither XDG_RUNTIME_DIR nor HOME is set")?;
    mcpact_transport::unix::private_folder(&dir).map_err(|error| error.to_string())?;
    // Remove the sockets of gateways that no longer run.
    let _ = mcpact_transport::unix::sweep(&dir).await;
    let path = socket_path(&dir, std::process::id());
    Control::open(&path)
        .await
        .map_err(|error| error.to_string())
}

#[cfg(not(unix))]
async fn open_control(
    _: &Arc<Gateway>,
    _: Option<&Path>,
    _: &mut JoinSet<()>,
) -> Result<(), CliError> {
    Ok(())
}

/// Reloads the config when its file changes, and on signal HUP.
fn reload_on_change(gateway: &Arc<Gateway>, background: &mut JoinSet<()>) {
    let watched = Arc::clone(gateway);
    background.spawn(async move { watched.watch().await });
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signalled = Arc::clone(gateway);
        if let Ok(mut hangups) = signal(SignalKind::hangup()) {
            background.spawn(async move {
                while hangups.recv().await.is_some() {
                    signalled.reload(ReloadCause::Signal).await;
                }
            });
        }
    }
}

/// The config to serve.
struct Config {
    catalog: Catalog,
    /// Its file; `None` for the built-in config.
    read: Option<(PathBuf, Source)>,
}

impl Config {
    /// Loads the given config, else the nearest one, else the built-in one.
    fn load(args: &ServeArgs, policy: &PolicySettings) -> Result<Self, CliError> {
        let nearest = || nearest_config(&std::env::current_dir().ok()?);
        let Some(path) = args.config.clone().or_else(nearest) else {
            let (mut catalog, read) = (demo(), None);
            catalog.gateway.policy = policy.policy();
            return Ok(Self { catalog, read });
        };
        let loaded = load_with(&path, policy)
            .map_err(|error| policy::load_error(&args.policy, &path, error))?;
        let mut problems = loaded.problems;
        // `mcpact check` shows the notes, too. The overview shows the errors of skipped servers.
        problems.retain(|problem| problem.severity == Severity::Warning);
        report::eprint(&report::problems::list(&loaded.source, &problems));
        let path = std::path::absolute(path).map_err(CliError::CurrentDir)?;
        Ok(Self {
            catalog: loaded.catalog,
            read: Some((path, loaded.source)),
        })
    }
}

/// The reference server, in this process.
pub(crate) fn everything() -> Local {
    Local(Arc::new(|| {
        let (ours, theirs) = memory::pair();
        let server = mcpact_everything::server(&Revision::ALL);
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    }))
}
