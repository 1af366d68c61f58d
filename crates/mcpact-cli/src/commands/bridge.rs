//! `mcpact bridge`: one server for any client.

use std::sync::Arc;

use mcpact_engine::client::EraMode;
use mcpact_gateway::{Bridge, BridgeSettings, Target};
use mcpact_spec::Revision;
use mcpact_transport::stdio::child::{ChildCommand, Guard};

use super::{front, verdicts};
use crate::args::BridgeArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report;

pub(super) fn run(args: &BridgeArgs) -> Result<Exit, CliError> {
    let target = target(&args.target)?;
    let mut settings = BridgeSettings {
        mode: mode(&args.era)?,
        verdicts: verdicts::kept(),
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
    let Some(address) = args.listen else {
        let link = mcpact_transport::stdio::own().map_err(|e| CliError::Serve(e.into()))?;
        let served = tokio::select! {
            served = Arc::clone(&bridge).serve(link) => served.map_err(CliError::Serve),
            () = front::stopped() => Ok(()),
        };
        bridge.close().await;
        return served;
    };
    let listening = Arc::clone(&bridge)
        .listen(address)
        .await
        .map_err(|source| CliError::Listen { address, source })?;
    report::print(&format!("{}\n", listening.url()))?;
    let served = listening.run(front::stopped()).await;
    bridge.close().await;
    served.map_err(CliError::Serve)
}

/// A URL, or a program with its arguments.
fn target(given: &[String]) -> Result<Target, CliError> {
    match given {
        [url] if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(Target::url(url.as_str()))
        }
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
