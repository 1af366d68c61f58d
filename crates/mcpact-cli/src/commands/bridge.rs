//! `mcpact bridge`: one server for clients of every revision.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::SessionEnd;
use mcpact_config::{Catalog, LocalHost, expand_text};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Target, UpstreamServer, UpstreamSettings};
use mcpact_spec::Revision;
use mcpact_transport::http::client::HttpSettings;
#[cfg(unix)]
use mcpact_transport::http::client::ProxyMode;
use mcpact_transport::stdio::child::{ChildCommand, Guard, Masks};

use super::cache::ServerCache;
use super::shutdown::{ShutdownSignals, serve_stdio};
use super::{block_on, http, policy};
use crate::args::BridgeArgs;
use crate::error::{CliError, Exit, ListenSettings};
use crate::report;

pub(super) fn run(args: &BridgeArgs) -> Result<Exit, CliError> {
    let target = target(args)?;
    let cache = ServerCache::open(args.no_cache);
    let mut settings = UpstreamSettings {
        mode: mode(&args.era)?,
        verdicts: cache.verdicts,
        masks: Masks::new(target.secrets()),
        ..UpstreamSettings::default()
    };
    settings.front.http_sse = args.sse;
    settings.front.policy = policy::settings(&args.policy, None)?.policy();
    http::apply(&args.http, &mut settings.front)?;
    block_on(serve(args, target, settings))?;
    Ok(Exit::Ok)
}

async fn serve(
    args: &BridgeArgs,
    target: Target,
    settings: UpstreamSettings,
) -> Result<(), CliError> {
    let bridge = UpstreamServer::new(target, settings).map_err(CliError::Serve)?;
    // The default `drain_seconds` of a gateway.
    let limit = Catalog::default().gateway.drain;
    let signals = ShutdownSignals::listen();
    let first = signals.clone();
    let serving = async {
        let served = match args.listen {
            Some(address) => serve_http(args, &bridge, address, limit, first).await,
            None => {
                if std::io::stdin().is_terminal() {
                    report::hint(
                        "waiting for an MCP client on stdin; let a client start this command, or press Ctrl-C",
                    );
                }
                let drained = first.drained(bridge.drain(limit));
                let serve = |link, stopping| {
                    Arc::clone(&bridge).serve_until(link, SessionEnd::new(limit, stopping))
                };
                serve_stdio(serve, drained).await
            }
        };
        Arc::clone(&bridge).close().await;
        served
    };
    signals.abort_on_second(serving).await
}

async fn serve_http(
    args: &BridgeArgs,
    bridge: &Arc<UpstreamServer>,
    address: SocketAddr,
    limit: Duration,
    signals: ShutdownSignals,
) -> Result<(), CliError> {
    let listening = Arc::clone(bridge).listen(address).await;
    let listening = listening.map_err(CliError::listen(address, ListenSettings::Flags))?;
    http::warn_without_hosts(address, &args.http);
    report::print(&format!("{}\n", listening.url()))?;
    let door = listening.route();
    let drained = signals.drained(async {
        door.drain();
        bridge.drain(limit).await
    });
    listening.run(drained).await.map_err(CliError::Serve)
}

/// Parses the target: a URL, or a command with its arguments.
fn target(args: &BridgeArgs) -> Result<Target, CliError> {
    let given = &args.target;
    let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    let has_headers = !args.header.is_empty() || args.bearer.is_some();
    match given.as_slice() {
        [url] if is_url(url) => Ok(Target::Url {
            url: url.clone(),
            settings: Box::new(with_headers(args)?),
        }),
        #[cfg(unix)]
        [target] if target.starts_with(UNIX) => over_unix_socket(target, with_headers(args)?),
        [url, next, ..] if is_url(url) => Err(CliError::ExtraArgument {
            given: next.clone(),
        }),
        [_, ..] if has_headers => Err(CliError::header(
            "the target is a command, not a URL",
            "pass secrets to a command in environment variables",
        )),
        [program, args @ ..] if !program.contains("://") && !is_host_and_port(program) => {
            let mut command = ChildCommand::new(program)
                .with_args(args)
                .with_guard(Guard::this_program(["guard"]));
            // The config of the client names the variables of the server.
            for (name, value) in std::env::vars_os() {
                if !name.to_string_lossy().starts_with("MCPACT_") {
                    command = command.with_env(name, value);
                }
            }
            Ok(Target::Command(Box::new(command)))
        }
        [] | [_, ..] => Err(CliError::Target {
            given: given.join(" "),
        }),
    }
}

