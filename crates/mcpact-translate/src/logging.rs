//! Log levels: of a session for legacy peers, of one request for modern ones.
//!
//! [`SessionLogLevel`] keeps what a legacy client set, for the stamp of each request to a modern
//! server. [`RequestLogLevels`] keeps what modern requests ask for, for the one level of a legacy session.

use alloc::collections::BTreeMap;
use alloc::format;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, ErrorCode, LogLevel, Revision};
use mcpact_wire::raw::Object;

use crate::wire_error::wire_error;

/// The level that a legacy client set for its session; silence until it sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionLogLevel {
    level: Option<LogLevel>,
}

impl SessionLogLevel {
    /// Takes the parameters of `logging/setLevel`; the answer is an empty result.
    ///
    /// # Errors
    /// The server sends no log messages, or there is no such level.
    pub fn set(
        &mut self,
        params: Option<&str>,
        server: &CapabilitySet,
        client: Revision,
    ) -> Result<(), WireError> {
        if !server.declared().has(Capability::Logging) {
            let message = "the server did not declare `logging`";
            return Err(wire_error(ErrorCode::MethodNotFound, message, client));
        }
        let Some(level) = level_in(params) else {
            let message = format!("`level` must be one of {}", names());
            return Err(wire_error(ErrorCode::InvalidParams, message, client));
        };
        self.level = Some(level);
        Ok(())
    }

    /// Level for the next request.
    #[must_use]
    pub const fn stamp(self) -> Option<LogLevel> {
        self.level
    }
}

fn names() -> alloc::string::String {
    let names = LogLevel::ALL.map(LogLevel::as_str);
    format!("`{}`", names.join("`, `"))
}

/// The level that parameters name.
fn level_in(params: Option<&str>) -> Option<LogLevel> {
    let params = Object::parse(params?).ok()?;
    LogLevel::parse(&params.get_str("level")?)
}

/// The levels that the open requests of modern clients ask of one legacy session.
///
/// The session is as verbose as the most verbose of them; each gets only what it asked for. A
/// session is never made quieter again: unwanted messages are dropped here, and the next request
/// does not wait for another round trip.
#[derive(Clone, Debug)]
pub struct RequestLogLevels {
    open: BTreeMap<u64, LogLevel>,
    current: Option<LogLevel>,
    most: usize,
}

impl RequestLogLevels {
    /// A book of at most so many open requests; those beyond get no messages.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            current: None,
            most,
        }
    }

    /// A request opens. If a level comes back, set it on the session before the request is sent;
    /// one after the other, for the last one set is the one that holds.
    pub fn open(
        &mut self,
        request: u64,
        level: Option<LogLevel>,
        server: &CapabilitySet,
    ) -> Option<LogLevel> {
        let level = level.filter(|_| server.declared().has(Capability::Logging))?;
        if self.open.len() >= self.most {
            return None;
        }
        self.open.insert(request, level);
        if self.current.is_some_and(|current| current <= level) {
            return None;
        }
        self.current = Some(level);
        Some(level)
    }

    /// The session did not take the level, or there is a new session: nothing is set.
    pub const fn forget(&mut self) {
        self.current = None;
    }

    /// Level that a new session needs for the open requests.
    pub fn restore(&mut self) -> Option<LogLevel> {
        self.current = self.open.values().min().copied();
        self.current
    }

    /// The request is over.
    pub fn close(&mut self, request: u64) {
        self.open.remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LogLevel::{Debug, Error, Info, Warning};
    use Revision::V2025_06_18;
    use mcpact_spec::Side;

    fn server(rows: &[Capability]) -> CapabilitySet {
        CapabilitySet::declaring(Side::Server, rows.iter().copied())
    }

    /// BA-16: without a level that the client set, nothing is stamped.
    #[test]
    fn a_session_is_silent_until_it_has_a_level() {
        let logs = server(&[Capability::Logging]);
        let mut session = SessionLogLevel::default();
        assert_eq!(session.stamp(), None);
        session
            .set(Some(r#"{"level":"info"}"#), &logs, V2025_06_18)
            .unwrap();
        assert_eq!(session.stamp(), Some(Info));
        let cells = [
            (None, &logs, -32602),
            (Some("{}"), &logs, -32602),
            (Some(r#"{"level":"loud"}"#), &logs, -32602),
            (Some(r#"{"level":"debug"}"#), &server(&[]), -32601),
        ];
        for (params, server, code) in cells {
            let error = session.set(params, server, V2025_06_18).unwrap_err();
            assert_eq!(error.code, code, "{params:?}");
            assert_eq!(session.stamp(), Some(Info), "{params:?}");
        }
    }

    /// BB-22: the session is set before the call, to the most verbose of what is open.
    #[test]
    fn a_session_is_as_verbose_as_its_most_verbose_request() {
        let logs = server(&[Capability::Logging]);
        let mut book = RequestLogLevels::new(9);
        let steps = [
            ("the first", Some(Warning), Some(Warning)),
            ("quieter", Some(Error), None),
            ("silent", None, None),
            ("more verbose", Some(Debug), Some(Debug)),
            ("the same", Some(Debug), None),
        ];
        for (request, (name, level, expected)) in (0..).zip(steps) {
            assert_eq!(book.open(request, level, &logs), expected, "{name}");
        }
        book.close(3);
        book.close(4);
        assert_eq!(book.open(5, Some(Info), &logs), None, "verbose enough");
        book.forget();
        assert_eq!(book.restore(), Some(Info), "a new session");
        assert_eq!(book.open(6, Some(Debug), &server(&[])), None);
    }
}
