//! Forwarding of handler logs to clients.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as LayerContext;

use super::context::Context;
use crate::log;
use crate::model::LogMessage;

tokio::task_local! {
    static REQUEST: Context;
}

static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// A `tracing` layer that sends the log of a handler to its client as `notifications/message`, at the level that the
/// client requested, if the server declares [`logging`](super::Server::logging).
///
/// Events of this library are not sent: they may concern other clients. Add a filter to the layer if handlers call
/// code with a confidential log. Messages are dropped if the queue of the request is full.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientLog {}

impl ClientLog {
    /// Creates the layer. From now on, servers of this process track the current request.
    #[must_use]
    pub fn new() -> Self {
        IS_WANTED.store(true, Ordering::Relaxed);
        Self {}
    }
}

impl Default for ClientLog {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs a handler within the scope of its request.
pub(super) async fn in_scope<F: Future>(context: &Context, handler: F) -> F::Output {
    if IS_WANTED.load(Ordering::Relaxed) {
        REQUEST.scope(context.clone(), handler).await
    } else {
        handler.await
    }
}

impl<S: Subscriber> Layer<S> for ClientLog {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let target = event.metadata().target();
        if target == "mcpact" || target.starts_with("mcpact::") || target.starts_with("mcpact_") {
            return;
        }
        // Outside of a request, the event has no recipient.
        let _ = REQUEST.try_with(|context| {
            let mut fields = EventFields::default();
            event.record(&mut fields);
            let level = log::remote(*event.metadata().level());
            context.log_now(&LogMessage::new(level, fields.data()).logger(target));
        });
    }
}

/// Message and fields of an event.
#[derive(Default)]
struct EventFields {
    message: Option<String>,
    fields: Map<String, Value>,
}

impl EventFields {
    fn data(self) -> Value {
        match (self.message, self.fields) {
            (Some(message), fields) if fields.is_empty() => Value::from(message),
            (message, mut fields) => {
                if let Some(message) = message {
                    fields.insert(String::from("message"), Value::from(message));
                }
                Value::from(fields)
            }
        }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = Some(text);
        } else {
            self.put(field, text);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = Some(value.to_owned());
        } else {
            self.put(field, value);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}