/// Scheme of a target on a Unix socket.
#[cfg(unix)]
const UNIX: &str = "unix:";

/// Parses `unix:PATH`, or `unix:PATH:/path` for another path than `/mcp`.
#[cfg(unix)]
fn over_unix_socket(target: &str, settings: HttpSettings) -> Result<Target, CliError> {
    let rest = target.strip_prefix(UNIX).unwrap_or(target);
    let (socket, path) = match rest.split_once(":/") {
        Some((socket, path)) => (socket, path),
        None => (rest, "mcp"),
    };
    let unsupported = || CliError::Target {
        given: target.to_owned(),
    };
    let socket = std::path::absolute(socket).map_err(|_| unsupported())?;
    let settings = HttpSettings {
        unix_socket: Some(socket),
        proxy: ProxyMode::Disabled,
        ..settings
    };
    Ok(Target::Url {
        url: format!("http://localhost/{path}"),
        settings: Box::new(settings),
    })
}

/// Returns true for a URL without a scheme, such as `localhost:6272/mcp`.
fn is_host_and_port(text: &str) -> bool {
    let port = text.split_once(':').map(|(_, rest)| rest);
    let is_port = port.is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit()));
    is_port && !Path::new(text).exists()
}

fn with_headers(args: &BridgeArgs) -> Result<HttpSettings, CliError> {
    let mut settings = HttpSettings::default();
    // Relative files start at the current directory.
    let host = LocalHost::around(Path::new("here")).map_err(CliError::CurrentDir)?;
    for header in &args.header {
        // An invalid header is not repeated, because it may be a secret.
        let (name, value) = header.split_once(':').ok_or_else(|| {
            CliError::header(
                "missing `:` between name and value",
                "for example `--header 'Authorization: Bearer ${TOKEN}'`",
            )
        })?;
        let name = name.trim();
        if args.bearer.is_some() && name.eq_ignore_ascii_case("authorization") {
            return Err(CliError::header(
                "`--header` and `--bearer` both set `Authorization`",
                "remove one of them",
            ));
        }
        let value = expand(value.trim(), &host)?;
        add(name, &value, &mut settings)?;
    }
    if let Some(source) = &args.bearer {
        let token = bearer(source, &host)?;
        add("Authorization", &format!("Bearer {token}"), &mut settings)?;
    }
    Ok(settings)
}

/// Reads the token from a variable or file.
fn bearer(source: &str, host: &LocalHost) -> Result<String, CliError> {
    let is_source = source.starts_with("env:") || source.starts_with("file:");
    if !is_source || source.contains('}') {
        // The value is not repeated, because it may be the token itself.
        return Err(CliError::header(
            "`--bearer` is not `env:NAME` or `file:PATH`",
            "for example `--bearer env:TOKEN` or `--bearer file:token`",
        ));
    }
    let token = expand_text(&format!("${{{source}}}"), host);
    let token = token.map_err(|problem| CliError::Bearer {
        reason: problem.message,
    })?;
    if token.starts_with("${") {
        return Err(CliError::header(
            format!("`{source}` contains an unexpanded variable reference"),
            "store the token itself; not every client expands variables",
        ));
    }
    if token.trim().is_empty() {
        return Err(CliError::header(
            format!("`{source}` is empty"),
            "store the token there, or remove `--bearer`",
        ));
    }
    Ok(token)
}

fn expand(text: &str, host: &LocalHost) -> Result<String, CliError> {
    expand_text(text, host)
        .map_err(|problem| CliError::header(problem.message, problem.remedy.unwrap_or_default()))
}

fn add(name: &str, value: &str, settings: &mut HttpSettings) -> Result<(), CliError> {
    let added = settings.headers.insert(name, value);
    added.map_err(|error| CliError::header(error.to_string(), "correct or remove it"))
}

fn mode(given: &str) -> Result<EraMode, CliError> {
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
