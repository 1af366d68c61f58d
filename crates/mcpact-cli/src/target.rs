//! Resolves `TARGET`: a URL, a command, or a server of a config.

mod error;
mod headers;

use std::path::{Path, PathBuf};

use mcpact_config::keys::EVERYTHING;
use mcpact_config::{
    Approval, ApprovalState, Catalog, Launch, ServerConfig, ServerName, load, nearest_config,
};
use mcpact_engine::client::EraMode;
use mcpact_gateway::Target;
use mcpact_gateway::control::Status;
use mcpact_spec::Revision;
use mcpact_transport::address::shown;
use mcpact_transport::http::client::{HttpSettings, ProxyMode};
use mcpact_transport::stdio::child::{ChildCommand, Guard, Masks, StartCheck, secret_args};

use crate::args::{ConnectArgs, TargetArgs};
use crate::commands::{approve, control, serve};
use crate::error::CliError;

pub(crate) use self::error::TargetError;

/// Server that a user selected.
#[derive(Debug)]
pub(crate) struct ResolvedTarget {
    /// Name for output: the URL without secrets, the command, or the configured name.
    pub(crate) label: String,
    /// Command, URL with headers, or server in this process.
    pub(crate) target: Target,
    /// Values to mask in output.
    pub(crate) masks: Masks,
    /// Eras to try.
    pub(crate) era: EraMode,
    /// Configured server; `None` for a URL or command of the command line.
    pub(crate) configured: Option<ConfiguredServer>,
}

/// Server of a config.
#[derive(Debug)]
pub(crate) struct ConfiguredServer {
    /// Name in the config.
    pub(crate) name: ServerName,
    /// Config file.
    pub(crate) file: PathBuf,
    /// Settings of the server.
    pub(crate) config: ServerConfig,
    /// Endpoint of the running gateway that serves it; `None` for a direct connection.
    pub(crate) gateway: Option<String>,
}

/// Resolves the target of a command without further arguments.
///
/// # Errors
/// The target is missing, invalid, unknown or not approved, or a config or header cannot be used.
pub(crate) async fn resolve(args: &TargetArgs) -> Result<ResolvedTarget, CliError> {
    resolve_named(args.target.as_deref(), &args.connect).await
}

/// Resolves a target. A command replaces the positional argument.
///
/// # Errors
/// See [`resolve`].
pub(crate) async fn resolve_named(
    given: Option<&str>,
    args: &ConnectArgs,
) -> Result<ResolvedTarget, CliError> {
    let has_headers = !args.header.is_empty() || args.bearer.is_some();
    if let Some(file) = &args.config
        && (!args.command.is_empty() || given.is_some_and(is_endpoint))
    {
        return Err(TargetError::UnusedConfig(file.clone()).into());
    }
    match (given, args.command.as_slice()) {
        (None, []) => Err(TargetError::Missing.into()),
        (Some(given), [first, ..]) => Err(TargetError::Twice {
            given: given.to_owned(),
            command: first.clone(),
        }
        .into()),
        // Also behind `--`, a URL is no program.
        (None, [url]) if is_endpoint(url) => endpoint(url, args),
        (None, [url, next, ..]) if is_endpoint(url) => Err(TargetError::ExtraArgument {
            given: next.clone(),
        }
        .into()),
        (None, _) if has_headers => Err(CliError::header(
            "the target is a command, not a URL",
            "pass secrets to a command in environment variables",
        )),
        (None, [program, rest @ ..]) => typed_command(program, rest, era(args)?),
        (Some(given), []) if is_endpoint(given) => endpoint(given, args),
        (Some(given), []) if given.contains("://") || is_host_and_port(given) => {
            Err(TargetError::Invalid {
                given: given.to_owned(),
            }
            .into())
        }
        (Some(_), []) if has_headers => Err(CliError::header(
            "the target is a server of a config",
            "set `headers` of the server in the config",
        )),
        (Some(given), []) => configured(given, args).await,
    }
}

/// Returns the target and the other positional arguments. With a command, every argument is another one.
pub(crate) fn split<'a>(
    words: &'a [String],
    args: &ConnectArgs,
) -> (Option<&'a str>, &'a [String]) {
    match words {
        [target, rest @ ..] if args.command.is_empty() => (Some(target), rest),
        all => (None, all),
    }
}

/// Rejects arguments after the last expected one.
pub(crate) fn no_more(words: &[String]) -> Result<(), CliError> {
    match words {
        [] => Ok(()),
        [first, ..] => Err(TargetError::ExtraArgument {
            given: first.clone(),
        }
        .into()),
    }
}

