//! Log log_levels that modern requests ask of a legacy session, which has only one.

use std::sync::{Arc, Mutex, MutexGuard};

use mcpact_spec::{LogLevel, Method};
use mcpact_translate::logging::RequestLogLevels;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::Mutex as AsyncMutex;

use mcpact::connection::ServerResponse;

use crate::connection::UpstreamConnection;
use crate::sync::lock;

/// How many requests with a level may be open on one session.
const OPEN: usize = 4096;

/// The level of a session, and who asked for it.
#[derive(Debug)]
pub(crate) struct LogLevels {
    book: Mutex<RequestLogLevels>,
    /// Whoever holds it sets the level; a request that needs it waits until it is set.
    setting: AsyncMutex<()>,
}

/// A request whose level counts, for as long as this is held.
#[derive(Debug)]
pub(crate) struct LogLevelGuard {
    connection: Arc<UpstreamConnection>,
    request: u64,
}

impl Default for LogLevels {
    fn default() -> Self {
        Self {
            book: Mutex::new(RequestLogLevels::new(OPEN)),
            setting: AsyncMutex::default(),
        }
    }
}

impl LogLevels {
    fn book(&self) -> MutexGuard<'_, RequestLogLevels> {
        lock(&self.book)
    }
}

/// Makes the session verbose enough for a request that is about to be sent. What it says beyond
/// that is kept from the client by its front.
pub(crate) async fn hear(
    connection: &Arc<UpstreamConnection>,
    request: u64,
    level: LogLevel,
) -> LogLevelGuard {
    let hearing = LogLevelGuard {
        connection: Arc::clone(connection),
        request,
    };
    let _alone = connection.log_levels.setting.lock().await;
    let server = &connection.upstream.introduction.capabilities;
    let wanted = connection
        .log_levels
        .book()
        .open(request, Some(level), server);
    if let Some(level) = wanted {
        let params = ObjectWriter::new().text("level", level.as_str()).finish();
        let reply = connection.request(Method::LoggingSetLevel, &params).await;
        if !matches!(reply, Ok(ServerResponse::Result(_))) {
            tracing::debug!(level = level.as_str(), "the server did not take the level");
            connection.log_levels.book().forget();
        }
    }
    hearing
}

impl Drop for LogLevelGuard {
    fn drop(&mut self) {
        self.connection.log_levels.book().close(self.request);
    }
}
