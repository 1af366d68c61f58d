//! Who sends a request, as far as it can be told.

use std::fmt;
use std::sync::Arc;

use mcpact_engine::classify::HeaderField;
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;

use super::principal::somebody;

/// The header in which a client that has neither session nor connection says who it is.
pub(super) const KEY: http::HeaderName = http::HeaderName::from_static("mcpact-key");

/// How long a key may be.
const LONGEST: usize = 128;

/// Whoever opens a conversation or sends a request that stands alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    /// On whose behalf it comes; empty where nobody is told apart.
    pub principal: Arc<str>,
    /// What tells it from others of the same principal.
    pub mark: Mark,
}

/// What tells a client from others of the same principal.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing does.
    #[default]
    None,
    /// It has a connection for itself, and ends with it.
    Connection(Arc<str>),
    /// It names itself, in a way that others may not know.
    Key(Arc<str>),
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Connection(_) => "Connection(..)",
            Self::Key(_) => "Key(..)",
        })
    }
}

impl Visitor {
    /// Somebody of whom no more is known.
    pub(super) const fn of(principal: Arc<str>) -> Self {
        let mark = Mark::None;
        Self { principal, mark }
    }

    /// Somebody with a connection for itself.
    pub(super) fn connected(principal: Arc<str>) -> Self {
        let mark = Mark::Connection(somebody());
        Self { principal, mark }
    }

    /// Whose everything is that it begins: the principal's, or this client's alone if it has a connection for
    /// itself.
    pub(super) fn owner(&self) -> Arc<str> {
        match &self.mark {
            Mark::Connection(own) if self.principal.is_empty() => Arc::clone(own),
            Mark::None | Mark::Connection(_) | Mark::Key(_) => Arc::clone(&self.principal),
        }
    }
}

impl Mark {
    /// What a header says.
    pub(super) fn named(header: HeaderField<'_>) -> Result<Self, WireError> {
        let is_fit = |key: &str| {
            let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
            (1..=LONGEST).contains(&key.len()) && is_visible
        };
        match header {
            HeaderField::Absent => Ok(Self::None),
            HeaderField::Once(key) if is_fit(key) => Ok(Self::Key(Arc::from(key))),
            HeaderField::Once(_) | HeaderField::Repeated => Err(WireError {
                code: ErrorCode::InvalidRequest.code(),
                message: format!(
                    "`Mcpact-Key` has to be one word of 1 to {LONGEST} visible ASCII characters, once; \
                     send another one, or none"
                ),
                data: None,
                http_status: 400,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A routing key has a limit and a form, and is never written down.
    #[test]
    fn keys() {
        let longest = "k".repeat(LONGEST);
        for key in ["a", "~!{}", longest.as_str()] {
            let mark = Mark::named(HeaderField::Once(key)).unwrap();
            assert_eq!(mark, Mark::Key(Arc::from(key)));
            assert_eq!(format!("{mark:?}"), "Key(..)");
        }
        assert_eq!(Mark::named(HeaderField::Absent), Ok(Mark::None));
        let too_long = "k".repeat(LONGEST + 1);
        for header in [
            HeaderField::Once(""),
            HeaderField::Once("two words"),
            HeaderField::Once("\u{0}"),
            HeaderField::Once(&too_long),
            HeaderField::Repeated,
        ] {
            let refused = Mark::named(header).unwrap_err();
            assert_eq!(refused.http_status, 400);
            assert!(!refused.message.contains("two words"), "{refused:?}");
        }
    }
}
