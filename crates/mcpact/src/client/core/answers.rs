//! Parsing of answers.

use mcpact_engine::client::probe::ProbeFailure;
use mcpact_engine::client::{ClientTerms, Failure};
use mcpact_engine::refusal::Incompatible;
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::id::IdRef;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;

use crate::client::client_error::RpcError;

/// Returns the number of a request of this client.
pub(in crate::client) fn number(id: IdRef<'_>) -> Option<i64> {
    id.raw().parse().ok()
}

pub(in crate::client) fn rpc_error(raw: &str) -> RpcError {
    match ErrorBody::parse(raw) {
        Some(body) => RpcError {
            code: body.code,
            message: body.message.into_owned(),
            data: body.data.and_then(|raw| serde_json::from_str(raw).ok()),
        },
        None => RpcError {
            code: 0,
            message: raw.to_owned(),
            data: None,
        },
    }
}

pub(super) fn instructions(bytes: &[u8]) -> Option<String> {
    let Ok(Envelope::Response(response)) = Envelope::parse(bytes) else {
        return None;
    };
    match response.outcome {
        Outcome::Result(body) => {
            let raw = Object::parse(body.raw).ok()?.get("instructions")?;
            text(raw).map(std::borrow::Cow::into_owned)
        }
        Outcome::Error(_) => None,
    }
}

pub(super) fn offers_what_we_speak(failure: &Failure, terms: &ClientTerms) -> bool {
    match failure {
        Failure::Probe(ProbeFailure::Incompatible(Incompatible::NoCommonVersion {
            offered,
            ..
        })) => {
            let speakable = terms.supported();
            offered.iter().any(|offer| {
                speakable
                    .iter()
                    .any(|revision| revision.as_str() == &**offer)
            })
        }
        _ => false,
    }
}
