//! Scripted server as an upstream target.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mcpact_gateway::{Local, Target};
use mcpact_sim::scripted;

pub(crate) use scripted::{ReceivedMessage, Role};

/// Scripted server and the target that reaches it.
pub(crate) struct ScriptedServer {
    pub(crate) target: Target,
    server: scripted::ScriptedServer,
}

impl ScriptedServer {
    /// Starts a server in memory; every connection is a new instance.
    pub(crate) fn lines(role: Role) -> Self {
        let (server, connect) = scripted::ScriptedServer::in_memory(role);
        let target = Target::Local(Local(Arc::new(connect)));
        Self { target, server }
    }

    /// Starts a server on a socket.
    pub(crate) async fn http(role: Role) -> Self {
        let (server, url) = scripted::ScriptedServer::on_http(role).await;
        let target = Target::url(url);
        Self { target, server }
    }
}

impl Deref for ScriptedServer {
    type Target = scripted::ScriptedServer;

    fn deref(&self) -> &Self::Target {
        &self.server
    }
}

impl DerefMut for ScriptedServer {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.server
    }
}
