//! Tasks of a server that somebody waits for.

use std::sync::Arc;

use crate::error::{ServeError, UpstreamError, UpstreamErrorKind};
use mcpact_spec::Method;
use mcpact_translate::tasks::{created_task, with_task};

use crate::connection::UpstreamConnection;
use crate::exchange::Exchange;
use crate::tasks::of_task;
use crate::upstream::binding::ServerBinding;
use mcpact::connection::{Call, CallEvent, ServerResponse};

/// A server's task whose result somebody waits for: whoever stops waiting calls it off.
#[derive(Debug)]
pub(crate) struct Started {
    connection: Arc<UpstreamConnection>,
    /// What to cancel it with.
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

    /// There is nothing left to call off.
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
                // It may have ended already.
                let _ = connection.request(Method::TasksCancel, &params).await;
            });
        }
    }
}

/// What became of a call that was made as a task.
pub(crate) enum Begun {
    /// The request for its result takes the place of the call.
    Waiting(Call, Started),
    /// The server made no task of it.
    Answered(ServerResponse),
}

impl Exchange {
    /// Sends a call to a server of 2025-11-25 as a task; what comes back is the task, if it made one.
    pub(crate) async fn send_as_task(
        &mut self,
        params: &str,
    ) -> Result<ServerResponse, ServeError> {
        let params = with_task(params).map_err(|fault| self.malformed(&fault))?;
        let mut call = self.send(&params).await?;
        loop {
            match call.next().await {
                CallEvent::Notification(note) => self.inbound.tell(&note, &mut self.progress).await,
                CallEvent::Response(reply) => return Ok(reply),
                CallEvent::Failed(loss) => return Err(self.lost(&loss)),
                // There is no task yet that it could be for.
                CallEvent::Request(ask) => self.connection.refuse_during(ask, None).await,
            }
        }
    }

    /// Calls a tool that runs only as a task, for a client that knows no tasks.
    pub(crate) async fn begin(&mut self, params: &str) -> Result<Begun, ServeError> {
        let reply = self.send_as_task(params).await?;
        let ServerResponse::Result(raw) = &reply else {
            return Ok(Begun::Answered(reply));
        };
        let Some(id) = created_task(raw) else {
            return Ok(Begun::Answered(reply));
        };
        let started = Started::new(self, &id)?;
        let call = self.connection.result_of(&id).await;
        Ok(Begun::Waiting(call, started))
    }
}

impl UpstreamConnection {
    /// Whether the tasks that ran here are lost with it: it was a program, or a session.
    pub(crate) fn took_tasks_along(&self) -> bool {
        self.upstream.is_gone() && !self.upstream.is_free()
    }

    /// Where a modern server is asked about a task that it has begun here: here, or by another connection if that leads
    /// to the task.
    pub(crate) async fn for_task(
        self: &Arc<Self>,
        binding: &ServerBinding,
    ) -> Result<Arc<Self>, UpstreamError> {
        if !self.upstream.is_gone() {
            return Ok(Arc::clone(self));
        }
        if !self.took_tasks_along() {
            return binding.connection().await;
        }
        let why = self.upstream.end().unwrap_or_default();
        Err(binding.lost_call(match self.is_ended() {
            true => UpstreamErrorKind::Stopped,
            false => binding.gone(self, why),
        }))
    }

    /// Asks a server of 2025-11-25 for the result of a task; what the task asks comes on this call.
    pub(crate) async fn result_of(&self, id: &str) -> Call {
        self.call(Method::TasksResult, &of_task(id)).await
    }
}