fn is_endpoint(given: &str) -> bool {
    ["http://", "https://", UNIX]
        .iter()
        .any(|scheme| given.starts_with(scheme))
}

/// Returns true for a URL without a scheme, such as `localhost:6272/mcp`.
fn is_host_and_port(text: &str) -> bool {
    let port = text.split_once(':').map(|(_, rest)| rest);
    port.is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit()))
}

/// Parses the era; without one, all eras are tried.
fn era(args: &ConnectArgs) -> Result<EraMode, CliError> {
    args.era.as_deref().map_or(Ok(EraMode::Auto), era_mode)
}

fn era_mode(given: &str) -> Result<EraMode, CliError> {
    match given {
        "auto" => Ok(EraMode::Auto),
        "legacy" => Ok(EraMode::Legacy),
        "modern" => Ok(EraMode::Modern),
        other => Revision::parse(other).map(EraMode::Pin).ok_or_else(|| {
            let revisions = Revision::ALL.map(Revision::as_str);
            let known = ["auto", "legacy", "modern"].into_iter().chain(revisions);
            CliError::unknown("era", other, "possible values", known)
        }),
    }
}

fn typed_command(program: &str, args: &[String], era: EraMode) -> Result<ResolvedTarget, CliError> {
    let mut command = ChildCommand::new(program)
        .with_args(args)
        .with_guard(Guard::this_program(["guard"]));
    // The user's shell or client has set the variables of the server.
    for (name, value) in std::env::vars_os() {
        if !name.to_string_lossy().starts_with("MCPACT_") {
            command = command.with_env(name, value);
        }
    }
    let secrets = secret_args(args.iter().map(String::as_str));
    let masks = Masks::new(secrets.into_iter().map(str::to_owned));
    let words = std::iter::once(program).chain(args.iter().map(String::as_str));
    let label = words.collect::<Vec<_>>().join(" ");
    Ok(ResolvedTarget {
        label: masks.cover(label),
        target: Target::Command(Box::new(command)),
        masks,
        era,
        configured: None,
    })
}

/// Scheme of a target on a Unix socket.
const UNIX: &str = "unix:";

/// Resolves a URL or Unix socket.
fn endpoint(given: &str, args: &ConnectArgs) -> Result<ResolvedTarget, CliError> {
    let settings = headers::settings(&args.header, args.bearer.as_deref())?;
    let target = at_endpoint(given, settings)?;
    Ok(ResolvedTarget {
        label: shown(given),
        masks: Masks::new(target.secrets()),
        target,
        era: era(args)?,
        configured: None,
    })
}

/// Parses a URL, `unix:PATH`, or `unix:PATH:/path` for another path than `/mcp`.
fn at_endpoint(given: &str, settings: HttpSettings) -> Result<Target, CliError> {
    let Some(rest) = given.strip_prefix(UNIX) else {
        return Ok(Target::Url {
            url: given.to_owned(),
            settings: Box::new(settings),
        });
    };
    let (socket, path) = match rest.split_once(":/") {
        Some((socket, path)) => (socket, path),
        None => (rest, "mcp"),
    };
    let socket = std::path::absolute(socket).map_err(|_| TargetError::Invalid {
        given: given.to_owned(),
    })?;
    Ok(Target::Url {
        url: format!("http://localhost/{path}"),
        settings: Box::new(HttpSettings {
            unix_socket: Some(socket),
            proxy: ProxyMode::Disabled,
            ..settings
        }),
    })
}

/// Resolves a server of the given or nearest config: at the running gateway of this config, or directly.
async fn configured(given: &str, args: &ConnectArgs) -> Result<ResolvedTarget, CliError> {
    let given_era = args.era.as_deref().map(era_mode).transpose()?;
    let file = config_file(given, args)?;
    let catalog = load(&file)?.catalog;
    let mut servers = catalog.servers.iter();
    let Some((name, config)) = servers.find(|(name, _)| name.as_str() == given) else {
        return Err(unknown_server(given, file, &catalog).into());
    };
    let mut configured = ConfiguredServer {
        name: name.clone(),
        file,
        config: config.clone(),
        gateway: None,
    };
    let status = control::gateway_of(&configured.file, catalog.gateway.control.clone()).await;
    let endpoint = status.and_then(|status| served_at(&status, name));
    let at_gateway = match endpoint {
        Some(endpoint) => Some((at_gateway(&endpoint, &catalog)?, endpoint)),
        None => None,
    };
    let mut secrets = configured.config.launch.secrets();
    let (target, default_era) = match at_gateway {
        Some((target, endpoint)) => {
            secrets.extend(target.secrets());
            configured.gateway = Some(endpoint);
            (target, EraMode::Auto)
        }
        None => {
            // `--config` implies approval, as for `serve`; a config that was found may come from anyone.
            let start_check = match args.config {
                Some(_) => None,
                None => check_approval(&configured)?,
            };
            (directly(&configured, start_check)?, configured.config.era)
        }
    };
    Ok(ResolvedTarget {
        label: name.to_string(),
        target,
        masks: Masks::new(secrets),
        era: given_era.unwrap_or(default_era),
        configured: Some(configured),
    })
}

