//! `mcpact serve`: the gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use mcpact_config::keys::EVERYTHING;
use mcpact_config::{
    Approvals, Catalog, CatalogError, GatewayConfig, Launch, Machine, ServerConfig, ServerName,
    Severity, Sought, Source, Surroundings as _, load, nearest_config,
};
use mcpact_engine::client::EraMode;
#[cfg(unix)]
use mcpact_gateway::control::{Control, own_socket};
use mcpact_gateway::{ConfigFile, Gateway, Lineage, Local, ReloadCause, Surroundings};
use mcpact_spec::{Era, Revision};
use mcpact_transport::memory;
use mcpact_transport::stdio::child::{Guard, LINEAGE, is_running};
use tokio::task::JoinSet;

use super::front::Stops;
use super::known::Known;
use super::{approve, front};
use crate::args::Serve;
use crate::error::{CliError, Settings};
use crate::exit::Exit;
use crate::report;
use crate::report::servers::{Entry, Origin, Token};

/// What is served when nothing is configured: a server of each era.
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

pub(super) fn run(args: &Serve) -> Result<Exit, CliError> {
    let mut config = Config::choose(args)?;
    if let Some(address) = args.listen {
        config.catalog.gateway.listen_instead(address);
        if let Some((message, remedy)) = config.catalog.gateway.namelessness() {
            report::warn(&message, &remedy);
        }
    }
    let lineage = lineage(&config)?;
    let approvals = approvals(args, &config)?;
    front::block_on(serve(args, config, approvals, lineage))?;
    Ok(Exit::Ok)
}

/// The gateways that have led to this one, and itself. What has no config starts no programs.
fn lineage(config: &Config) -> Result<Lineage, CliError> {
    let told = std::env::var(LINEAGE).unwrap_or_default();
    let before = Lineage::parse(&told);
    let Some((path, _)) = &config.read else {
        return Ok(before);
    };
    // By whatever links it was found.
    let file = path.canonicalize().unwrap_or_else(|_| path.clone());
    let lineage = before.with(&file, std::process::id(), is_running);
    lineage.map_err(|source| CliError::Descent {
        config: path.clone(),
        source,
    })
}

/// Whoever names a config agrees to what it starts. One that is merely found may come from anybody.
fn approvals(args: &Serve, config: &Config) -> Result<Option<Approvals>, CliError> {
    let Some((file, source)) = &config.read else {
        return Ok(None);
    };
    if args.config.is_some() && !args.approved_only {
        return Ok(None);
    }
    let approvals = approve::kept().ok_or(CliError::NoState)?;
    if args.stdio {
        // There is no address that anybody could come to.
        return Ok(Some(approvals));
    }
    let asking = approve::Asking {
        file,
        approvals: &approvals,
        marks: &[],
    };
    let gateway = &config.catalog.gateway;
    if approve::is_anybody_there() {
        asking.about(&config.catalog, |_| true)?;
        asking.about_gateway(gateway)?;
    }
    let shut = asking.left_of_gateway(gateway)?;
    if !shut.is_empty() {
        return Err(CliError::Catalog(CatalogError::Refused {
            source_text: Box::new(source.clone()),
            problems: shut.iter().map(|shut| shut.refused(source)).collect(),
        }));
    }
    Ok(Some(approvals))
}

async fn serve(
    args: &Serve,
    config: Config,
    approvals: Option<Approvals>,
    lineage: Lineage,
) -> Result<(), CliError> {
    let Config { catalog, read } = config;
    let control = catalog.gateway.control.clone();
    let known = if args.no_cache {
        Known::default()
    } else {
        Known::kept()
    };
    let surroundings = Surroundings {
        builtins: BTreeMap::from([(EVERYTHING, everything())]),
        verdicts: known.verdicts,
        cache: known.servers,
        guard: Some(Guard::this_program(["guard"])),
        lineage,
        approvals,
        tools: approve::tools(),
    };
    let address = catalog.gateway.listen;
    let file = read.as_ref().map_or(Path::new("here"), |(path, _)| path);
    let machine = Machine::around(file).map_err(CliError::Here)?;
    let entry = Entry {
        program: own_name(&machine),
        token: shown_token(&catalog.gateway, &machine),
        hosts: shown_hosts(&catalog.gateway),
    };
    let gateway = Gateway::new(catalog, surroundings)?;
    let mut origin = Origin::Builtin;
    if let Some((path, source)) = read {
        let listen = args.listen;
        origin = Origin::File(path.clone());
        gateway.serves(ConfigFile { path, listen }, &source);
    }
    let mut beside = JoinSet::new();
    answer_askers(&gateway, control.as_deref(), &mut beside).await?;
    keep_up(&gateway, &mut beside);
    let stops = Stops::count();
    let drained = stops.clone().drained(gateway.drain());
    let serving = async {
        let served = if args.stdio {
            front::on_own_pipes(|link, stopping| gateway.serve(link, stopping), drained).await
        } else {
            on_http(&gateway, address, (origin, entry), drained).await
        };
        gateway.close().await;
        served
    };
    stops.cut_off(serving).await
}

/// By what name clients can start this program.
fn own_name(machine: &Machine) -> String {
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    let own = own.ok().map(|path| path.to_string_lossy().into_owned());
    let usual = || String::from("mcpact");
    match own {
        Some(own) if machine.program(&Sought::here(&usual())).real.as_ref() != Some(&own) => own,
        Some(_) | None => usual(),
    }
}

