//! Log levels that modern requests ask for, combined to the one level of a legacy session.

use alloc::collections::BTreeMap;

use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, LogLevel};

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
        let level = server.extras().settable(level);
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

    /// The request is over.
    pub fn close(&mut self, request: u64) {
        self.open.remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LogLevel::{Debug, Error, Info, Warning};
    use mcpact_spec::Side;

    fn server(rows: &[Capability]) -> CapabilitySet {
        CapabilitySet::declaring(Side::Server, rows.iter().copied())
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
        assert_eq!(book.open(7, Some(Info), &logs), Some(Info), "a new session");
        assert_eq!(book.open(6, Some(Debug), &server(&[])), None);
    }
}
