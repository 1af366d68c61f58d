//! The subject that is built with our library.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Parser;
use mcpact::client::{ChildCommand, Client, EraMode, Target};
use mcpact::model::Content;
use mcpact::server::{Context, Server};
use mcpact_load::call::{LARGE_LENGTH, LARGE_TOOL, TOOL};
use mcpact_load::caller::{announce, drive, tell};
use mcpact_load::error::LoadError;
use mcpact_load::role::{Era, Role};
use mcpact_spec::Revision;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn server(era: Option<Era>) -> Server {
    let echo = |args: Echo, _: Context| async move { Ok(args.text) };
    let large = |_: Nothing, _: Context| async move { Ok("x".repeat(LARGE_LENGTH)) };
    let server = Server::new("load", "1.0.0")
        .tool(TOOL, "Gives its text back", echo)
        .tool(LARGE_TOOL, "Gives a long text", large);
    match era {
        None => server,
        Some(Era::Legacy) => server.revisions(&[Revision::newest(mcpact_spec::Era::Legacy)]),
        Some(Era::Modern) => server.revisions(&[Revision::newest(mcpact_spec::Era::Modern)]),
    }
}

/// The server with so many tools in all; it has two by itself.
fn with_tools(server: Server, tools: usize) -> Server {
    let echo = |args: Echo, _: Context| async move { Ok(args.text) };
    (2..tools).fold(server, |server, number| {
        server.tool(&format!("tool{number}"), "Gives its text back, too", echo)
    })
}

fn ours(error: impl std::fmt::Display) -> LoadError {
    LoadError::Ours(error.to_string())
}

async fn client(target: &str, era: Era, open: usize, duration: Duration) -> Result<(), LoadError> {
    let mode = match era {
        Era::Legacy => EraMode::Legacy,
        Era::Modern => EraMode::Modern,
    };
    let target = if target.starts_with("http://") {
        Target::from(target)
    } else {
        Target::from(ChildCommand::new(target).with_args(["stdio"]))
    };
    let builder = Client::builder("load", "1.0.0").mode(mode);
    let client = builder.connect(target).await.map_err(ours)?;
    let call = |client: Client, text: String| async move {
        let arguments = serde_json::json!({ "text": text });
        let result = client.call_tool(TOOL, arguments).await.map_err(ours)?;
        match result.content.into_iter().next() {
            Some(Content::Text(text)) => Ok(text.text),
            _ => Err(ours("no text")),
        }
    };
    tell(&drive(client.clone(), open, duration, call).await?)?;
    client.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), LoadError> {
    match Role::parse() {
        Role::Http { era, .. } => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listening = server(era).listen(address).await.map_err(ours)?;
            announce(&listening.url())?;
            listening.run(std::future::pending()).await.map_err(ours)
        }
        Role::Stdio { era, tools } => {
            let server = with_tools(server(era), tools);
            server.serve_stdio().await.map_err(ours)
        }
        Role::Client {
            target,
            era,
            open,
            milliseconds,
        } => client(&target, era, open, Duration::from_millis(milliseconds)).await,
    }
}
