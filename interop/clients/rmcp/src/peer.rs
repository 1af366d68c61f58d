//! The connected client; what goes in and comes out has the shape of the protocol.
#![expect(
    deprecated,
    reason = "2026-07-28 deprecates setting the log level and subscribing; both are used on purpose"
)]

use std::sync::Arc;

use rmcp::model::{ClientConfig, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService, Subscription};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::ear::{Ear, Heard};
use crate::report::{Invocation, Target, Trouble, fails};

pub(crate) struct Peer {
    service: RunningService<RoleClient, Ear>,
    pub(crate) heard: Arc<Heard>,
}

fn from<T: DeserializeOwned>(params: Value) -> Result<T, Trouble> {
    Ok(serde_json::from_value(params)?)
}

fn to<T: Serialize>(result: Result<T, ServiceError>) -> Result<Value, Trouble> {
    Ok(serde_json::to_value(result?)?)
}

/// How to make the SDK negotiate what the mode asks for.
fn lifecycle(mode: &str) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match mode {
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: None,
        },
        "modern" => ClientLifecycleMode::Discover { preferred_versions },
        _ => ClientLifecycleMode::Initialize,
    }
}

/// What the client declares. Left alone, the SDK asks for 2026-07-28 in a handshake, which that
/// revision does not have; that is what the mode `legacy` does, too.
fn config(given: &Invocation) -> Result<ClientConfig, Trouble> {
    let version = match given.mode.as_str() {
        "auto" | "modern" | "legacy" => ProtocolVersion::default(),
        revision => from(json!(revision))?,
    };
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {"listChanged": true}});
    let name = json!({"name": "interop-rmcp", "version": "1.0.0"});
    Ok(ClientConfig::new(from(capabilities)?, from(name)?).with_protocol_version(version))
}

impl Peer {
    pub(crate) async fn connect(given: &Invocation) -> Result<Self, Trouble> {
        let heard = Arc::new(Heard::default());
        let ear = Ear {
            config: config(given)?,
            heard: Arc::clone(&heard),
        };
        let lifecycle = lifecycle(&given.mode);
        let service = match &given.target {
            Target::Url(url) => {
                let transport = StreamableHttpClientTransport::from_uri(url.as_str());
                ear.serve_with_lifecycle(transport, lifecycle).await?
            }
            Target::Command(program, arguments) => {
                let mut command = tokio::process::Command::new(program);
                command.args(arguments);
                let transport = TokioChildProcess::new(command)?;
                ear.serve_with_lifecycle(transport, lifecycle).await?
            }
        };
        Ok(Self { service, heard })
    }

    /// What is known of the server: `protocolVersion`, `capabilities`, `serverInfo`.
    pub(crate) fn server(&self) -> Result<Value, Trouble> {
        let info = self
            .service
            .peer_info()
            .ok_or_else(|| fails("nothing was negotiated"))?;
        Ok(serde_json::to_value(&*info)?)
    }

    pub(crate) async fn tools(&self) -> Result<Value, Trouble> {
        to(self.service.list_all_tools().await)
    }

    pub(crate) async fn prompts(&self) -> Result<Value, Trouble> {
        to(self.service.list_all_prompts().await)
    }

    pub(crate) async fn resources(&self) -> Result<Value, Trouble> {
        to(self.service.list_all_resources().await)
    }

    pub(crate) async fn templates(&self) -> Result<Value, Trouble> {
        to(self.service.list_all_resource_templates().await)
    }

    /// Calls a tool; a call that is dropped is cancelled by the SDK.
    pub(crate) async fn call(&self, params: Value) -> Result<Value, Trouble> {
        to(self.service.call_tool(from(params)?).await)
    }

    pub(crate) async fn read(&self, uri: &str) -> Result<Value, Trouble> {
        to(self
            .service
            .read_resource(from(json!({ "uri": uri }))?)
            .await)
    }

    pub(crate) async fn prompt(&self, params: Value) -> Result<Value, Trouble> {
        to(self.service.get_prompt(from(params)?).await)
    }

    pub(crate) async fn complete(&self, params: Value) -> Result<Value, Trouble> {
        to(self.service.complete(from(params)?).await)
    }

    pub(crate) async fn set_level(&self, level: &str) -> Result<(), Trouble> {
        Ok(self
            .service
            .set_level(from(json!({ "level": level }))?)
            .await?)
    }

    pub(crate) async fn subscribe(&self, uri: &str) -> Result<(), Trouble> {
        Ok(self.service.subscribe(from(json!({ "uri": uri }))?).await?)
    }

    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<(), Trouble> {
        Ok(self
            .service
            .unsubscribe(from(json!({ "uri": uri }))?)
            .await?)
    }

    pub(crate) async fn listen(&self, filter: Value) -> Result<Subscription, Trouble> {
        Ok(self
            .service
            .listen(from::<SubscriptionFilter>(filter)?)
            .await?)
    }

    pub(crate) async fn close(self) -> Result<(), Trouble> {
        self.service.cancel().await?;
        Ok(())
    }
}
