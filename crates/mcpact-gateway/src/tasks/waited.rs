//! Server tasks with a waiting client call.

use std::sync::Arc;

use mcpact_spec::Method;
use mcpact_translate::tasks::{created_task, with_task};

use mcpact::connection::{Call, CallEvent, ServerResponse};

use crate::connection::UpstreamConnection;
use crate::error::{ServeError, UpstreamError, UpstreamErrorKind};
use crate::exchange::Exchange;
use crate::tasks::of_task;
use crate::upstream::binding::ServerBinding;

/// Server task with a waiting call; dropping it cancels the task.
#[derive(Debug)]
pub(crate) struct Started {
    connection: Arc<UpstreamConnection>,
    /// Parameters of the cancel request.
    params: String,
    is_over: bool,
}

impl Started {
    pub(crate) fn new(exchange: &Exchange, id: &str) -> Result<Self, ServeError> {
        Ok(Self {
            connection: Arc::clone(&exchange.connection),
            params: exchange.stamped(&of_task(id))?.into_owned(),
            is_over: false,
        })
    }

    /// Marks the task as ended, so that nothing is cancelled.
    pub(crate) const fn over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.is_over || self.connection.upstream.is_gone() {
            return;
        }
        let (connection, params) = (
            Arc::clone(&self.connection),
            std::mem::take(&mut self.params),
        );
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The task may have ended already.
                let _ = connection.request(Method::TasksCancel, &params).await;
            });
        }
    }
}

/// Outcome of a call that was sent as a task.
pub(crate) enum Begun {
    /// The server created a task; the request for its result replaces the call.
    Waiting(Call, Started),
    /// The server responded without creating a task.
    Answered(ServerResponse),
}

/// Sends a call to a server of 2025-11-25 as a task. The response contains the task if the server created one.
pub(crate) async fn send_as_task(
    exchange: &mut Exchange,
    params: &str,
) -> Result<ServerResponse, ServeError> {
    let params = with_task(params).map_err(|fault| exchange.malformed(&fault))?;
    let mut call = exchange.send(&params).await?;
    loop {
        match call.next().await {
            CallEvent::Notification(note) => {
                exchange.inbound.tell(&note, &mut exchange.progress).await
            }
            CallEvent::Response(reply) => return Ok(reply),
            CallEvent::Failed(loss) => return Err(exchange.lost(&loss)),
            // No task exists yet to which the question could belong.
            CallEvent::Request(ask) => exchange.connection.refuse_during(ask, None).await,
        }
    }
}

/// Calls a tool that runs only as a task, for a client without task support.
pub(crate) async fn begin(exchange: &mut Exchange, params: &str) -> Result<Begun, ServeError> {
    let reply = send_as_task(exchange, params).await?;
    let ServerResponse::Result(raw) = &reply else {
        return Ok(Begun::Answered(reply));
    };
    let Some(id) = created_task(raw) else {
        return Ok(Begun::Answered(reply));
    };
    let started = Started::new(exchange, &id)?;
    let call = result_of(&exchange.connection, &id).await;
    Ok(Begun::Waiting(call, started))
}

/// Returns true if the tasks of this connection are lost with its process or session.
pub(crate) fn took_tasks_along(connection: &UpstreamConnection) -> bool {
    connection.upstream.is_gone() && !connection.upstream.is_free()
}

/// Returns a connection for requests about a task that a modern server started here. A new connection is used if
/// this one is closed and the task is still reachable.
pub(crate) async fn for_task(
    connection: &Arc<UpstreamConnection>,
    binding: &ServerBinding,
) -> Result<Arc<UpstreamConnection>, UpstreamError> {
    if !connection.upstream.is_gone() {
        return Ok(Arc::clone(connection));
    }
    if !took_tasks_along(connection) {
        return binding.connection().await;
    }
    let why = connection.upstream.end().unwrap_or_default();
    Err(binding.lost_call(match connection.is_ended() {
        true => UpstreamErrorKind::Stopped,
        false => binding.loss_error(connection, why),
    }))
}

/// Requests the result of a task from a server of 2025-11-25; questions of the task arrive on this call.
pub(crate) async fn result_of(connection: &UpstreamConnection, id: &str) -> Call {
    connection.call(Method::TasksResult, &of_task(id)).await
}
