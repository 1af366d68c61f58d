//! What a client carries between the rounds of a question, for one server among several.
//!
//! A server's state goes back to that server and no other, byte by byte as it gave it, even if the name
//! that the client called has come to mean something else meanwhile.

use std::borrow::Cow;

use crate::error::ServeError;
use bytestring::ByteString;
use mcpact_spec::Method;
use mcpact_translate::input::invalid_state;
use mcpact_wire::raw::{Object, ObjectWriter};
use mcpact_wire::scan::text;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewrite::{edit, quoted, subject, with_subject};
use crate::aggregate::server_entry::ServerEntry;

const STATE: &str = "requestState";

/// Returns a result with a sealed state, which names the server and the called item.
pub(crate) fn sealed(
    aggregator: &Aggregator,
    entry: &ServerEntry,
    principal: &str,
    called: impl FnOnce() -> ItemNames,
    raw: ByteString,
) -> ByteString {
    // Most results ask nothing, and are not looked into.
    if !raw.contains("requestState\"") {
        return raw;
    }
    let sealed = edit(&raw, STATE, |state| {
        let ItemNames { outer, inner } = called();
        let claims = ObjectWriter::new()
            .text("server", &entry.name)
            .text("principal", principal)
            .text("outer", &outer)
            .text("inner", &inner)
            .text("state", &text(state)?)
            .finish();
        Some(quoted(&aggregator.sealer.seal(claims.as_bytes())?))
    });
    sealed.map_or(raw, Into::into)
}

/// Parameters with the state as the server gave it.
pub(crate) fn unsealed<'a>(
    aggregator: &Aggregator,
    entry: &ServerEntry,
    principal: &str,
    params: &'a str,
) -> Result<Cow<'a, str>, ServeError> {
    let carried = Object::parse(params).unwrap_or_default();
    let Some(carried) = carried.get_str(STATE) else {
        return Ok(Cow::Borrowed(params));
    };
    let state = opened(aggregator, entry, principal, &carried);
    let state = state.ok_or_else(invalid_state)?;
    let edited = edit(params, STATE, |_| Some(quoted(&state)));
    Ok(edited.map_or(Cow::Borrowed(params), Cow::Owned))
}

/// The state in these parameters, if it was given to this client.
pub(crate) fn carried_in(
    aggregator: &Aggregator,
    principal: &str,
    params: &str,
) -> Option<SealedState> {
    let params = Object::parse(params).ok()?;
    carried(aggregator, principal, &params.get_str(STATE)?)
}

fn opened(
    aggregator: &Aggregator,
    entry: &ServerEntry,
    principal: &str,
    carried: &str,
) -> Option<String> {
    let carried = self::carried(aggregator, principal, carried)?;
    (carried.server == *entry.name).then_some(carried.state)
}

/// What a state is of, if it was given to this client.
fn carried(aggregator: &Aggregator, principal: &str, carried: &str) -> Option<SealedState> {
    let plain = aggregator.sealer.open(carried)?;
    let claims = Object::parse(std::str::from_utf8(&plain).ok()?).ok()?;
    let ownership = |name: &str| claims.get_str(name).map(Cow::into_owned);
    let carried = SealedState {
        server: ownership("server")?,
        called: ItemNames {
            outer: ownership("outer")?,
            inner: ownership("inner")?,
        },
        state: ownership("state")?,
    };
    (claims.get_str("principal")? == principal).then_some(carried)
}

/// The same thing as clients call it, and as its server does.
#[derive(Debug, Default)]
pub(crate) struct ItemNames {
    pub(crate) outer: String,
    pub(crate) inner: String,
}

impl ItemNames {
    /// What a request is about, as it came and as it is sent on.
    pub(crate) fn by(method: Method, given: &str, sent: &str) -> Self {
        let name = |params| subject(method, params).into_name().unwrap_or_default();
        Self {
            outer: name(given),
            inner: name(sent),
        }
    }
}

/// What a client carries for a server.
#[derive(Debug)]
pub(crate) struct SealedState {
    pub(crate) server: String,
    pub(crate) called: ItemNames,
    /// As the server gave it.
    state: String,
}

impl SealedState {
    /// The parameters as the server was given them, if they are about what it was called for.
    pub(crate) fn given_to_server(&self, method: Method, params: &str) -> Option<String> {
        let ItemNames { outer, inner } = &self.called;
        let name = subject(method, params).into_name()?;
        let named = (name == *outer).then(|| with_subject(method, params, inner))??;
        edit(&named, STATE, |_| Some(quoted(&self.state)))
    }
}