/// How people write the token that clients must show, if there is one.
fn shown_token(gateway: &GatewayConfig, machine: &Machine) -> Option<Token> {
    gateway.token.as_ref()?;
    let written = gateway.token_written.as_deref();
    let folder = machine.folder();
    Some(match &gateway.token_variable {
        Some(name) => Token::in_variable(name),
        None => Token::of(written, Path::new(&folder)),
    })
}

/// By which names other machines can call the gateway; on loopback whatever stands before it has an address of its own.
fn shown_hosts(gateway: &GatewayConfig) -> Vec<String> {
    match gateway.listen.ip().is_loopback() {
        true => Vec::new(),
        false => gateway.allow_hosts.clone(),
    }
}

async fn on_http(
    gateway: &Arc<Gateway>,
    address: SocketAddr,
    (origin, entry): (Origin, Entry),
    drained: impl Future<Output = ()> + Send,
) -> Result<(), CliError> {
    let site = gateway.listen().await;
    let site = site.map_err(|source| CliError::Listen {
        address,
        settings: Settings::Config,
        source,
    })?;
    let url = format!("{}/mcp", site.origin());
    report::print(&format!("{url}\n"))?;
    let meeting = tokio::spawn(introduce(Arc::clone(gateway), url, origin, entry));
    let served = site.run(drained).await;
    meeting.abort();
    served.map_err(CliError::Serve)
}

/// Shows what is served, and tells of servers that take their time when they have introduced themselves. Of those
/// that turn out to be missing the log tells.
async fn introduce(gateway: Arc<Gateway>, url: String, origin: Origin, entry: Entry) {
    /// How long servers may take to stand there with what was agreed on.
    const SOON: Duration = Duration::from_millis(500);
    let mut meeting = pin!(gateway.meet());
    let meet_all = async { while meeting.next().await.is_some() {} };
    let _ = tokio::time::timeout(SOON, meet_all).await;
    let shown = report::servers::Shown {
        servers: gateway.reports(),
        filters: gateway.unapproved_filters().await,
    };
    let told = report::servers::text(&url, &origin, &entry, &shown);
    report::aside(&told);
    while let Some(server) = meeting.next().await {
        report::aside(&report::servers::late(&server, &gateway.reports()));
    }
}

/// Opens the private socket, at which other programs of this user ask how the gateway is.
#[cfg(unix)]
async fn answer_askers(
    gateway: &Arc<Gateway>,
    configured: Option<&Path>,
    beside: &mut JoinSet<()>,
) -> Result<(), CliError> {
    let opened = match configured {
        Some(path) => Control::open(path).await.map_err(CliError::Control)?,
        None => match open_usual().await {
            Ok(control) => control,
            // Nobody has asked for it, and everything else works.
            Err(why) => {
                tracing::warn!(why, "`mcpact status` will not find this gateway");
                return Ok(());
            }
        },
    };
    beside.spawn(opened.run(Arc::clone(gateway)));
    Ok(())
}

#[cfg(unix)]
async fn open_usual() -> Result<Control, String> {
    let folder = super::control::folder().ok_or("there is no runtime folder and no home")?;
    mcpact_transport::unix::private_folder(&folder).map_err(|error| error.to_string())?;
    // What dead gateways have left there is nobody's any more.
    let _ = mcpact_transport::unix::sweep(&folder).await;
    let path = own_socket(&folder, std::process::id());
    Control::open(&path)
        .await
        .map_err(|error| error.to_string())
}

#[cfg(not(unix))]
async fn answer_askers(
    _: &Arc<Gateway>,
    _: Option<&Path>,
    _: &mut JoinSet<()>,
) -> Result<(), CliError> {
    Ok(())
}

/// Reads the config anew when its file changes, or a signal says so.
fn keep_up(gateway: &Arc<Gateway>, beside: &mut JoinSet<()>) {
    let watched = Arc::clone(gateway);
    beside.spawn(async move { watched.watch().await });
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let told = Arc::clone(gateway);
        if let Ok(mut hangups) = signal(SignalKind::hangup()) {
            beside.spawn(async move {
                while hangups.recv().await.is_some() {
                    told.reload(ReloadCause::Signal).await;
                }
            });
        }
    }
}

/// What is served.
struct Config {
    catalog: Catalog,
    /// Where it was read; nowhere if it is built in.
    read: Option<(PathBuf, Source)>,
}

impl Config {
    /// The config that was named, or the nearest one, or the built-in one.
    fn choose(args: &Serve) -> Result<Self, CliError> {
        let nearest = || nearest_config(&std::env::current_dir().ok()?);
        let Some(path) = args.config.clone().or_else(nearest) else {
            let (catalog, read) = (demo(), None);
            return Ok(Self { catalog, read });
        };
        let loaded = load(&path)?;
        let mut problems = loaded.problems;
        // Whoever wants to know more asks `mcpact check`.
        problems.retain(|problem| problem.severity >= Severity::Warning);
        report::aside(&report::problems::list(&loaded.source, &problems));
        let path = std::path::absolute(path).map_err(CliError::Here)?;
        Ok(Self {
            catalog: loaded.catalog,
            read: Some((path, loaded.source)),
        })
    }
}

/// The reference server, as part of this program.
fn everything() -> Local {
    Local(Arc::new(|| {
        let (ours, theirs) = memory::pair();
        let server = mcpact_everything::server(&Revision::ALL);
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    }))
}