fn config_file(given: &str, args: &ConnectArgs) -> Result<PathBuf, CliError> {
    if let Some(file) = &args.config {
        return Ok(file.clone());
    }
    let dir = std::env::current_dir().map_err(CliError::CurrentDir)?;
    let missing = || TargetError::NoConfig {
        given: given.to_owned(),
    };
    Ok(nearest_config(&dir).ok_or_else(missing)?)
}

fn unknown_server(given: &str, file: PathBuf, catalog: &Catalog) -> TargetError {
    let mut unusable = catalog.wrong.iter();
    match unusable.find(|(name, _)| name.as_str() == given) {
        Some((_, reason)) => TargetError::Unusable {
            given: given.to_owned(),
            file,
            reason: reason.clone(),
        },
        None => TargetError::Unknown {
            given: given.to_owned(),
            file,
            known: catalog.servers.keys().map(ToString::to_string).collect(),
        },
    }
}

/// Returns the endpoint of a server at a gateway of this machine.
fn served_at(status: &Status, name: &ServerName) -> Option<String> {
    let mut servers = status.servers.iter();
    servers.find(|line| line.name == name.as_str() && line.state != "wrong")?;
    let origin = status.gateway.url.as_deref()?.strip_suffix("/mcp")?;
    let is_local = ["http://127.", "http://[::1]", UNIX]
        .iter()
        .any(|start| origin.starts_with(start));
    if !is_local {
        tracing::info!(
            url = origin,
            "gateway is not on loopback without TLS; connecting directly"
        );
    }
    is_local.then(|| format!("{origin}/servers/{name}/mcp"))
}

/// Returns the endpoint with the token of the config.
fn at_gateway(endpoint: &str, catalog: &Catalog) -> Result<Target, CliError> {
    let gateway = &catalog.gateway;
    let named = gateway.tokens.values().map(|token| &token.secret);
    let mut settings = HttpSettings {
        proxy: ProxyMode::Disabled,
        ..HttpSettings::default()
    };
    if let Some(token) = gateway.token.iter().chain(named).next() {
        let value = format!("Bearer {}", token.reveal());
        headers::add("Authorization", &value, &mut settings)?;
    }
    at_endpoint(endpoint, settings)
}

/// Checks that the user approved the launch. The returned check finds files that are exchanged from now on.
fn check_approval(configured: &ConfiguredServer) -> Result<Option<StartCheck>, CliError> {
    let approval = Approval {
        launch: configured.config.launch.clone(),
        approvals: approve::open_approvals().ok_or(CliError::NoStateDir)?,
    };
    let checked = approval.check().map_err(|source| CliError::Approve {
        server: configured.name.to_string(),
        source,
    })?;
    match checked {
        ApprovalState::Approved(start_check) => Ok(start_check),
        ApprovalState::Missing(subject) => Err(TargetError::NotApproved {
            name: configured.name.to_string(),
            kind: subject.kind,
        }
        .into()),
    }
}

fn directly(
    configured: &ConfiguredServer,
    start_check: Option<StartCheck>,
) -> Result<Target, CliError> {
    let name = &configured.name;
    match &configured.config.launch {
        Launch::Command(launch) => {
            // The approved program is the one that is started.
            let mut command = launch.found().child(name);
            let guard = Guard::this_program(["guard"]);
            command.guard = Some(guard.confining(&launch.confinement));
            command.start_check = start_check;
            Ok(Target::Command(Box::new(command)))
        }
        Launch::Url(launch) => {
            let settings = launch.settings().map_err(|source| TargetError::Settings {
                name: name.to_string(),
                source,
            })?;
            Ok(Target::Url {
                url: launch.url.value().to_owned(),
                settings: Box::new(settings),
            })
        }
        Launch::Builtin(builtin) if builtin == EVERYTHING => Ok(Target::Local(serve::everything())),
        Launch::Builtin(builtin) => Err(CliError::unknown(
            "built-in server",
            builtin,
            "built-in servers",
            [EVERYTHING],
        )),
    }
}

/// Returns whether two paths lead to the same file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
