//! The subject that is built with the official Rust SDK, on bare hyper: its strongest form.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mcpact_load::call::TOOL;
use mcpact_load::caller::{announce, drive, tell};
use mcpact_load::error::LoadError;
use mcpact_load::role::{Era, Legacy, Role};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, stdio};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use tokio::net::TcpListener;
use tokio::process::Command;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    fn new() -> Self {
        Self {
            tool_router: Self::tool_router(),
        }
    }

    #[tool(description = "Gives its text back")]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn theirs(error: impl std::fmt::Display) -> LoadError {
    LoadError::Theirs(error.to_string())
}

async fn http(legacy: Legacy) -> Result<(), LoadError> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(legacy == Legacy::Session)
        .with_json_response(true);
    // The router is built once, as an application with many tools would.
    let server = Server::new();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(&format!("http://{}/mcp", listener.local_addr()?))?;
    loop {
        let (stream, _) = listener.accept().await?;
        // Its answers leave in two writes, and the second would wait for an acknowledgement.
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        let connection = http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

async fn connect(
    target: &str,
    era: Era,
) -> Result<RunningService<RoleClient, ClientConfig>, LoadError> {
    let mut config = ClientConfig::default();
    let mode = match era {
        Era::Legacy => {
            config.protocol_version = ProtocolVersion::V_2025_11_25;
            ClientLifecycleMode::Initialize
        }
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    if target.starts_with("http://") {
        let transport = StreamableHttpClientTransport::from_uri(target);
        config.serve_with_lifecycle(transport, mode).await
    } else {
        let mut command = Command::new(target);
        command.arg("stdio");
        let transport = TokioChildProcess::new(command)?;
        config.serve_with_lifecycle(transport, mode).await
    }
    .map_err(theirs)
}

async fn client(target: &str, era: Era, open: usize, duration: Duration) -> Result<(), LoadError> {
    let client = connect(target, era).await?;
    let call = |peer: Peer<RoleClient>, text: String| async move {
        let arguments = serde_json::Map::from_iter([("text".to_owned(), text.into())]);
        let params = CallToolRequestParams::new(TOOL).with_arguments(arguments);
        let result = peer.call_tool(params).await.map_err(theirs)?;
        let text = result.content.first().and_then(|content| content.as_text());
        text.map(|text| text.text.clone())
            .ok_or_else(|| theirs("no text"))
    };
    tell(&drive(client.peer().clone(), open, duration, call).await?)?;
    client.cancel().await.map_err(theirs)?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), LoadError> {
    match Role::parse() {
        Role::Http { legacy, .. } => http(legacy).await,
        Role::Stdio { .. } => {
            let running = Server::new().serve(stdio()).await.map_err(theirs)?;
            running.waiting().await.map_err(theirs)?;
            Ok(())
        }
        Role::Client {
            target,
            era,
            open,
            milliseconds,
        } => client(&target, era, open, Duration::from_millis(milliseconds)).await,
    }
}
