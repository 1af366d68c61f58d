//! What a client carries between the rounds of a question, for one server among several.
//!
//! A server's state goes back to that server and no other, byte by byte as it gave it, even if the name
//! that the client called has come to mean something else meanwhile.

use std::borrow::Cow;

use bytestring::ByteString;
use mcpact_bridge::input::invalid_state;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Revision};
use mcpact_wire::raw::{Object, ObjectWriter};
use mcpact_wire::scan::text;

use super::Hub;
use super::member::Member;
use crate::aggregate::rewrite::{edit, quoted};
use crate::bridge::wire_error;
use crate::error::HINT;

const STATE: &str = "requestState";

impl Hub {
    /// A result whose state, if it has one, names its server.
    pub(super) fn sealed(&self, member: &Member, principal: &str, raw: ByteString) -> ByteString {
        // Most results ask nothing, and are not looked into.
        if !raw.contains("requestState\"") {
            return raw;
        }
        let sealed = edit(&raw, STATE, |state| {
            let claims = ObjectWriter::new()
                .text("server", &member.name)
                .text("principal", principal)
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
    ) -> Result<Cow<'a, str>, WireError> {
        let carried = Object::parse(params).unwrap_or_default();
        let Some(carried) = carried.get_str(STATE) else {
            return Ok(Cow::Borrowed(params));
        };
        let state = self.opened(member, principal, &carried);
        let state = state.ok_or_else(invalid_state)?;
        let edited = edit(params, STATE, |_| Some(quoted(&state)));
        Ok(edited.map_or(Cow::Borrowed(params), Cow::Owned))
    }

    /// What is told to a client that comes back for a call whose server has left the config meanwhile.
    pub(super) fn orphaned(
        &self,
        principal: &str,
        params: &str,
        client: Revision,
    ) -> Option<WireError> {
        let params = Object::parse(params).ok()?;
        let (server, _) = self.carried(principal, &params.get_str(STATE)?)?;
        if self.named(&server).is_some() {
            return None;
        }
        let why = format!(
            "`{server}` is not served any more, and the call that waited for these answers is lost{HINT}it may have \
             had its effect; see whether it had"
        );
        Some(wire_error(
            ErrorCode::InternalError.code(),
            why,
            None,
            client,
        ))
    }

    fn opened(&self, member: &Member, principal: &str, carried: &str) -> Option<String> {
        let (server, state) = self.carried(principal, carried)?;
        (server == *member.name).then_some(state)
    }

    /// The server that a state is of, and the state as the server gave it, if it was given to this client.
    fn carried(&self, principal: &str, carried: &str) -> Option<(String, String)> {
        let plain = self.sealer.open(carried)?;
        let claims = Object::parse(std::str::from_utf8(&plain).ok()?).ok()?;
        let is_its_own = claims.get_str("principal")? == principal;
        let of = || {
            Some((
                claims.get_str("server")?.into_owned(),
                claims.get_str("state")?.into_owned(),
            ))
        };
        is_its_own.then(of)?
    }
}
