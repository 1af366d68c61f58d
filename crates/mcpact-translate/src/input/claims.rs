//! State that a modern client carries for us, before sealing and after opening.

use alloc::boxed::Box;
use alloc::vec::Vec;

use mcpact_engine::time::Moment;
use mcpact_spec::Method;

/// The form of the bytes; another form gets another number.
const FORM: u8 = 1;

/// A suspended call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuspendedCallId([u8; 16]);

impl SuspendedCallId {
    /// An id of 128 random bits.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }
}

/// Caller and call that a state is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Digest of the principal.
    pub principal: [u8; 32],
    /// The method of the call.
    pub method: Method,
    /// Digest of what the call is about: upstream, name and arguments, without what changes from
    /// round to round.
    pub params: [u8; 32],
}

/// Content of the `requestState` of a suspended call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The suspended call.
    pub call: SuspendedCallId,
    /// Caller that may continue it, and its call.
    pub binding: Binding,
    /// The round that the answers belong to.
    pub round: u32,
    /// Seconds of the owner's clock after which the state is worthless.
    pub expires: u64,
}

impl Claims {
    /// The plain bytes to seal.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = start(Kind::Suspended);
        out.extend_from_slice(&self.call.0);
        self.binding.encode(&mut out);
        out.extend_from_slice(&self.round.to_be_bytes());
        out.extend_from_slice(&self.expires.to_be_bytes());
        out
    }

    /// Reads the bytes back; none when they are something else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader::open(bytes, Kind::Suspended)?;
        let claims = Self {
            call: SuspendedCallId(rest.take()?),
            binding: Binding::parse(&mut rest)?,
            round: u32::from_be_bytes(rest.take()?),
            expires: u64::from_be_bytes(rest.take()?),
        };
        rest.end(claims)
    }
}

impl Binding {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.principal);
        put_text(out, self.method.as_str());
        out.extend_from_slice(&self.params);
    }

    pub(super) fn parse(rest: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            principal: rest.take()?,
            method: Method::parse(&rest.text()?)?,
            params: rest.take()?,
        })
    }
}

/// The kinds of states, distinguished by a byte so that none passes for another.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Kind {
    /// A suspended call.
    Suspended = 1,
    /// A call that will be repeated.
    Ticket = 2,
    /// The state of a server.
    Bound = 3,
}

pub(super) fn start(kind: Kind) -> Vec<u8> {
    Vec::from([FORM, kind as u8])
}

/// Whole seconds of the owner's clock.
pub(super) const fn seconds(moment: Moment) -> u64 {
    moment.since(Moment::ZERO).as_secs()
}

/// Texts are short: their length is one byte, and longer ones are cut.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    out.push(length);
    out.extend(text.bytes().take(usize::from(length)));
}

/// Bytes that are read from the front.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn open(bytes: &'a [u8], kind: Kind) -> Option<Self> {
        let rest = bytes.strip_prefix(&[FORM, kind as u8])?;
        Some(Self(rest))
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn text(&mut self) -> Option<Box<str>> {
        let [length] = self.take()?;
        let (head, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        core::str::from_utf8(head).ok().map(Box::from)
    }

    /// All that is left, as a text.
    pub(super) fn rest(self) -> Option<Box<str>> {
        core::str::from_utf8(self.0).ok().map(Box::from)
    }

    /// The value, if nothing is left over.
    pub(super) fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
