//! Sealed request state: the state that a client returns with its answers, bound to one server of an aggregator.
//!
//! A server gets back only its own state, unchanged, even if the public name of the called item has another meaning
//! meanwhile.

use std::borrow::Cow;

use mcpact::connection::RawResult;
use mcpact_spec::Method;
use mcpact_translate::input::invalid_state;
use mcpact_wire::raw::{Object, ObjectWriter};
use mcpact_wire::scan::SeenKeys;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewrite::{edit, quoted, subject, with_subject};
use crate::aggregate::server_entry::ServerEntry;
use crate::error::ServeError;

const STATE: &str = "requestState";

/// Returns a result with a sealed state, which names the server and the called item.
pub(crate) fn sealed(
    aggregator: &Aggregator,
    entry: &ServerEntry,
    principal: &str,
    called: impl FnOnce() -> ItemNames,
    raw: RawResult,
) -> RawResult {
    if !raw.may_have(SeenKeys::REQUEST_STATE) {
        return raw;
    }
    let sealed = edit(&raw, STATE, |state| {
        let ItemNames { outer, inner } = called();
        let claims = ObjectWriter::new()
            .text("server", &entry.name)
            .text("principal", principal)
            .text("outer", &outer)
            .text("inner", &inner)
            .raw("state", state)
            .finish();
        Some(quoted(&aggregator.sealer.seal(claims.as_bytes())?))
    });
    sealed.map_or(raw, Into::into)
}

/// Returns parameters with the original state of the server; none if they have no state.
pub(crate) fn unsealed(
    aggregator: &Aggregator,
    entry: &ServerEntry,
    principal: &str,
    params: &str,
) -> Result<Option<String>, ServeError> {
    let object = Object::parse(params).unwrap_or_default();
    if object.get_present(STATE).is_none() {
        return Ok(None);
    }
    let opened = carried_in(aggregator, principal, params);
    let opened = opened.filter(|opened| opened.server == *entry.name);
    let SealedState { state, .. } = opened.ok_or_else(invalid_state)?;
    Ok(edit(params, STATE, |_| Some(state)))
}

/// Returns the state in these parameters, if it was sealed for this principal.
pub(crate) fn carried_in(
    aggregator: &Aggregator,
    principal: &str,
    params: &str,
) -> Option<SealedState> {
    let params = Object::parse(params).ok()?;
    let plain = aggregator.sealer.open(&params.get_str(STATE)?)?;
    let claims = Object::parse(std::str::from_utf8(&plain).ok()?).ok()?;
    let claim = |name: &str| claims.get_str(name).map(Cow::into_owned);
    let opened = SealedState {
        server: claim("server")?,
        called: ItemNames {
            outer: claim("outer")?,
            inner: claim("inner")?,
        },
        state: claims.get("state")?.to_owned(),
    };
    (claims.get_str("principal")? == principal).then_some(opened)
}

/// Name of an item in both forms.
#[derive(Debug, Default)]
pub(crate) struct ItemNames {
    /// Public form.
    pub(crate) outer: String,
    /// Form of the server.
    pub(crate) inner: String,
}

impl ItemNames {
    /// Returns the names in the parameters of a client and in those for the server.
    pub(crate) fn by(method: Method, received: &str, sent: &str) -> Self {
        let name = |params| subject(method, params).into_name().unwrap_or_default();
        Self {
            outer: name(received),
            inner: name(sent),
        }
    }
}

/// Opened state.
#[derive(Debug)]
pub(crate) struct SealedState {
    pub(crate) server: String,
    /// Called item.
    pub(crate) called: ItemNames,
    /// Original state of the server, as raw JSON.
    state: String,
}

impl SealedState {
    /// Returns the parameters for the server; none if they name another item than the one that was called.
    pub(crate) fn given_to_server(&self, method: Method, params: &str) -> Option<String> {
        let ItemNames { outer, inner } = &self.called;
        let name = subject(method, params).into_name()?;
        let named = (name == *outer).then(|| with_subject(method, params, inner))??;
        edit(&named, STATE, |_| Some(self.state.clone()))
    }
}
