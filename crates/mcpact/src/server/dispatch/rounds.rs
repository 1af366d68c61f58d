//! Questions to a modern client: what it brings back, and what it is asked.

use mcpact_spec::{Era, Method};
use serde_json::{Map, Value, json};

use super::params::Params;
use super::{Core, Served};
use crate::server::context::{Context, Rounds};
use crate::server::error::HandlerError;
use crate::server::job::Job;
use crate::server::seal::{Binding, Opened, digest, unix_now};

impl Core {
    /// What a modern client brings back from earlier rounds.
    pub(super) fn rounds(
        &self,
        job: &Job,
        principal: &str,
        method: Method,
        params: &Params<'_>,
    ) -> Result<Rounds, HandlerError> {
        if job.pact.era() == Era::Legacy || !method.may_ask_for_input() {
            return Ok(Rounds::default());
        }
        let opened = match params.value("requestState")? {
            None => Opened::default(),
            Some(state) => {
                let binding = binding(principal, method, &params.tree()?);
                let opened = state
                    .as_str()
                    .and_then(|state| self.sealer.open_state(state, binding, unix_now()).ok());
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

    /// The result that asks a modern client for input.
    pub(super) fn ask_back(
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
            .ok_or_else(|| HandlerError::failed("the state cannot be sealed"))?;
        let result = json!({
            "resultType": "input_required",
            "inputRequests": open,
            "requestState": state,
        });
        Ok(Served::Final(result.to_string()))
    }
}

/// What a state is good for.
fn binding<'a>(principal: &'a str, method: Method, params: &Map<String, Value>) -> Binding<'a> {
    Binding {
        principal,
        method: method.as_str(),
        digest: digest(params),
    }
}
