//! Questions of a modern task for a client of 2025-11-25.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Kind, Method, Side, Violation};
use mcpact_wire::raw::Object;

use crate::input::{Question, without_undeclared};
use crate::shape::{ShapeError, adapt_params, with_elicitation_id};
use crate::tasks::related;
use crate::wire_error::wire_error;

/// The questions under keys that were not seen before: a key means one question for as long as
/// the task lives.
///
/// # Errors
/// The server asks what the client did not declare, what is no question, or too much.
pub(super) fn new_ones(
    task: &str,
    asked: &str,
    known: &BTreeMap<Box<str>, Method>,
    most: usize,
    client: &Pact,
    mint: &mut dyn FnMut() -> String,
) -> Result<Vec<Question>, WireError> {
    let broken = |why: String| {
        let message = format!("the server's question cannot be asked: {why}");
        wire_error(ErrorCode::InternalError, message, client.revision())
    };
    let asked = Object::parse(asked).map_err(|error| broken(format!("{error}")))?;
    let mut questions = Vec::new();
    for (key, raw) in asked.iter().filter(|(key, _)| !known.contains_key(*key)) {
        if known.len() + questions.len() >= most {
            return Err(broken(format!("there are more than {most}")));
        }
        let question = read(task, key, raw, client, mint).map_err(broken)?;
        questions.push(question);
    }
    Ok(questions)
}

fn read(
    task: &str,
    key: &str,
    raw: &str,
    client: &Pact,
    mint: &mut dyn FnMut() -> String,
) -> Result<Question, String> {
    let request = Object::parse(raw).map_err(|error| format!("{error}"))?;
    let name = request.get_str("method").unwrap_or_default();
    let method = Method::parse(&name).ok_or_else(|| format!("`{name}` is no question"))?;
    let ruling = client.rule_on(Side::Server, Kind::Request, method);
    if !ruling.is_open() {
        return Err(ruling.explain());
    }
    let params = request.get("params").unwrap_or("{}");
    let gate = client.rule_on_params(method, Some(params));
    if let Some(gate) = gate.filter(|gate| gate.violation == Violation::Refuse) {
        let path = gate.capability.path();
        return Err(format!("the client did not declare `{path}`"));
    }
    let params = adapted(task, method, params, client, mint).map_err(|error| format!("{error}"))?;
    Ok(Question {
        key: Box::from(key),
        method,
        params,
    })
}

fn adapted(
    task: &str,
    method: Method,
    params: &str,
    client: &Pact,
    mint: &mut dyn FnMut() -> String,
) -> Result<String, ShapeError> {
    let to = client.revision();
    let named = match adapt_params(method, params, to) {
        Err(ShapeError::NoElicitationId) => {
            let params = with_elicitation_id(params, &mint())?;
            adapt_params(method, &params, to)?.into_owned().into()
        }
        adapted => adapted?,
    };
    related(&without_undeclared(client, method, named)?, task)
}
