//! Errors of commands that edit configs.

use std::path::PathBuf;

use mcpact_config::NameError;
use mcpact_config::install::TokenUnreachable;

/// Error of `mcpact install`, `add` or `remove`. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// The gateway reads the file that is to be edited.
    #[error("the gateway reads `{}` itself", .0.display())]
    OwnConfig(PathBuf),
    /// The gateway has no fixed address.
    #[error("the gateway has no fixed address for server entries")]
    NoAddress,
    /// The client cannot refer to the token.
    #[error(transparent)]
    Token(#[from] TokenUnreachable),
    /// The client has no install to undo.
    #[error("nothing to undo: mcpact has not changed `{}`", .0.display())]
    NothingToUndo(PathBuf),
    /// The file changed since the install.
    #[error("`{}` has changed since mcpact was installed", .file.display())]
    Changed {
        file: PathBuf,
        /// Copy of the original, if there was one.
        backup: Option<PathBuf>,
    },
    /// The backup is missing or was changed.
    #[error("the backup `{}` is missing or has changed", .0.display())]
    Backup(PathBuf),
    /// The config is not written in TOML.
    #[error("cannot edit `{}`: not a TOML file", .0.display())]
    NotToml(PathBuf),
    /// A name is not valid for a server.
    #[error("invalid name `{given}`")]
    Name {
        given: String,
        #[source]
        source: NameError,
    },
    /// The name is taken.
    #[error("`{}` already has a server `{name}`", .file.display())]
    ServerExists { name: String, file: PathBuf },
    /// The source of a server is none of the known forms.
    #[error("invalid source `{given}`")]
    Source { given: String },
    /// A file does not describe a server that can be added.
    #[error("cannot add the server of `{}`: {reason}", .file.display())]
    ServerJson {
        file: PathBuf,
        reason: String,
        hint: String,
    },
    /// A value cannot be written.
    #[error("{reason}")]
    Value { reason: String, hint: String },
}

impl EditError {
    /// Returns the hints, each without a final period.
    pub(super) fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![String::from(hint)];
        match self {
            Self::OwnConfig(file) => vec![
                format!("copy its servers with `mcpact import {}`", file.display()),
                String::from("then pass the new config: `--config mcpact.toml`"),
            ],
            Self::NoAddress => one("set `listen` in `[gateway]` to an address with a port"),
            Self::Token(_) => {
                one("save the token in a file, and write `token = \"${file:PATH}\"` in `[gateway]`")
            }
            Self::Changed { backup, .. } => {
                let original = backup.iter();
                let original = original.map(|path| format!("the original is `{}`", path.display()));
                let by_hand = String::from("remove the entry by hand");
                std::iter::once(by_hand).chain(original).collect()
            }
            Self::Backup(_) => one("remove the entry by hand"),
            Self::NotToml(file) => vec![
                format!(
                    "create a mcpact.toml with `mcpact import {}`",
                    file.display()
                ),
                String::from("or pass a TOML file: `--config mcpact.toml`"),
            ],
            Self::Name { .. } => one("use at most 40 ASCII letters, digits, `-` and `_`"),
            Self::ServerExists { .. } => one("pass `--force` to replace it, or use another name"),
            Self::Source { .. } => vec![
                String::from("pass a URL, npm:PACKAGE, pypi:PACKAGE or a server.json"),
                String::from("or a command after `--`: `mcpact add NAME -- COMMAND`"),
            ],
            Self::ServerJson { hint, .. } | Self::Value { hint, .. } => one(hint),
            Self::NothingToUndo(_) => Vec::new(),
        }
    }
}
