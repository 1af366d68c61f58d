//! Decoding of bytes as a conversation, for fuzzing and replay.

use std::time::Duration;

use mcpact_engine::client::TransportKind;
use mcpact_spec::Side;

use crate::model::caps::Caps;
use crate::peers::every_set;
use crate::trial::{Number, Operation, Reply, Setting, Trial};
use crate::wire::{Faults, Order};

/// Maximum number of operations.
const MOST_OPERATIONS: usize = 200;

/// Messages that may arrive at the wrong time.
const STRAYS: [&str; 16] = [
    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":"mcpact-open-1","result":{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":"mcpact-open-1","error":{"code":-32022,"message":"v","data":{"supported":["2099-01-01","2025-03-26"]}}}"#,
    r#"{"jsonrpc":"2.0","id":"mcpact-open-1","result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":"mcpact-open-2","result":{"protocolVersion":"1.0","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"9999-12-31","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":[],"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":1,"method":"ping"},7]"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p"}}"#,
];

/// Reader of choices; after the end, every choice is the first.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn wide(&mut self) -> u16 {
        u16::from_be_bytes([self.next(), self.next()])
    }

    fn bits(&mut self) -> u32 {
        u32::from_be_bytes([self.next(), self.next(), self.next(), self.next()])
    }

    fn side(&mut self) -> Side {
        if self.next().is_multiple_of(2) {
            Side::Client
        } else {
            Side::Server
        }
    }

    fn text(&mut self) -> Vec<u8> {
        let length = usize::from(self.next()).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        text.to_vec()
    }

    fn setting(&mut self) -> Setting {
        let sets: Vec<_> = every_set().collect();
        let mut set = || sets[usize::from(self.next()) % sets.len()];
        let (client, server) = (set(), set());
        let carrier = match self.next() % 3 {
            0 => TransportKind::Child,
            1 => TransportKind::Stream,
            _ => TransportKind::Http,
        };
        let order = match self.next() % 2 {
            0 => Order::Fifo,
            _ => Order::Parallel,
        };
        Setting {
            client,
            client_caps: Caps::of_bits(Side::Client, self.bits()),
            server,
            server_caps: Caps::of_bits(Side::Server, self.bits()),
            carrier,
            faults: Faults {
                order,
                delay: Duration::from_millis(u64::from(self.next())),
                twice: u16::from(self.next()),
                lost: u16::from(self.next()) / 4,
                breaks_after: Some(usize::from(self.next())).filter(|n| *n > 0),
            },
            seed: u64::from(self.bits()),
            head_start: Duration::from_millis(u64::from(self.wide())),
        }
    }

    fn operation(&mut self) -> Operation {
        match self.next() % 12 {
            0..=2 => Operation::Ask {
                by: self.side(),
                method: self.next(),
                params: self.next(),
                number: match self.next() % 8 {
                    0 => Number::Again,
                    _ => Number::Fresh,
                },
                patience: self.wide(),
            },
            3 | 4 => Operation::Notify {
                by: self.side(),
                method: self.next(),
                params: self.next(),
                scope: Some(self.next()).filter(|n| n % 2 == 1),
            },
            5 => Operation::Cancel {
                by: self.side(),
                which: self.next(),
            },
            6 | 7 => Operation::Answer {
                by: self.side(),
                which: self.next(),
                with: match self.next() % 4 {
                    0 => Reply::Error,
                    _ => Reply::Echo,
                },
            },
            8 => Operation::Wait { ms: self.wide() },
            9 => Operation::Stray {
                to: self.side(),
                bytes: self.text(),
            },
            10 => Operation::Stray {
                to: self.side(),
                bytes: STRAYS[usize::from(self.next()) % STRAYS.len()].into(),
            },
            _ => match self.next() {
                0 => Operation::Disconnect,
                1 => Operation::Close,
                ms => Operation::Wait { ms: u16::from(ms) },
            },
        }
    }
}

/// Decodes bytes as a setting and its operations.
#[must_use]
pub fn decode(bytes: &[u8]) -> (Setting, Vec<Operation>) {
    let mut choices = Choices(bytes);
    let setting = choices.setting();
    let mut operations = Vec::new();
    while !choices.0.is_empty() && operations.len() < MOST_OPERATIONS {
        operations.push(choices.operation());
    }
    (setting, operations)
}

/// Runs the conversation described by the bytes.
///
/// It always ends and never panics. Every request ends once and with its own answer, no side writes to a closed
/// connection, and no side announces a version that it does not support. Without stray messages, the model also
/// predicts every single message.
///
/// # Errors
/// The violated invariant.
pub fn run_operations(bytes: &[u8]) -> Result<(), String> {
    let (setting, operations) = decode(bytes);
    let mut trial = Trial::open(setting)?;
    for operation in &operations {
        trial.perform(operation)?;
    }
    trial.finish()
}
