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

use super::Hub;
use super::member::Member;
use crate::aggregate::rewrite::{edit, quoted, subject, with_subject};

const STATE: &str = "requestState";

impl Hub {
    /// A result whose state, if it has one, names its server and what was called there.
    pub(super) fn sealed(
        &self,
        member: &Member,
        principal: &str,
        called: impl FnOnce() -> Called,
        raw: ByteString,
    ) -> ByteString {
        // Most results ask nothing, and are not looked into.
        if !raw.contains("requestState\"") {
            return raw;
        }
        let sealed = edit(&raw, STATE, |state| {
            let Called { outer, inner } = called();
            let claims = ObjectWriter::new()
                .text("server", &member.name)
                .text("principal", principal)
                .text("outer", &outer)
                .text("inner", &inner)
                .text("state", &text(state)?)
                .finish();
            Some(quoted(&self.sealer.seal(claims.as_bytes())?))
        });
        sealed.map_or(raw, Into::into)
    }

    /// Parameters with the state as the server gave it.
    pub(super) fn unsealed<'a>(
        &self,
        member: &Member,
        principal: &str,
        params: &'a str,
    ) -> Result<Cow<'a, str>, ServeError> {
        let carried = Object::parse(params).unwrap_or_default();
        let Some(carried) = carried.get_str(STATE) else {
            return Ok(Cow::Borrowed(params));
        };
        let state = self.opened(member, principal, &carried);
        let state = state.ok_or_else(invalid_state)?;
        let edited = edit(params, STATE, |_| Some(quoted(&state)));
        Ok(edited.map_or(Cow::Borrowed(params), Cow::Owned))
    }

    /// The state in these parameters, if it was given to this client.
    pub(super) fn carried_in(&self, principal: &str, params: &str) -> Option<Carried> {
        let params = Object::parse(params).ok()?;
        self.carried(principal, &params.get_str(STATE)?)
    }

    fn opened(&self, member: &Member, principal: &str, carried: &str) -> Option<String> {
        let carried = self.carried(principal, carried)?;
        (carried.server == *member.name).then_some(carried.state)
    }

    /// What a state is of, if it was given to this client.
    fn carried(&self, principal: &str, carried: &str) -> Option<Carried> {
        let plain = self.sealer.open(carried)?;
        let claims = Object::parse(std::str::from_utf8(&plain).ok()?).ok()?;
        let claim = |name: &str| claims.get_str(name).map(Cow::into_owned);
        let carried = Carried {
            server: claim("server")?,
            called: Called {
                outer: claim("outer")?,
                inner: claim("inner")?,
            },
            state: claim("state")?,
        };
        (claims.get_str("principal")? == principal).then_some(carried)
    }
}

/// The same thing as clients call it, and as its server does.
#[derive(Debug, Default)]
pub(super) struct Called {
    outer: String,
    inner: String,
}

impl Called {
    /// What a request is about, as it came and as it is sent on.
    pub(super) fn by(method: Method, given: &str, sent: &str) -> Self {
        let name = |params| subject(method, params).into_name().unwrap_or_default();
        Self {
            outer: name(given),
            inner: name(sent),
        }
    }
}

/// What a client carries for a server.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) server: String,
    pub(super) called: Called,
    /// As the server gave it.
    state: String,
}

impl Carried {
    /// The parameters as the server was given them, if they are about what it was called for.
    pub(super) fn given_to_server(&self, method: Method, params: &str) -> Option<String> {
        let Called { outer, inner } = &self.called;
        let name = subject(method, params).into_name()?;
        let named = (name == *outer).then(|| with_subject(method, params, inner))??;
        edit(&named, STATE, |_| Some(quoted(&self.state)))
    }
}
