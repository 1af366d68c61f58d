//! Keys of `[gateway]` that let more callers in than the defaults do.

use std::net::SocketAddr;

use super::secret::Filled;
use super::source::Span;
use super::tree::{Table, Value};

/// A key that lets more callers in, which needs a yes where the config was merely found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which key.
    pub key: &'static str,
    /// Where it stands.
    pub span: Span,
    /// What it says.
    pub values: Vec<Filled>,
    /// Who is let in.
    pub lets_in: &'static str,
}

/// A key that can let more callers in.
struct Row {
    key: &'static str,
    lets_in: &'static str,
    /// The values that do.
    opens: fn(&Value) -> Vec<Filled>,
}

pub(super) const LISTEN: &str = "listen";

/// A token is in no row: without one everybody on this machine is served, and with any fewer are.
const ROWS: [Row; 4] = [
    Row {
        key: LISTEN,
        lets_in: "other machines can reach the gateway",
        opens: beyond_loopback,
    },
    Row {
        key: "allow_remote",
        lets_in: "other machines that reach the gateway need no token",
        opens: switched_on,
    },
    Row {
        key: "allow_hosts",
        lets_in: "whoever owns such a name can lead browsers here",
        opens: each,
    },
    Row {
        key: "allow_origins",
        lets_in: "web pages from there may call",
        opens: each,
    },
];

fn beyond_loopback(value: &Value) -> Vec<Filled> {
    let Value::Text(text) = value else {
        return Vec::new();
    };
    // What is no address is told elsewhere, and nothing is served.
    let address = text.value().parse::<SocketAddr>();
    let is_open = address.is_ok_and(|address| !address.ip().is_loopback());
    is_open.then(|| text.clone()).into_iter().collect()
}

fn switched_on(value: &Value) -> Vec<Filled> {
    let is_on = *value == Value::Flag(true);
    is_on.then(|| Filled::from("true")).into_iter().collect()
}

fn each(value: &Value) -> Vec<Filled> {
    let Value::List(items) = value else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| item.text().cloned())
        .collect()
}

/// The keys of `[gateway]` that let more callers in than their defaults do.
pub(super) fn openings(gateway: &Table) -> Vec<Opening> {
    let found = ROWS.iter().filter_map(|row| {
        let member = gateway.member(row.key)?;
        let values = (row.opens)(&member.node.value);
        (!values.is_empty()).then_some(Opening {
            key: row.key,
            span: member.node.span,
            values,
            lets_in: row.lets_in,
        })
    });
    found.collect()
}

impl Opening {
    /// What there is to know about it before anybody serves it.
    pub(super) fn told(&self) -> String {
        format!(
            "`{}` lets more callers in than the default: {}; unless the config is named, that needs `mcpact approve`",
            self.key, self.lets_in
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::GATEWAY;
    use crate::read::tests::{found_in, taken_from};

    /// The keys that let nobody in whom the defaults keep out: the same callers are served in other ways, with other
    /// limits, or fewer of them are.
    const SHUT: [&str; 21] = [
        "token",
        "tls_cert",
        "tls_key",
        "sse",
        "websocket",
        "control",
        "names",
        "separator",
        "watch",
        "drain_seconds",
        "list_seconds",
        "revisions",
        "profile",
        "strict",
        "lenient",
        "undeclared",
        "announce_extras",
        "require",
        "missing_variables",
        "answers",
        "commands",
    ];

    /// Of every key of `[gateway]` it is known whether it can let more callers in.
    #[test]
    fn every_key_is_judged() {
        for key in GATEWAY {
            let opens = ROWS.iter().any(|row| row.key == key.name);
            assert_ne!(opens, SHUT.contains(&key.name), "{}", key.name);
        }
        assert_eq!(GATEWAY.len(), ROWS.len() + SHUT.len());
    }

    /// A key needs a yes only if it lets more callers in than its default.
    #[test]
    fn what_opens_is_told_from_what_does_not() {
        const TOKEN: &str = "token = \"0123456789abcdef\"\n";
        for (text, expected) in [
            ("", &[][..]),
            ("listen = \"127.0.0.1:1\"", &[]),
            ("listen = \"[::1]:0\"", &[]),
            (
                "allow_remote = false\nallow_hosts = []\nallow_origins = []",
                &[],
            ),
            (TOKEN, &[]),
            ("websocket = true\nsse = true", &[]),
            (&format!("{TOKEN}listen = \"0.0.0.0:1\""), &["listen"]),
            (&format!("{TOKEN}listen = \"[::]:1\""), &["listen"]),
            (
                "listen = \"192.0.2.1:1\"\nallow_remote = true",
                &["listen", "allow_remote"],
            ),
            ("allow_remote = true", &["allow_remote"]),
            ("allow_hosts = [\"a.example\"]", &["allow_hosts"]),
            (
                "allow_origins = [\"https://a.example\"]",
                &["allow_origins"],
            ),
        ] {
            let text = format!("[gateway]\n{text}\n");
            let catalog = taken_from("mcpact.toml", &text);
            let keys: Vec<&str> = catalog.gateway.openings.iter().map(|o| o.key).collect();
            assert_eq!(keys, expected, "{text}");
            let notes = found_in("mcpact.toml", &text);
            let noted = notes.iter().filter(|note| note.contains("mcpact approve"));
            assert_eq!(noted.count(), expected.len(), "{notes:?}");
        }
    }

    /// Where somebody asks for another address, the one of the config lets nobody in.
    #[test]
    fn an_address_that_is_not_used_opens_nothing() {
        let text = "[gateway]\nlisten = \"0.0.0.0:1\"\nallow_remote = true\n";
        let mut gateway = taken_from("mcpact.toml", text).gateway;
        gateway.listen_instead("127.0.0.1:0".parse().unwrap());
        let keys: Vec<&str> = gateway.openings.iter().map(|o| o.key).collect();
        assert_eq!(keys, ["allow_remote"]);
    }
}
