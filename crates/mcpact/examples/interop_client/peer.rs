//! The connection, and what the server sends on its own.

use mcpact::client::{Client, EraMode, Method, Notification, Target};
use mcpact::model::{
    Content, CreateMessageRequest, CreateMessageResult, FormRequest, LogLevel, LogMessage, Root,
};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, mpsc};

use crate::whole;

/// What the person says, for fields of these names.
const ANSWERS: [(&str, &str); 3] = [
    ("name", "Ada Lovelace"),
    ("username", "Ada Lovelace"),
    ("email", "ada@example.org"),
];

/// What the model says.
const SAMPLED: &str = "Paris is the capital of France.";

/// A server that was reached.
pub(crate) struct Peer {
    pub(crate) client: Client,
    /// The log messages that have arrived.
    pub(crate) logged: Mutex<mpsc::UnboundedReceiver<LogMessage>>,
}

impl Peer {
    pub(crate) async fn connect(target: Target, mode: EraMode, root: &str) -> Result<Self, String> {
        let (log, logged) = mpsc::unbounded_channel();
        let client = Client::builder("mcpact-interop", env!("CARGO_PKG_VERSION"))
            .mode(mode)
            .log_level(LogLevel::Debug)
            .on_elicitation(|form: FormRequest| async move {
                Ok(form.accept_with_defaults(filled_in(&form)))
            })
            .on_sampling(|_: CreateMessageRequest| async {
                Ok(CreateMessageResult::new("interop", Content::text(SAMPLED)))
            })
            .roots(vec![Root::new(root).name("interop")])
            .on_notification(move |note: &Notification| {
                if note.method == Method::LoggingMessage.as_str()
                    && let Ok(message) = note.read()
                {
                    // Nobody reads any more when the program is about to end.
                    let _ = log.send(message);
                }
            })
            .connect(target)
            .await
            .map_err(whole)?;
        let logged = Mutex::new(logged);
        Ok(Self { client, logged })
    }

    /// The revision that was agreed on.
    pub(crate) fn revision(&self) -> String {
        self.client.pact().revision().to_string()
    }

    pub(crate) async fn leave(self) {
        self.client.close().await;
    }
}

/// What the form asks for, as far as there is an answer.
fn filled_in(form: &FormRequest) -> Map<String, Value> {
    let wanted = |name: &str| !form.requested_schema["properties"][name].is_null();
    ANSWERS
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, answer)| (name.to_owned(), Value::from(answer)))
        .collect()
}
