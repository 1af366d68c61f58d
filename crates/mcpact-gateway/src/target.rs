//! What a bridge leads to.

use std::fmt;

use mcpact_config::{query_values, with_words};
use mcpact_transport::address::shown;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::ChildCommand;
use sha2::{Digest, Sha256};

/// The server behind a bridge.
#[derive(Clone, Debug)]
pub enum Target {
    /// A program that is started, and spoken to on its pipes.
    Command(ChildCommand),
    /// A server that is reached by HTTP.
    Url {
        /// Its address.
        url: String,
        /// How it is reached.
        settings: Box<HttpSettings>,
    },
    /// Servers in this very process: called for a link to a new one.
    Local(Local),
}

/// Makes links to servers in this process.
#[derive(Clone)]
pub struct Local(pub std::sync::Arc<dyn Fn() -> Link + Send + Sync>);

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local(..)")
    }
}

impl Target {
    /// A server at this address, reached in the usual way.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url {
            url: url.into(),
            settings: Box::default(),
        }
    }

    /// What people call it: by the name that it has in a config, and by what it is where that is more.
    pub(crate) fn called(&self, name: Option<&str>) -> String {
        let itself = self.to_string();
        match name.map(|name| format!("`{name}`")) {
            Some(name) if name != itself => format!("{name}: {itself}"),
            Some(_) | None => itself,
        }
    }

    /// Whether the server is told who asks.
    pub(crate) fn has_credentials(&self) -> bool {
        match self {
            Self::Url { settings, .. } => {
                let mut names = settings.headers.iter().map(|(name, _)| name);
                names.any(|name| name.eq_ignore_ascii_case("authorization"))
            }
            Self::Command(_) | Self::Local(_) => false,
        }
    }

    /// What a server at an address is given and may repeat: the values of headers, and what stands in the query.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        match self {
            Self::Url { url, settings } => {
                let values = settings.headers.iter().map(|(_, value)| value);
                let values = values.map(|value| String::from_utf8_lossy(value).into_owned());
                with_words(values.chain(query_values(url).map(str::to_owned)).collect())
            }
            Self::Command(_) | Self::Local(_) => Vec::new(),
        }
    }

    /// The key under which a verdict about its era is kept. Arguments and queries may be secrets, so that
    /// only their digest is written down.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Command(command) => {
                let args = command.args.iter().map(|arg| arg.as_encoded_bytes());
                format!("command {} {}", command.name, digest(args))
            }
            Self::Url { url, .. } => format!("url {} {}", shown(url), digest([url.as_bytes()])),
            Self::Local(_) => String::from("local"),
        }
    }

    /// Tells this server from every other one, whatever of it is a secret. None for a server in this
    /// process, which is as new as the process.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        let mut parts: Vec<&[u8]> = Vec::new();
        match self {
            Self::Command(command) => {
                parts.extend([b"command".as_slice(), command.program.as_encoded_bytes()]);
                let cwd = command.cwd.as_ref().map(|cwd| cwd.as_os_str());
                parts.push(cwd.map_or(b"", |cwd| cwd.as_encoded_bytes()));
                parts.extend(command.args.iter().map(|arg| arg.as_encoded_bytes()));
                // Arguments and variables are not taken for each other.
                parts.push(b"\0");
                for (name, value) in &command.env {
                    parts.extend([name.as_encoded_bytes(), value.as_encoded_bytes()]);
                }
            }
            Self::Url { url, settings } => {
                parts.extend([b"url".as_slice(), url.as_bytes()]);
                for (name, value) in settings.headers.iter() {
                    parts.extend([name.as_bytes(), value]);
                }
            }
            Self::Local(_) => return None,
        }
        Some(digest(parts))
    }
}

/// A digest that tells one list of texts from another.
pub(crate) fn digest<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    let bytes = hash.finalize();
    bytes[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{}`", command.name),
            Self::Url { url, .. } => write!(f, "`{}`", shown(url)),
            Self::Local(_) => f.write_str("a server in this process"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither the arguments of a program nor the query of an address are shown or kept.
    #[test]
    fn secrets_of_a_target_are_left_out() {
        let command = |secret| {
            let command = ChildCommand::new("serve").with_args(["--token", secret]);
            Target::Command(command)
        };
        let url = |secret| Target::url(format!("https://host/mcp?key={secret}"));
        for make in [command as fn(&'static str) -> Target, url] {
            let (one, other) = (make("canary-1"), make("canary-2"));
            for text in [one.key(), one.to_string()] {
                assert!(!text.contains("canary"), "{text}");
            }
            assert_ne!(one.key(), other.key());
            assert_eq!(one.key(), make("canary-1").key());
        }
    }

    /// Whatever makes another server of it makes another fingerprint, in which nothing can be read.
    #[test]
    fn fingerprints_tell_servers_apart() {
        let command = || ChildCommand::new("serve").with_args(["a"]);
        let mut elsewhere = command();
        elsewhere.cwd = Some("/tmp".into());
        let mut known = HttpSettings::default();
        known.headers.insert("x-key", "canary").unwrap();
        let targets = [
            Target::Command(command()),
            Target::Command(command().with_args(["b"])),
            Target::Command(command().with_env("b", "")),
            Target::Command(command().with_env("KEY", "canary")),
            Target::Command(elsewhere),
            Target::url("https://host/mcp"),
            Target::url("https://host/mcp?key=canary"),
            Target::Url {
                url: String::from("https://host/mcp"),
                settings: Box::new(known),
            },
        ];
        let fingerprints: Vec<String> = targets.iter().filter_map(Target::fingerprint).collect();
        let different: std::collections::BTreeSet<&String> = fingerprints.iter().collect();
        assert_eq!(different.len(), targets.len(), "{fingerprints:?}");
        assert!(!fingerprints.concat().contains("canary"));
        assert_eq!(
            targets[0].fingerprint(),
            Target::Command(command()).fingerprint()
        );
    }
}
