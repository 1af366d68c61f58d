//! Our reference server behind a bridge or a gateway.

use std::fs;
use std::path::Path;
use std::process::Command;

use mcpact_spec::{Era, Revision};

use super::leg::Leg;
use super::suite::Suite;
use crate::failure::Failure;
use crate::listening::Listening;

/// A bridge or a gateway and, where it does not start it itself, the server behind it.
pub(super) struct Bridged {
    leg: Leg,
    pub(super) front: Listening,
    _back: Option<Listening>,
}

impl Bridged {
    /// URL for the suite.
    pub(super) fn url(&self) -> String {
        let url = self.front.url();
        match self.leg {
            Leg::ServeOne => url.replacen("/mcp", "/servers/one/mcp", 1),
            _ => url.to_owned(),
        }
    }

    /// Starts the bridge and the server for the scenarios of `revision`.
    pub(super) fn start(
        leg: Leg,
        binary: &Path,
        suite: &Suite,
        revision: Revision,
    ) -> Result<Self, Failure> {
        let behind = match (leg, revision.era()) {
            (Leg::BridgeSame, _) => revision,
            (_, Era::Legacy) => Revision::newest(Era::Modern),
            (_, Era::Modern) => Revision::newest(Era::Legacy),
        };
        let server = ["everything", "--revisions", behind.as_str()];
        let mut front = Command::new(binary);
        // What is learned about a server must not outlive the run.
        front.env("XDG_CACHE_HOME", suite.log("cache"));
        let mut back = None;
        match leg {
            Leg::ServeOne | Leg::ServeAll => {
                let config = suite.log(&format!("{leg}-config")).with_extension("toml");
                let text = format!(
                    "[gateway]\nnames = \"flat\"\n\
                     [servers.one]\ncommand = {binary:?}\nargs = {server:?}\n"
                );
                fs::write(&config, text).map_err(Failure::file(&config))?;
                front.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
                front.arg(config);
            }
            Leg::BridgeStdio => {
                front.args(["bridge", "--listen", "127.0.0.1:0", "--"]);
                front.arg(binary).args(server);
            }
            _ => {
                let mut command = Command::new(binary);
                command.args(server).args(["--listen", "127.0.0.1:0"]);
                let log = suite.log(&format!("{leg}-back"));
                let started = Listening::start("mcpact everything", command, &log)?;
                front.args(["bridge", "--listen", "127.0.0.1:0", started.url()]);
                back = Some(started);
            }
        }
        let log = suite.log(&format!("{leg}-front"));
        let front = Listening::start("mcpact", front, &log)?;
        Ok(Self {
            leg,
            front,
            _back: back,
        })
    }
}
