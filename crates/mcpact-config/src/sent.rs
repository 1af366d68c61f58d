//! What goes to a server from the variables and files of this machine, by whatever key it stands in.

use super::tree::{Member, Node, Table, Value};

/// A value of this machine that a server gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// What it is part of.
    pub place: SentIn,
    /// The variable or file that it comes from, such as `${TOKEN}`.
    pub source: String,
}

/// What a value is part of when it goes out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SentIn {
    /// This header.
    Header(String),
    /// The address.
    Address,
    /// What this key of the config says, such as `answers.sampling`.
    Key(String),
}

/// Everything that a table takes from this machine, except by some of its keys; `path` is where the table stands.
///
/// No list says which keys reach a server: one that were forgotten in it would send secrets to whoever asks.
pub(super) fn sent(table: &Table, path: &str, except: &[&str]) -> Vec<Sent> {
    let mut found = Vec::new();
    for Member { key, node, .. } in &table.0 {
        if !except.contains(&key.as_str()) {
            collect(node, &format!("{path}{key}"), &mut found);
        }
    }
    // The order of keys means nothing.
    found.sort();
    found.dedup();
    found
}

fn collect(node: &Node, path: &str, found: &mut Vec<Sent>) {
    match &node.value {
        Value::Text(text) => {
            let sources = text.sources().iter();
            found.extend(sources.map(|source| Sent {
                place: SentIn::at(path),
                source: source.clone(),
            }));
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, path, found)),
        Value::Table(table) => {
            for Member { key, node, .. } in &table.0 {
                collect(node, &format!("{path}.{key}"), found);
            }
        }
        Value::Null | Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) => {}
    }
}

impl SentIn {
    fn at(path: &str) -> Self {
        match (path, path.strip_prefix("headers.")) {
            ("url", _) => Self::Address,
            (_, Some(header)) => Self::Header(header.to_owned()),
            (key, None) => Self::Key(key.to_owned()),
        }
    }

    /// How it is shown to people.
    pub(crate) fn shown(&self, source: &str) -> String {
        match self {
            Self::Header(header) => format!("{source} as `{header}`"),
            Self::Address => format!("{source} in the address"),
            Self::Key(key) => format!("{source} by `{key}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Launch;
    use crate::read::tests::taken_from;

    fn of(gateway: &str, server: &str) -> Vec<String> {
        let text = format!("{gateway}\n[servers.a]\n{server}");
        let catalog = taken_from("mcpact.toml", &text);
        let sent = match &catalog.servers["a"].launch {
            Launch::Url(url) => url.sent.clone(),
            Launch::Command(command) => command.sent.clone(),
            Launch::Builtin(_) => Vec::new(),
        };
        let shown = sent.iter().map(|sent| sent.place.shown(&sent.source));
        shown.collect()
    }

    /// Whatever key of a server a variable stands in, it counts; of the gateway those count that the server gets.
    #[test]
    fn every_key_counts() {
        const URL: &str = "url = \"https://a.example/\"\n";
        const COMMAND: &str = "command = \"npx\"\nargs = [\"${TOKEN}\"]\n";
        const ANSWERS: &str = "[gateway.answers]\nsampling = \"${TOKEN}\"";
        for (gateway, server, expected) in [
            ("", URL.to_owned(), &[][..]),
            (
                "",
                String::from(
                    "url = \"https://a.example/${TOKEN}\"\nheaders = { X = \"${TOKEN}\" }",
                ),
                &["${TOKEN} as `X`", "${TOKEN} in the address"],
            ),
            (
                "",
                format!("{URL}answers = {{ sampling = \"a ${{TOKEN}}\" }}"),
                &["${TOKEN} by `answers.sampling`"],
            ),
            (
                "",
                format!("{URL}answers = {{ roots = [\"file:///x\", \"file:///${{TOKEN}}\"] }}"),
                &["${TOKEN} by `answers.roots`"],
            ),
            (
                "",
                format!("{URL}health = \"tool:${{TOKEN}}\""),
                &["${TOKEN} by `health`"],
            ),
            (
                "",
                format!("{URL}tags = [\"${{TOKEN}}\"]"),
                &["${TOKEN} by `tags`"],
            ),
            (
                ANSWERS,
                URL.to_owned(),
                &["${TOKEN} by `gateway.answers.sampling`"],
            ),
            (ANSWERS, format!("{URL}answers = {{}}"), &[]),
            (
                "[gateway]\ntoken = \"${TOKEN}-0123456789\"",
                URL.to_owned(),
                &[],
            ),
            // What a command is started with is approved as what it is.
            ("", COMMAND.to_owned(), &[]),
            (
                "",
                format!("{COMMAND}health = \"resource:x://${{TOKEN}}\""),
                &["${TOKEN} by `health`"],
            ),
            (
                ANSWERS,
                COMMAND.to_owned(),
                &["${TOKEN} by `gateway.answers.sampling`"],
            ),
        ] {
            assert_eq!(of(gateway, &server), expected, "{gateway} {server}");
        }
    }
}
