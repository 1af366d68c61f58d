//! Keys of `[gateway]` that expose the gateway to more callers than the defaults.

use std::net::SocketAddr;

use super::secret::ExpandedText;
use super::source::Span;
use super::tree::{Table, Value};

/// A key that exposes the gateway to more callers. It needs approval unless the config is named explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposingKey {
    /// Name of the key.
    pub key: &'static str,
    /// Source position.
    pub span: Span,
    /// Its values.
    pub values: Vec<ExpandedText>,
    /// Consequence, for messages.
    pub effect: &'static str,
}

/// A key that can expose the gateway.
struct Row {
    key: &'static str,
    effect: &'static str,
    /// Values that expose it.
    opens: fn(&Value) -> Vec<ExpandedText>,
}

pub(super) const LISTEN: &str = "listen";

/// `token` is not listed: any token reduces the set of callers.
const ROWS: [Row; 4] = [
    Row {
        key: LISTEN,
        effect: "lets other machines connect",
        opens: beyond_loopback,
    },
    Row {
        key: "allow_remote",
        effect: "lets other machines connect without a token",
        opens: switched_on,
    },
    Row {
        key: "allow_hosts",
        effect: "lets the owner of the name make browsers call the gateway",
        opens: each,
    },
    Row {
        key: "allow_origins",
        effect: "lets web pages of this origin call the gateway",
        opens: each,
    },
];

fn beyond_loopback(value: &Value) -> Vec<ExpandedText> {
    let Value::Text(text) = value else {
        return Vec::new();
    };
    // Invalid addresses are reported elsewhere.
    let address = text.value().parse::<SocketAddr>();
    let is_open = address.is_ok_and(|address| !address.ip().is_loopback());
    is_open.then(|| text.clone()).into_iter().collect()
}

fn switched_on(value: &Value) -> Vec<ExpandedText> {
    let is_on = *value == Value::Flag(true);
    is_on
        .then(|| ExpandedText::from("true"))
        .into_iter()
        .collect()
}

fn each(value: &Value) -> Vec<ExpandedText> {
    let Value::List(items) = value else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| item.text().cloned())
        .collect()
}

/// Keys of `[gateway]` that expose it to more callers than their defaults.
pub(super) fn exposing_keys(gateway: &Table) -> Vec<ExposingKey> {
    let found = ROWS.iter().filter_map(|row| {
        let member = gateway.member(row.key)?;
        let values = (row.opens)(&member.node.value);
        (!values.is_empty()).then_some(ExposingKey {
            key: row.key,
            span: member.node.span,
            values,
            effect: row.effect,
        })
    });
    found.collect()
}

impl ExposingKey {
    /// Note shown by `mcpact check`.
    pub(super) fn note(&self) -> String {
        format!(
            "`{}` {}; needs `mcpact approve`, unless the config is passed with `--config`",
            self.key, self.effect
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::GATEWAY;
    use crate::read::tests::{found_in, taken_from};

    /// Keys that never expose the gateway to more callers.
    const NOT_EXPOSING: [&str; 21] = [
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

    /// Every key of `[gateway]` is classified.
    #[test]
    fn every_key_is_classified() {
        for key in GATEWAY {
            let opens = ROWS.iter().any(|row| row.key == key.name);
            assert_ne!(opens, NOT_EXPOSING.contains(&key.name), "{}", key.name);
        }
        assert_eq!(GATEWAY.len(), ROWS.len() + NOT_EXPOSING.len());
    }

    /// Only values that expose the gateway need approval.
    #[test]
    fn only_exposing_values_need_approval() {
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
            let keys: Vec<&str> = catalog
                .gateway
                .exposing_keys
                .iter()
                .map(|o| o.key)
                .collect();
            assert_eq!(keys, expected, "{text}");
            let notes = found_in("mcpact.toml", &text);
            let noted = notes.iter().filter(|note| note.contains("mcpact approve"));
            assert_eq!(noted.count(), expected.len(), "{notes:?}");
        }
    }

    /// An overridden listen address needs no approval.
    #[test]
    fn overridden_listen_address_needs_no_approval() {
        let text = "[gateway]\nlisten = \"0.0.0.0:1\"\nallow_remote = true\n";
        let mut gateway = taken_from("mcpact.toml", text).gateway;
        gateway.override_listen("127.0.0.1:0".parse().unwrap());
        let keys: Vec<&str> = gateway.exposing_keys.iter().map(|o| o.key).collect();
        assert_eq!(keys, ["allow_remote"]);
    }
}
