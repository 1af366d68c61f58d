//! Our reference server behind a bridge.

use std::path::Path;
use std::process::Command;

use mcpact_spec::{Era, Revision};

use super::leg::Leg;
use super::suite::Suite;
use crate::failure::Failure;
use crate::listening::Listening;

/// A bridge and, where it does not start it itself, the server behind it.
pub(super) struct Bridged {
    pub(super) front: Listening,
    _back: Option<Listening>,
}

impl Bridged {
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
        let mut bridge = Command::new(binary);
        // What is learned about a server must not outlive the run.
        bridge.env("XDG_CACHE_HOME", suite.log("cache"));
        bridge.args(["bridge", "--listen", "127.0.0.1:0"]);
        let back = if leg == Leg::BridgeStdio {
            bridge.arg("--").arg(binary).args(server);
            None
        } else {
            let mut command = Command::new(binary);
            command.args(server).args(["--listen", "127.0.0.1:0"]);
            let log = suite.log(&format!("{leg}-back"));
            let back = Listening::start("mcpact everything", command, &log)?;
            bridge.arg(back.url());
            Some(back)
        };
        let log = suite.log(&format!("{leg}-front"));
        let front = Listening::start("mcpact bridge", bridge, &log)?;
        Ok(Self { front, _back: back })
    }
}
