//! Upstream target: a command, a URL or a server in this process.

use std::borrow::Cow;
use std::fmt;

use mcpact_config::{query_values, with_words};
use mcpact_transport::address::shown;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::{ChildCommand, StartCheck};
use sha2::{Digest, Sha256};

/// Upstream server.
#[derive(Clone, Debug)]
pub enum Target {
    /// Program on stdio.
    Command(Box<ChildCommand>),
    /// HTTP server.
    Url {
        /// Endpoint.
        url: String,
        /// Settings of the HTTP client.
        settings: Box<HttpSettings>,
    },
    /// Server in this process.
    Local(Local),
}

/// Factory of links to servers in this process.
#[derive(Clone)]
pub struct Local(pub std::sync::Arc<dyn Fn() -> Link + Send + Sync>);

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local(..)")
    }
}

impl Target {
    /// Returns an HTTP target with default settings.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url {
            url: url.into(),
            settings: Box::default(),
        }
    }

    /// Returns the target with this check of each start of its program.
    pub(crate) fn with_start_check(&self, start_check: Option<StartCheck>) -> Cow<'_, Self> {
        match (self, start_check) {
            (Self::Command(command), Some(start_check)) => {
                let start_check = Some(start_check);
                Cow::Owned(Self::Command(Box::new(ChildCommand {
                    start_check,
                    ..(**command).clone()
                })))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns the display name: the configured name, followed by the target if that differs.
    pub(crate) fn display_name(&self, name: Option<&str>) -> String {
        let itself = self.to_string();
        match name.map(|name| format!("`{name}`")) {
            Some(name) if name != itself => format!("{name}: {itself}"),
            Some(_) | None => itself,
        }
    }

    /// Returns true if requests carry an `Authorization` header.
    pub(crate) fn has_credentials(&self) -> bool {
        let Self::Url { settings, .. } = self else {
            return false;
        };
        let mut names = settings.headers.iter().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// Returns the secrets that an HTTP server receives and may repeat: header values and query values.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let Self::Url { url, settings } = self else {
            return Vec::new();
        };
        let values = settings.headers.iter().map(|(_, value)| value);
        let values = values.map(|value| String::from_utf8_lossy(value).into_owned());
        with_words(values.chain(query_values(url).map(str::to_owned)).collect())
    }

    /// Returns the key of cached era verdicts. Arguments and queries may be secrets, so the key has only their digest.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Command(command) => {
                let args = command.args.iter().map(|arg| arg.as_encoded_bytes());
                format!("command {} {}", command.name, digest(args))
            }
            Self::Url { url, settings } => {
                let endpoint = endpoint(url, settings);
                format!("url {} {}", shown(&endpoint), digest([endpoint.as_bytes()]))
            }
            Self::Local(_) => String::from("local"),
        }
    }

    /// Returns a digest of everything that identifies the server, secrets included; none for a server in this process.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        let mut parts: Vec<&[u8]> = Vec::new();
        match self {
            Self::Command(command) => {
                parts.extend([b"command".as_slice(), command.program.as_encoded_bytes()]);
                let cwd = command.cwd.as_ref().map(|cwd| cwd.as_os_str());
                parts.push(cwd.map_or(b"", |cwd| cwd.as_encoded_bytes()));
                parts.extend(command.args.iter().map(|arg| arg.as_encoded_bytes()));
                // Separates arguments from variables.
                parts.push(b"\0");
                for (name, value) in &command.env {
                    parts.extend([name.as_encoded_bytes(), value.as_encoded_bytes()]);
                }
            }
            Self::Url { url, settings } => {
                parts.extend([b"url".as_slice(), url.as_bytes()]);
                let socket = settings.unix_socket.as_ref();
                parts.extend(socket.map(|path| path.as_os_str().as_encoded_bytes()));
                for (name, value) in settings.headers.iter() {
                    parts.extend([name.as_bytes(), value]);
                }
            }
            Self::Local(_) => return None,
        }
        Some(digest(parts))
    }
}

/// Returns the URL of an endpoint, which over a Unix socket starts with its path.
fn endpoint<'a>(url: &'a str, settings: &HttpSettings) -> Cow<'a, str> {
    match &settings.unix_socket {
        None => Cow::Borrowed(url),
        Some(socket) => {
            let path = url.strip_prefix("http://localhost").unwrap_or(url);
            Cow::Owned(format!("unix:{}:{path}", socket.display()))
        }
    }
}

/// Returns a short digest of a list of texts.
pub(crate) fn digest<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..8])
}

/// Returns the bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{}`", command.name),
            Self::Url { url, settings } => write!(f, "`{}`", shown(&endpoint(url, settings))),
            Self::Local(_) => f.write_str("a built-in server"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and display names contain neither arguments nor queries.
    #[test]
    fn keys_and_names_contain_no_secrets() {
        let command = |secret| {
            let command = ChildCommand::new("serve").with_args(["--token", secret]);
            Target::Command(Box::new(command))
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

    /// Fingerprints differ for different targets and contain no secrets.
    #[test]
    fn fingerprints_of_different_targets_differ() {
        let command = || ChildCommand::new("serve").with_args(["a"]);
        let mut elsewhere = command();
        elsewhere.cwd = Some("/tmp".into());
        let mut known = HttpSettings::default();
        known.headers.insert("x-key", "canary").unwrap();
        let targets = [
            Target::Command(Box::new(command())),
            Target::Command(Box::new(command().with_args(["b"]))),
            Target::Command(Box::new(command().with_env("b", ""))),
            Target::Command(Box::new(command().with_env("KEY", "canary"))),
            Target::Command(Box::new(elsewhere)),
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
            Target::Command(Box::new(command())).fingerprint()
        );
    }
}
