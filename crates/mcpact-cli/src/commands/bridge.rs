//! `mcpact bridge`: one server for any client.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::Ending;
use mcpact_config::{Catalog, Machine, fill};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Bridge, BridgeSettings, Target};
use mcpact_spec::Revision;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::stdio::child::{ChildCommand, Guard, Masks};

use super::front::{self, Stops};
use super::known::Known;
use crate::args::BridgeArgs;
use crate::error::{CliError, Settings};
use crate::exit::Exit;
use crate::report;

pub(super) fn run(args: &BridgeArgs) -> Result<Exit, CliError> {
    let target = target(args)?;
    let known = if args.no_cache {
        Known::default()
    } else {
        Known::kept()
    };
    let mut settings = BridgeSettings {
        mode: mode(&args.era)?,
        verdicts: known.verdicts,
        masks: Masks::new(target.secrets()),
        ..BridgeSettings::default()
    };
    settings.front.http_sse = args.sse;
    front::apply(&args.front, &mut settings.front)?;
    front::block_on(serve(args, target, settings))?;
    Ok(Exit::Ok)
}

async fn serve(
    args: &BridgeArgs,
    target: Target,
    settings: BridgeSettings,
) -> Result<(), CliError> {
    let bridge = Bridge::new(target, settings).map_err(CliError::Serve)?;
    // As long as a gateway waits that is not told otherwise.
    let limit = Catalog::default().gateway.drain;
    let stops = Stops::count();
    let told = stops.clone();
    let serving = async {
        let served = match args.listen {
            Some(address) => on_http(args, &bridge, address, limit, told).await,
            None => {
                let drained = told.drained(bridge.drain(limit));
                let serve = |link, stopping| {
                    Arc::clone(&bridge).serve_until(link, Ending::new(limit, stopping))
                };
                front::on_own_pipes(serve, drained).await
            }
        };
        Arc::clone(&bridge).close().await;
        served
    };
    stops.cut_off(serving).await
}

async fn on_http(
    args: &BridgeArgs,
    bridge: &Arc<Bridge>,
    address: SocketAddr,
    limit: Duration,
    stops: Stops,
) -> Result<(), CliError> {
    let listening = Arc::clone(bridge).listen(address).await;
    let listening = listening.map_err(|source| CliError::Listen {
        address,
        settings: Settings::Options,
        source,
    })?;
    front::tell_nameless(address, &args.front);
    report::print(&format!("{}\n", listening.url()))?;
    let door = listening.door();
    let drained = stops.drained(async {
        door.rest();
        bridge.drain(limit).await
    });
    listening.run(drained).await.map_err(CliError::Serve)
}

/// A URL, or a program with its arguments.
fn target(args: &BridgeArgs) -> Result<Target, CliError> {
    let given = &args.target;
    let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    let has_headers = !args.header.is_empty() || args.bearer.is_some();
    match given.as_slice() {
        [url] if is_url(url) => Ok(Target::Url {
            url: url.clone(),
            settings: Box::new(with_headers(args)?),
        }),
        [url, next, ..] if is_url(url) => Err(CliError::Behind {
            given: next.clone(),
        }),
        [_, ..] if has_headers => Err(CliError::Header {
            why: String::from("the server is a program, which is sent none"),
            remedy: String::from("programs take secrets from variables"),
        }),
        [program, args @ ..] if !program.contains("://") => {
            let mut command = ChildCommand::new(program)
                .with_args(args)
                .with_guard(Guard::this_program(["guard"]));
            // Whoever pastes this into the config of a client names the server's variables there.
            for (name, value) in std::env::vars_os() {
                if !name.to_string_lossy().starts_with("MCPACT_") {
                    command = command.with_env(name, value);
                }
            }
            Ok(Target::Command(command))
        }
        [] | [_, ..] => Err(CliError::Target {
            given: given.join(" "),
        }),
    }
}

fn with_headers(args: &BridgeArgs) -> Result<HttpSettings, CliError> {
    let mut settings = HttpSettings::default();
    // Files are looked for from where the command was given.
    let machine = Machine::around(Path::new("here")).map_err(CliError::Here)?;
    for header in &args.header {
        // What is not a header may be a secret all the same.
        let (name, value) = header.split_once(':').ok_or_else(|| CliError::Header {
            why: String::from("it has no colon between name and value"),
            remedy: String::from("such as `--header 'Authorization: Bearer ${TOKEN}'`"),
        })?;
        let name = name.trim();
        if args.bearer.is_some() && name.eq_ignore_ascii_case("authorization") {
            return Err(CliError::Header {
                why: String::from("`--bearer` is given, too, which sends another `Authorization`"),
                remedy: String::from("leave one of the two out"),
            });
        }
        let value = filled(value.trim(), &machine)?;
        add(name, &value, &mut settings)?;
    }
    if let Some(place) = &args.bearer {
        let token = bearer(place, &machine)?;
        add("Authorization", &format!("Bearer {token}"), &mut settings)?;
    }
    Ok(settings)
}

/// The token that lies in a variable or file.
fn bearer(place: &str, machine: &Machine) -> Result<String, CliError> {
    let is_place = place.starts_with("env:") || place.starts_with("file:");
    if !is_place || place.contains('}') {
        // It may be the token itself, which is not shown.
        return Err(CliError::Header {
            why: String::from("`--bearer` does not say where a token is"),
            remedy: String::from("such as `--bearer env:TOKEN` or `--bearer file:token`"),
        });
    }
    let token = filled(&format!("${{{place}}}"), machine)?;
    if token.starts_with("${") {
        return Err(CliError::Header {
            why: format!("`{place}` holds the name of a variable, which nobody has filled in"),
            remedy: String::from("put the token itself there; not every client fills in variables"),
        });
    }
    if token.trim().is_empty() {
        return Err(CliError::Header {
            why: format!("`{place}` is empty"),
            remedy: String::from("put the token there, or leave `--bearer` out"),
        });
    }
    Ok(token)
}

fn filled(text: &str, machine: &Machine) -> Result<String, CliError> {
    fill(text, machine).map_err(|problem| CliError::Header {
        why: problem.message,
        remedy: problem.remedy.unwrap_or_default(),
    })
}

fn add(name: &str, value: &str, settings: &mut HttpSettings) -> Result<(), CliError> {
    let added = settings.headers.insert(name, value);
    added.map_err(|error| CliError::Header {
        why: error.to_string(),
        remedy: String::from("leave it out, or correct it"),
    })
}

fn mode(given: &str) -> Result<EraMode, CliError> {
    match given {
        "auto" => Ok(EraMode::Auto),
        "legacy" => Ok(EraMode::Legacy),
        "modern" => Ok(EraMode::Modern),
        other => Revision::parse(other)
            .map(EraMode::Pin)
            .ok_or_else(|| CliError::Era {
                given: other.to_owned(),
            }),
    }
}
