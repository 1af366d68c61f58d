//! One side of the protocol under test: what is built, started and handed to the suite.

use std::fmt;
use std::path::Path;

use mcpact_spec::{Era, Revision};
use serde::Deserialize;

use super::bridged::Bridged;
use super::score::Score;
use super::server;
use super::suite::Suite;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::build;
use crate::report;

const CLIENT_SOURCE: &str = "crates/mcpact/examples/conformance_client.rs";
const BUILD_SERVER: &[&str] = &["-p", "mcpact-cli", "--bin", "mcpact"];
const BUILD_CLIENT: &[&str] = &["-p", "mcpact", "--example", "conformance_client"];

/// The side of the protocol that is ours while the suite plays the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Leg {
    /// The suite calls our server.
    Server,
    /// The suite starts our client.
    Client,
    /// The suite calls our server of the other era through a bridge that starts it.
    BridgeStdio,
    /// The suite calls our server of the other era through a bridge that reaches it by HTTP.
    BridgeHttp,
    /// The suite calls our server of the same revision through a bridge.
    BridgeSame,
    /// The suite of the modern revision calls our legacy server at its own endpoint of a gateway that starts it.
    ServeOne,
    /// The same at the endpoint for all servers, with flat names.
    ServeAll,
}

impl Leg {
    /// All of them, in the order in which they run.
    pub(super) const ALL: [Self; 7] = [
        Self::Server,
        Self::Client,
        Self::BridgeStdio,
        Self::BridgeHttp,
        Self::BridgeSame,
        Self::ServeOne,
        Self::ServeAll,
    ];

    /// Name in our output.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::BridgeStdio => "bridge-stdio",
            Self::BridgeHttp => "bridge-http",
            Self::BridgeSame => "bridge-same",
            Self::ServeOne => "serve-one",
            Self::ServeAll => "serve-all",
        }
    }

    /// Name that the suite uses for the tested side.
    pub(super) const fn role(self) -> &'static str {
        match self {
            Self::Client => "client",
            _ => "server",
        }
    }

    /// Returns `true` if the leg runs the scenarios of this revision.
    fn covers(self, revision: Revision) -> bool {
        match self {
            Self::ServeOne | Self::ServeAll => revision.era() == Era::Modern,
            _ => true,
        }
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Result of a leg that did not fail.
pub(super) enum Run {
    Done(Vec<Score>),
    Skipped(String),
}

/// Builds our side and runs the suite against it.
pub(super) fn run(
    leg: Leg,
    checkout: &Checkout,
    suite: &Suite,
    revisions: &[Revision],
) -> Result<Run, Failure> {
    match leg {
        Leg::Server => own_server(checkout, suite, revisions).map(Run::Done),
        Leg::Client if !checkout.path(CLIENT_SOURCE).is_file() => {
            Ok(Run::Skipped(format!("`{CLIENT_SOURCE}` does not exist")))
        }
        Leg::Client => own_client(checkout, suite, revisions).map(Run::Done),
        _ => through_gateway(leg, checkout, suite, revisions).map(Run::Done),
    }
}

fn through_gateway(
    leg: Leg,
    checkout: &Checkout,
    suite: &Suite,
    revisions: &[Revision],
) -> Result<Vec<Score>, Failure> {
    let binary = build(checkout, BUILD_SERVER)?;
    let one = |revision: &Revision| {
        announce(leg, *revision);
        let mut bridge = Bridged::start(leg, &binary, suite, *revision)?;
        let url = server::by_name(&bridge.url());
        let score = suite.run(leg, *revision, &["--url", &url])?;
        bridge.front.must_still_run()?;
        Ok(score)
    };
    let covered = revisions.iter().filter(|revision| leg.covers(**revision));
    covered.map(one).collect()
}

/// Runs the server leg against a server that is already running.
pub(super) fn against(
    suite: &Suite,
    url: &str,
    revisions: &[Revision],
) -> Result<Vec<Score>, Failure> {
    let one = |revision: &Revision| {
        announce(Leg::Server, *revision);
        suite.run(Leg::Server, *revision, &["--url", url])
    };
    revisions.iter().map(one).collect()
}

fn own_server(
    checkout: &Checkout,
    suite: &Suite,
    revisions: &[Revision],
) -> Result<Vec<Score>, Failure> {
    let binary = build(checkout, BUILD_SERVER)?;
    let mut server = server::start(&binary, &suite.log("mcpact-everything"))?;
    let scores = against(suite, &server::by_name(server.url()), revisions)?;
    server.must_still_run()?;
    Ok(scores)
}

fn own_client(
    checkout: &Checkout,
    suite: &Suite,
    revisions: &[Revision],
) -> Result<Vec<Score>, Failure> {
    let binary = build(checkout, BUILD_CLIENT)?;
    let command = shell_word(&binary);
    let one = |revision: &Revision| {
        announce(Leg::Client, *revision);
        suite.run(Leg::Client, *revision, &["--command", &command])
    };
    revisions.iter().map(one).collect()
}

fn announce(leg: Leg, revision: Revision) {
    report::say(format_args!(
        "running the {leg} scenarios of {}",
        revision.as_str()
    ));
}

/// The suite hands the command to a shell, which would break the path at a blank.
fn shell_word(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::shell_word;

    #[test]
    fn a_path_stays_one_word() {
        assert_eq!(shell_word(Path::new("/a b/c")), "\"/a b/c\"");
    }
}
