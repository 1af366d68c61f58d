//! Questions of a server on their way to a client, checked against its capabilities.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use mcpact_engine::pact::Pact;
use mcpact_engine::reason::{Reason, Ruling};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{
    Capability, ErrorCode, Kind, Method, ParamGate, ParamProbe, Revision, Role, Side, Violation,
};
use mcpact_wire::raw::{Object, ObjectWriter};

use crate::shape::members::{each_value, edit, edit_body};
use crate::shape::{ShapeError, adapt_params};
use crate::wire_error::wire_error;

/// A question that its client cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRefusal {
    /// Error for the server; the call continues.
    pub answer: WireError,
    /// Capability that would have helped. Should the call end in an error,
    /// [`missing_capabilities_error`](super::missing_capabilities_error) names it.
    pub missing: Option<Capability>,
}

/// Reason why a modern server's question cannot be put to a legacy client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuestionError {
    /// The client did not declare that it can be asked this.
    Undeclared(String),
    /// The server should not have asked.
    Violation(String),
    /// The client's revision has no form for it.
    Inexpressible,
}

/// A legacy server's request as the `InputRequest` of a modern client.
///
/// # Errors
/// The client did not declare what it takes, or the parameters are malformed.
pub fn question_to_modern(
    method: Method,
    params: Option<&str>,
    upstream: Revision,
    downstream: &Pact,
) -> Result<String, QuestionRefusal> {
    let ruling = downstream.rule_on_input(method);
    let params = params.unwrap_or("{}");
    let gate = refused_param(downstream, method, params);
    if !ruling.is_open() {
        return Err(undeclared(&ruling, gate, upstream));
    }
    let invalid = |text: String, missing| QuestionRefusal {
        answer: wire_error(ErrorCode::InvalidParams, text, upstream),
        missing,
    };
    if let Some(gate) = gate {
        let text = format!("The client does not declare `{}`", gate.capability.path());
        return Err(invalid(text, Some(gate.capability)));
    }
    let adapted = embed(method, params, downstream);
    adapted.map_err(|fault| invalid(format!("Invalid parameters: {fault}"), None))
}

fn undeclared(ruling: &Ruling, gate: Option<&ParamGate>, upstream: Revision) -> QuestionRefusal {
    let missing = match (ruling.reason, gate.map(|gate| gate.capability)) {
        // A client without any elicitation declares forms by declaring elicitation.
        (Reason::Undeclared(whole), None | Some(Capability::ElicitationForm)) => Some(whole),
        (Reason::Undeclared(_), Some(part)) => Some(part),
        _ => None,
    };
    let reason = ObjectWriter::new()
        .text("reason", &ruling.explain())
        .finish();
    QuestionRefusal {
        answer: WireError {
            data: Some(reason),
            ..wire_error(ErrorCode::MethodNotFound, "Method not found", upstream)
        },
        missing,
    }
}

fn embed(method: Method, params: &str, downstream: &Pact) -> Result<String, ShapeError> {
    let out = ObjectWriter::new().text("method", method.as_str());
    if method == Method::RootsList {
        return Ok(out.finish());
    }
    let adapted = adapt_params(method, params, downstream.revision())?;
    let modest = without_undeclared(downstream, method, adapted)?;
    // An embedded question has no progress and no task of its own, so its `_meta` says nothing.
    let bare = without(modest, "_meta")?;
    Ok(out.raw("params", &bare).finish())
}

/// The `input_required` result of a modern server for a modern client, with its sampling requests as
/// the client expects them.
///
/// # Errors
/// A sampling request is malformed or breaks a rule.
pub fn with_adapted_sampling<'a>(
    result: &'a str,
    downstream: &Pact,
) -> Result<Cow<'a, str>, ShapeError> {
    let method = Method::SamplingCreateMessage;
    let adapt = |params: &str| {
        let adapted = adapt_params(method, params, downstream.revision())?;
        match without_undeclared(downstream, method, adapted)? {
            Cow::Borrowed(_) => Ok(None),
            Cow::Owned(adapted) => Ok(Some(adapted)),
        }
    };
    let question = |request: &str| {
        edit(request, |request| match request.get_str("method") {
            Some(name) if name == method.as_str() => request.rewrite("params", adapt),
            Some(_) | None => Ok(()),
        })
    };
    edit_body(result, |result| {
        result.rewrite("inputRequests", |requests| each_value(requests, question))
    })
}

/// A modern server's question as the parameters of a request to a legacy client.
pub(super) fn question_to_legacy(
    method: Method,
    params: &str,
    downstream: &Pact,
) -> Result<String, QuestionError> {
    let ruling = downstream.rule_on(Side::Server, Kind::Request, method);
    if !ruling.is_open() {
        return Err(QuestionError::Undeclared(ruling.explain()));
    }
    if let Some(gate) = refused_param(downstream, method, params) {
        let path = gate.capability.path();
        let text = format!("the client does not declare `{path}`");
        return Err(QuestionError::Undeclared(text));
    }
    let adapted = adapt_params(method, params, downstream.revision())
        .and_then(|adapted| without_undeclared(downstream, method, adapted));
    match adapted {
        Ok(params) => Ok(params.into_owned()),
        Err(ShapeError::Unrepresentable {
            what: crate::shape::Unrepresentable::MultiSelect,
            ..
        }) => Err(QuestionError::Inexpressible),
        Err(fault) => Err(QuestionError::Violation(format!("{fault}"))),
    }
}

/// Returns whether the method is one that a modern server embeds in a result.
pub(super) fn is_question(method: Method) -> bool {
    let mut revisions = Revision::ALL.into_iter();
    revisions.any(|revision| method.role(revision) == Role::EmbeddedInput)
}

pub(super) fn refused_param(
    pact: &Pact,
    method: Method,
    params: &str,
) -> Option<&'static ParamGate> {
    pact.rule_on_params(method, Some(params))
        .filter(|gate| gate.violation == Violation::Refuse)
}

/// Returns the parameters without those that the receiver ignores because it did not declare them.
///
/// # Errors
/// The parameters are malformed.
pub fn without_undeclared<'a>(
    pact: &Pact,
    method: Method,
    mut params: Cow<'a, str>,
) -> Result<Cow<'a, str>, ShapeError> {
    let ignored = |params: &str| {
        let gate = pact.rule_on_params(method, Some(params));
        gate.filter(|gate| gate.violation == Violation::Ignore)
    };
    while let Some(gate) = ignored(&params) {
        let (ParamProbe::Present(key) | ParamProbe::Equals(key, _) | ParamProbe::AbsentOr(key, _)) =
            gate.probe;
        let rest = without(params.clone(), key)?;
        if rest == params {
            break;
        }
        params = rest;
    }
    Ok(params)
}

fn without<'a>(params: Cow<'a, str>, key: &str) -> Result<Cow<'a, str>, ShapeError> {
    let members = Object::parse(&params)?;
    if members.get(key).is_none() {
        return Ok(params);
    }
    Ok(Cow::Owned(members.keep(|name| name != key).finish()))
}
