//! State of a server at its own endpoint, bound to the principal that received it.
//!
//! A server cannot tell the clients of the gateway apart, so the gateway binds what it asks them to return. Clients
//! without a principal get the state of the server unchanged.

use mcpact::connection::RawResult;
use mcpact::server::backend::{BackendRequest, Principal};
use mcpact_spec::Method;
use mcpact_translate::input::{BoundState, invalid_state};
use mcpact_wire::raw::Object;
use mcpact_wire::scan::SeenKeys;
use sha2::{Digest, Sha256};

use crate::aggregate::rewrite::{edit, quoted};
use crate::error::ServeError;
use crate::handover;
use crate::meaning;
use crate::upstream::UpstreamServer;

const STATE: &str = "requestState";

/// Returns a result with a state that only this principal can return.
pub(crate) fn bound(server: &UpstreamServer, principal: &Principal, raw: RawResult) -> RawResult {
    if principal.is_anonymous() || !raw.may_have(SeenKeys::REQUEST_STATE) {
        return raw;
    }
    let bound = edit(&raw, STATE, |state| {
        let bound = BoundState {
            principal: digest(principal),
            state: state.into(),
        };
        // Without random numbers, no client can return the state.
        let sealed = server.suspended.sealer.seal(&bound.encode());
        Some(quoted(&sealed.unwrap_or_default()))
    });
    bound.map_or(raw, Into::into)
}

/// Returns parameters with the original state of the server; none if they need no change.
///
/// # Errors
/// The state was not given to this principal.
pub(crate) fn unbound(
    server: &UpstreamServer,
    principal: &Principal,
    request: &BackendRequest,
) -> Result<Option<String>, ServeError> {
    if principal.is_anonymous() {
        return Ok(None);
    }
    let params = &request.params;
    let object = Object::parse(params).ok();
    // The server may read a state where the gateway sees none: behind a duplicate key, or in another spelling.
    if object.as_ref().is_none_or(has_unknown_key) {
        meaning::check_request(server.settings.filters.metrics(), request)?;
    }
    let object = object.ok_or_else(invalid_state)?;
    if object.get_present(STATE).is_none() {
        return Ok(None);
    }
    let sealed = object.get_str(STATE).unwrap_or_default();
    let mut registries = handover::suspended_registries(server);
    let plain = registries.find_map(|suspended| suspended.sealer.open(&sealed));
    let bound = plain.and_then(|plain| BoundState::parse(&plain));
    let own = bound.filter(|bound| bound.principal == digest(principal));
    let BoundState { state, .. } = own.ok_or_else(|| {
        tracing::warn!("`requestState` rejected: not given to this principal");
        invalid_state()
    })?;
    Ok(edit(params, STATE, |_| Some(state.into())))
}

/// Returns true if any key is not one of a request for which a server may keep state.
fn has_unknown_key(params: &Object<'_>) -> bool {
    let known = Method::ToolsCall.param_keys();
    let is_known = |key: &str| key == "uri" || known.find(key).is_some();
    !params.iter().all(|(key, _)| is_known(key))
}

fn digest(principal: &Principal) -> [u8; 32] {
    Sha256::digest(principal.text()).into()
}
