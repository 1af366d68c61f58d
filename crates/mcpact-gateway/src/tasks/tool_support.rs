//! Task support of the tools of a legacy server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use mcpact_spec::{Capability, Extension, Feature, Method};
use mcpact_translate::tasks::{CallMode, TaskSupports};
use mcpact_wire::raw::Object;
use tokio::sync::Mutex as AsyncMutex;

use crate::exchange::{Exchange, rounds};
use crate::sync::lock;
use crate::upstream::UpstreamServer;

/// Maximum number of tools to remember.
const TOOLS: usize = 4096;

/// Task support of tools, from the server's tool list.
#[derive(Debug)]
pub(crate) struct ToolTasks {
    supports: Mutex<TaskSupports>,
    /// Version of the tool list, incremented on every change.
    editions: AtomicU64,
    /// Last version that was read completely.
    read: AtomicU64,
    /// Held while the list is read; other calls wait for it.
    reading: AsyncMutex<()>,
}

impl Default for ToolTasks {
    fn default() -> Self {
        Self {
            supports: Mutex::new(TaskSupports::new(TOOLS)),
            editions: AtomicU64::new(1),
            read: AtomicU64::new(0),
            reading: AsyncMutex::default(),
        }
    }
}

impl ToolTasks {
    fn supports(&self) -> MutexGuard<'_, TaskSupports> {
        lock(&self.supports)
    }

    /// Records a page of the list.
    pub(crate) fn learn(&self, page: &str) {
        if let Err(fault) = self.supports().learn(page) {
            tracing::debug!(%fault, "a list of tools cannot be read");
        }
    }

    /// Marks the known list as outdated.
    pub(crate) fn forget(&self) {
        self.editions.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current version if it has not been read yet.
    fn unread(&self) -> Option<u64> {
        let edition = self.editions.load(Ordering::Relaxed);
        (self.read.load(Ordering::Relaxed) != edition).then_some(edition)
    }
}

/// Returns the mode of a call to a server of 2025-11-25. A client of the same revision chooses itself.
pub(crate) async fn way(server: &UpstreamServer, exchange: &Exchange) -> CallMode {
    let job = &exchange.inbound.job;
    let declared = &exchange.connection.upstream.introduction.capabilities;
    let is_plain = job.method != Some(Method::ToolsCall)
        || exchange.downstream().has(Feature::TasksCore)
        || !declared.declared().has(Capability::ServerTasksToolsCall);
    if is_plain {
        return CallMode::Plain;
    }
    Box::pin(read_tools_once(server, exchange)).await;
    let params = Object::parse(&job.params).unwrap_or_default();
    let tool = params.get_str("name").unwrap_or_default();
    let follows = job.pact.lacking(Extension::Tasks).is_none();
    server
        .shared
        .tool_tasks
        .supports()
        .way(&tool, declared, follows)
}

/// Reads the tool list if needed, because a client may call a tool without listing tools first. Concurrent calls
/// wait for one reader.
async fn read_tools_once(server: &UpstreamServer, exchange: &Exchange) {
    let tools = &server.shared.tool_tasks;
    if tools.unread().is_none() {
        return;
    }
    let _alone = tools.reading.lock().await;
    let Some(edition) = tools.unread() else {
        return;
    };
    // Set only after the read: concurrent calls would otherwise treat unknown tools as tools without task
    // support. If the list has changed meanwhile, the next call reads it again.
    if rounds::read_tools(exchange).await {
        tools.read.store(edition, Ordering::Relaxed);
    }
}
