//! Which tools of a legacy server run as tasks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpact_spec::{Capability, Extension, Feature, Method};
use mcpact_translate::tasks::{CallMode, TaskSupports};
use mcpact_wire::raw::Object;
use tokio::sync::Mutex as AsyncMutex;

use crate::exchange::Exchange;
use crate::upstream::UpstreamServer;

/// How many tools are remembered.
const TOOLS: usize = 4096;

/// What the tools said, once they were asked.
#[derive(Debug)]
pub(crate) struct ToolTasks {
    supports: Mutex<TaskSupports>,
    /// How often the list was another one.
    editions: AtomicU64,
    /// The edition that was read to its end.
    read: AtomicU64,
    /// Whoever holds it reads the list; the others wait for it.
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
        self.supports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a page of the list.
    pub(crate) fn learn(&self, page: &str) {
        if let Err(fault) = self.supports().learn(page) {
            tracing::debug!(%fault, "a list of tools cannot be read");
        }
    }

    /// The list has changed: what is known may be wrong.
    pub(crate) fn forget(&self) {
        self.editions.fetch_add(1, Ordering::Relaxed);
    }

    /// The edition that is to be read, unless it was.
    fn unread(&self) -> Option<u64> {
        let edition = self.editions.load(Ordering::Relaxed);
        (self.read.load(Ordering::Relaxed) != edition).then_some(edition)
    }
}

impl UpstreamServer {
    /// How a call to a server of 2025-11-25 runs. A client of the same revision decides itself.
    pub(crate) async fn way(&self, exchange: &Exchange) -> CallMode {
        let job = &exchange.inbound.job;
        let server = &exchange.connection.upstream.introduction.capabilities;
        let is_plain = job.method != Some(Method::ToolsCall)
            || exchange.downstream().has(Feature::TasksCore)
            || !server.declared().has(Capability::ServerTasksToolsCall);
        if is_plain {
            return CallMode::Plain;
        }
        Box::pin(self.read_tools_once(exchange)).await;
        let params = Object::parse(&job.params).unwrap_or_default();
        let tool = params.get_str("name").unwrap_or_default();
        let follows = job.pact.lacking(Extension::Tasks).is_none();
        self.shared
            .tool_tasks
            .supports()
            .way(&tool, server, follows)
    }

    /// A client may call a tool without having looked at the list. Everybody who calls waits until one has read it.
    async fn read_tools_once(&self, exchange: &Exchange) {
        let tools = &self.shared.tool_tasks;
        if tools.unread().is_none() {
            return;
        }
        let _alone = tools.reading.lock().await;
        let Some(edition) = tools.unread() else {
            return;
        };
        // Not before it is read: others would take what they do not know yet for a tool without tasks. A list that
        // has changed meanwhile is read again by the next one.
        if self.read_tools(exchange).await {
            tools.read.store(edition, Ordering::Relaxed);
        }
    }
}
