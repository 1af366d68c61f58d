//! Questions to a modern client: answers of earlier rounds, and new questions.

use mcpact_spec::{Era, Method};
use serde_json::{Map, Value, json};

use super::params::Params;
use super::{Core, Served};
use crate::server::backend_request::BackendRequest;
use crate::server::context::{Context, Rounds};
use crate::server::handler_error::HandlerError;
use crate::server::seal::{Binding, OpenedState, digest, unix_now};

impl Core {
    /// Restores the answers that a modern client sends back from earlier rounds.
    pub(super) fn restore_rounds(
        &self,
        request: &BackendRequest,
        principal: &str,
        method: Method,
        params: &Params<'_>,
    ) -> Result<Rounds, HandlerError> {
        if request.pact.era() == Era::Legacy || !method.may_ask_for_input() {
            return Ok(Rounds::default());
        }
        let opened = match params.value("requestState")? {
            None => OpenedState::default(),
            Some(state) => {
                let binding = binding(principal, method, &params.tree()?);
                let opened = state
                    .as_str()
                    .and_then(|state| self.sealer.open_state(state, binding, unix_now()));
                opened.ok_or_else(|| {
                    HandlerError::invalid_params("`requestState` is not valid for this request")
                })?
            }
        };
        let mut answers = opened.answers;
        if let Some(Value::Object(responses)) = params.value("inputResponses")? {
            answers.extend(responses);
        }
        Ok(Rounds {
            answers,
            round: opened.round,
            ..Rounds::default()
        })
    }

    /// Builds the result that asks a modern client for input.
    pub(super) fn request_input(
        &self,
        method: Method,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let principal = context.call.session.principal();
        let binding = binding(principal, method, params);
        let mut rounds = context.rounds();
        let open = std::mem::take(&mut rounds.open);
        let used = std::mem::take(&mut rounds.used);
        let expires = unix_now() + self.settings.input_timeout.as_secs();
        let state = self
            .sealer
            .seal_state(binding, rounds.round + 1, used, expires)
            .ok_or_else(|| HandlerError::failed("cannot seal the state"))?;
        let result = json!({
            "resultType": "input_required",
            "inputRequests": open,
            "requestState": state,
        });
        Ok(Served::Final(result.to_string()))
    }
}

/// Returns the binding of a sealed state.
fn binding<'a>(principal: &'a str, method: Method, params: &Map<String, Value>) -> Binding<'a> {
    Binding {
        principal,
        method: method.as_str(),
        digest: digest(params),
    }
}
