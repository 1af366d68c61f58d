//! What handlers tell the local log, told to the client, too.

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

/// A `tracing` layer that sends what a handler logs to the client whose request it serves, as
/// `notifications/message`: at the level that the client asked for, and only where the server declares
/// [`logging`](super::Server::logging).
///
/// Events of this library are not sent, since they may be about other clients. Add a filter to the
/// layer if handlers call code whose log is not for clients. A message that finds no room in the queue
/// of its request is dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientLog {}

impl ClientLog {
    /// The layer; servers of this process begin to note which request is being served.
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

/// Runs a handler so that the layer knows whom it serves.
pub(super) async fn serving<F: Future>(context: &Context, handler: F) -> F::Output {
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
        // Outside of a request there is nobody to tell.
        let _ = REQUEST.try_with(|context| {
            let mut said = Said::default();
            event.record(&mut said);
            let level = log::remote(*event.metadata().level());
            context.log_now(&LogMessage::new(level, said.data()).logger(target));
        });
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: Option<String>,
    fields: Map<String, Value>,
}

impl Said {
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

impl Visit for Said {
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
