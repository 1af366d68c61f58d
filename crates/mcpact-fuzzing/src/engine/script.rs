//! One order per line: a letter, then what the order needs.

use mcpact_engine::classify::{HeaderField, HttpFacts, SessionFact, Verb};
use mcpact_spec::Revision;

/// The next order.
///
/// | line | order |
/// |---|---|
/// | `t` byte | time goes by: 2 to the power of the byte, in milliseconds |
/// | `T` | both hear that time went by |
/// | `>` `<` | the oldest message of the client (of the server) is delivered |
/// | letter in upper case | see [`ServerOrder`] |
/// | letter in lower case | see [`ClientOrder`] |
pub(super) enum Order<'a> {
    Wait(u64),
    Tick,
    DeliverToServer,
    DeliverToClient,
    Server(ServerOrder<'a>),
    Client(ClientOrder<'a>),
}

/// An order for the server.
pub(super) enum ServerOrder<'a> {
    /// `S` message: on a stream.
    Bytes(&'a [u8]),
    /// `H` byte, message: over HTTP; the byte chooses verb, headers and session.
    Http(u8, &'a [u8]),
    /// `Q` byte, method, space, parameters: asks; with `!` under a number that was used.
    Ask(Words<'a>),
    /// `N` byte, method, space, parameters: tells; the byte chooses a request, `0` none.
    Notify(Words<'a>),
    /// `A` byte, result: answers a request, chosen by the byte.
    Answer(u8, &'a [u8]),
    /// `E` byte: answers a request with an error.
    Fail(u8),
    /// `X` byte: gives up the request with this number.
    Cancel(u8),
    /// `Z`: the connection is gone.
    Closed,
}

/// An order for the client.
pub(super) enum ClientOrder<'a> {
    /// `o`: opens; the carrier is there at once.
    Open,
    /// `k`: the carrier is there.
    Connected,
    /// `f`: the server shows life.
    FirstByte,
    /// `s` message: on a stream.
    Bytes(&'a [u8]),
    /// `h` byte, message: in an HTTP answer; the byte chooses the status.
    Http(u8, &'a [u8]),
    /// `u` byte: an HTTP answer without a message.
    Status(u8),
    /// `q` byte, method, space, parameters: asks; with `!` under a number that was used.
    Ask(Words<'a>),
    /// `n` byte, method, space, parameters: tells.
    Notify(Words<'a>),
    /// `a` byte, result: answers a request, chosen by the byte.
    Answer(u8, &'a [u8]),
    /// `e` byte: answers a request with an error.
    Fail(u8),
    /// `x` byte: gives up the request with this number.
    Cancel(u8),
    /// `y`: wants to end.
    Close,
    /// `z`: the carrier is gone.
    Closed,
}

/// A message to send.
pub(super) struct Words<'a> {
    pub(super) choice: u8,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn parse(choice: u8, rest: &'a [u8]) -> Option<Self> {
        let text = core::str::from_utf8(rest).ok()?;
        let (method, params) = match text.split_once(' ') {
            Some((method, params)) => (method, Some(params)),
            None => (text, None),
        };
        Some(Self {
            choice,
            method,
            params,
        })
    }
}

/// Reads a line; none when it is no order.
pub(super) fn parse(line: &[u8]) -> Option<Order<'_>> {
    let (&letter, rest) = line.split_first()?;
    let (choice, after) = rest.split_first().map_or((b'0', rest), |(&c, r)| (c, r));
    Some(match letter {
        b't' => Order::Wait(1 << (choice % 32)),
        b'T' => Order::Tick,
        b'>' => Order::DeliverToServer,
        b'<' => Order::DeliverToClient,
        b'S' => Order::Server(ServerOrder::Bytes(rest)),
        b'H' => Order::Server(ServerOrder::Http(choice, after)),
        b'Q' => Order::Server(ServerOrder::Ask(Words::parse(choice, after)?)),
        b'N' => Order::Server(ServerOrder::Notify(Words::parse(choice, after)?)),
        b'A' => Order::Server(ServerOrder::Answer(choice, after)),
        b'E' => Order::Server(ServerOrder::Fail(choice)),
        b'X' => Order::Server(ServerOrder::Cancel(choice)),
        b'Z' => Order::Server(ServerOrder::Closed),
        b'o' => Order::Client(ClientOrder::Open),
        b'k' => Order::Client(ClientOrder::Connected),
        b'f' => Order::Client(ClientOrder::FirstByte),
        b's' => Order::Client(ClientOrder::Bytes(rest)),
        b'h' => Order::Client(ClientOrder::Http(choice, after)),
        b'u' => Order::Client(ClientOrder::Status(choice)),
        b'q' => Order::Client(ClientOrder::Ask(Words::parse(choice, after)?)),
        b'n' => Order::Client(ClientOrder::Notify(Words::parse(choice, after)?)),
        b'a' => Order::Client(ClientOrder::Answer(choice, after)),
        b'e' => Order::Client(ClientOrder::Fail(choice)),
        b'x' => Order::Client(ClientOrder::Cancel(choice)),
        b'y' => Order::Client(ClientOrder::Close),
        b'z' => Order::Client(ClientOrder::Closed),
        _ => return None,
    })
}

/// The status that a byte stands for.
pub(super) fn status(choice: u8) -> u16 {
    const STATUSES: [u16; 10] = [200, 202, 400, 401, 403, 404, 405, 429, 500, 302];
    STATUSES[usize::from(choice) % STATUSES.len()]
}

/// The facts that a byte stands for; `told` are the headers of an honest client.
pub(super) fn http_facts<'a>(choice: u8, told: [HeaderField<'a>; 3]) -> HttpFacts<'a> {
    let [version, method, name] = match choice >> 2 & 3 {
        0 => told,
        1 => [HeaderField::Absent; 3],
        2 => [told[0], HeaderField::Repeated, told[2]],
        _ => [
            HeaderField::Once("2025-06-18"),
            told[1],
            HeaderField::Once("=?base64?dA==?="),
        ],
    };
    HttpFacts {
        verb: match choice & 3 {
            0 | 1 => Verb::Post,
            2 => Verb::Get,
            _ => Verb::Other,
        },
        version,
        method,
        name,
        session: match choice >> 4 & 7 {
            index @ 0..=4 => SessionFact::Live(Revision::ALL[usize::from(index)]),
            5 => SessionFact::Unknown,
            _ => SessionFact::Absent,
        },
    }
}
