//! Validation of messages against the official schemas.

use mcpact_engine::effect::{Call, IncomingNotification};
use mcpact_spec::Revision;
use mcpact_wire::envelope::Envelope;

use super::Core;
use crate::client::client_error::{AnswerError, ClientError};
use crate::validation::Validation;

impl Core {
    /// Returns the active schema; none without validation or negotiation.
    fn schema(&self) -> Option<(&Validation, Revision)> {
        match &self.shared.validation {
            Validation::Off => None,
            validation => Some((validation, self.pact()?.revision())),
        }
    }

    /// Validates an outgoing message with everything that the machine has added.
    pub(super) fn outgoing(&self, what: &'static str, text: &str) -> Result<(), ClientError> {
        let Some((validation, revision)) = self.schema() else {
            return Ok(());
        };
        let (method, params) = match Envelope::parse(text.as_bytes()) {
            Ok(Envelope::Request(request)) => (request.method, request.params.raw),
            Ok(Envelope::Notification(note)) => (note.method, note.params.raw),
            Ok(Envelope::Response(_)) | Err(_) => return Ok(()),
        };
        validation
            .params("client", revision, &method, params)
            .map_err(|source| ClientError::SchemaViolation {
                what,
                method: method.into_owned(),
                source,
            })
    }

    /// Validates a result of the server.
    pub(super) fn incoming_result(&self, method: &str, raw: &str) -> Result<(), ClientError> {
        let Some((validation, revision)) = self.schema() else {
            return Ok(());
        };
        validation
            .result("server", revision, method, raw)
            .map_err(|source| ClientError::SchemaViolation {
                what: "the answer to",
                method: method.to_owned(),
                source,
            })
    }

    /// Validates a request of the server.
    pub(super) fn incoming_question(&self, call: &Call<'_>) -> Result<(), AnswerError> {
        let Some((validation, _)) = self.schema() else {
            return Ok(());
        };
        validation
            .params("server", call.pact.revision(), &call.name, call.params.raw)
            .map_err(|misfit| AnswerError::invalid(format!("`{}` {misfit}", call.name)))
    }

    /// Validates a notification of the server.
    pub(super) fn is_fit(&self, note: &IncomingNotification<'_>) -> bool {
        self.schema().is_none_or(|(validation, revision)| {
            validation
                .params("server", revision, &note.name, note.params.raw)
                .is_ok()
        })
    }
}

/// Validates the answer of a handler.
pub(super) struct OwnAnswer {
    validation: Validation,
    revision: Revision,
    method: Box<str>,
}

impl OwnAnswer {
    pub(super) fn to(call: &Call<'_>, validation: &Validation) -> Self {
        Self {
            validation: validation.clone(),
            revision: call.pact.revision(),
            method: call.name.clone(),
        }
    }

    pub(super) fn judged(&self, raw: String) -> Result<String, AnswerError> {
        let method = &self.method;
        self.validation
            .result("client", self.revision, method, &raw)
            .map_err(|misfit| {
                AnswerError::internal(format!("the answer to `{method}` {misfit}"))
            })?;
        Ok(raw)
    }
}
