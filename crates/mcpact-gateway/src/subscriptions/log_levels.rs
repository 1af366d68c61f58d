//! Log level of a legacy session, which modern requests set together.

use std::sync::{Arc, Mutex};

use mcpact::connection::ServerResponse;
use mcpact_spec::{LogLevel, Method};
use mcpact_translate::logging::RequestLogLevels;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::Mutex as AsyncMutex;

use crate::connection::UpstreamConnection;
use crate::sync::lock;

/// Maximum number of requests with a level on one session.
const MAX_REQUESTS: usize = 4096;

/// Log levels of the requests in flight on a session.
#[derive(Debug)]
pub(crate) struct LogLevels {
    requests: Mutex<RequestLogLevels>,
    /// Locked while the level is set; other requests that need it wait.
    setting: AsyncMutex<()>,
}

/// Request with a log level; dropping it removes the level.
#[derive(Debug)]
pub(crate) struct LogLevelGuard {
    connection: Arc<UpstreamConnection>,
    request: u64,
}

impl Default for LogLevels {
    fn default() -> Self {
        Self {
            requests: Mutex::new(RequestLogLevels::new(MAX_REQUESTS)),
            setting: AsyncMutex::default(),
        }
    }
}

/// Raises the level of the session for a request that is about to be sent. The session of the client drops messages
/// below its own level.
pub(crate) async fn raise(
    connection: &Arc<UpstreamConnection>,
    request: u64,
    level: LogLevel,
) -> LogLevelGuard {
    let guard = LogLevelGuard {
        connection: Arc::clone(connection),
        request,
    };
    let levels = &connection.log_levels;
    let _setting = levels.setting.lock().await;
    let server = &connection.upstream.introduction.capabilities;
    let needed = lock(&levels.requests).open(request, Some(level), server);
    if let Some(level) = needed {
        let params = ObjectWriter::new().text("level", level.as_str()).finish();
        let reply = connection.request(Method::LoggingSetLevel, &params).await;
        if !matches!(reply, Ok(ServerResponse::Result(_))) {
            tracing::debug!(level = level.as_str(), "failed to set the log level");
            lock(&levels.requests).forget();
        }
    }
    guard
}

impl Drop for LogLevelGuard {
    fn drop(&mut self) {
        lock(&self.connection.log_levels.requests).close(self.request);
    }
}
