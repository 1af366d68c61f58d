//! Errors of targets.

use std::path::PathBuf;

use mcpact_config::ApprovalKind;
use mcpact_transport::error::TransportError;

use crate::error::suggestions;

/// Error of a target.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// Neither a target nor a command is given.
    #[error("missing target")]
    Missing,
    /// A target and a command are given.
    #[error("unexpected argument `{given}`: the target is the command `{command}` after `--`")]
    Twice { given: String, command: String },
    /// The target is neither a URL nor a name.
    #[error("invalid target `{given}`: neither an HTTP URL nor a server name")]
    Invalid { given: String },
    /// An argument follows the target.
    #[error("unexpected argument `{given}`")]
    ExtraArgument { given: String },
    /// `--config` is given for a URL or command.
    #[error("`--config {}` selects a server by its name, but no name is given", .0.display())]
    UnusedConfig(PathBuf),
    /// There is no config for a name.
    #[error("unknown target `{given}`: no config found in this directory or its parents")]
    NoConfig { given: String },
    /// The config has no such server.
    #[error("unknown server `{given}` in `{}`", .file.display())]
    Unknown {
        given: String,
        file: PathBuf,
        known: Vec<String>,
    },
    /// The settings of the server are invalid.
    #[error("server `{given}` in `{}` is unusable: {reason}", .file.display())]
    Unusable {
        given: String,
        file: PathBuf,
        reason: String,
    },
    /// The user has not approved the launch.
    #[error("server `{name}`: {}", .kind.refused())]
    NotApproved { name: String, kind: ApprovalKind },
    /// A header or the proxy is invalid.
    #[error("server `{name}` cannot be set up")]
    Settings {
        name: String,
        #[source]
        source: TransportError,
    },
    /// A filter of the config would not apply.
    #[error("`bridge` cannot apply the tool filter of server `{name}`")]
    Filtered { name: String, file: PathBuf },
}

impl TargetError {
    /// Returns the hints.
    pub(crate) fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![String::from(hint)];
        match self {
            Self::Invalid { given } if !given.contains("://") => {
                vec![format!("for a URL, write `http://{given}`")]
            }
            Self::Missing | Self::Invalid { .. } => [
                "pass a URL, such as `https://tickets.example/mcp`",
                "or the name of a server in the config",
                "or a command after `--`, such as `-- npx -y some-server`",
            ]
            .map(String::from)
            .to_vec(),
            Self::Twice { .. } => one("remove one of them"),
            Self::ExtraArgument { given } => {
                vec![format!("for a command, write `--` before it: `-- {given}`")]
            }
            Self::UnusedConfig(_) => one("pass the name of a server, or remove `--config`"),
            Self::NoConfig { given } => vec![
                format!("for a command, write `-- {given}`"),
                String::from("for a server name, pass `--config FILE`"),
            ],
            Self::Unknown { given, known, .. } => {
                let mut hints = match known.as_slice() {
                    [] => one("the config has no servers"),
                    known => suggestions(given, known, "servers"),
                };
                hints.push(format!("for a command, write `-- {given}`"));
                hints
            }
            Self::Unusable { file, .. } => vec![format!(
                "run `mcpact check {}` to see the cause with its line",
                file.display()
            )],
            Self::NotApproved { name, .. } => {
                vec![format!(
                    "review and approve it with `mcpact approve {name}`"
                )]
            }
            Self::Settings { .. } => one("correct the config"),
            Self::Filtered { file, .. } => vec![format!(
                "run `mcpact serve --config {}`, which applies it",
                file.display()
            )],
        }
    }
}
