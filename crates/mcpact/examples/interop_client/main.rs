//! The client that `cargo xtask interop` sends to servers on other SDKs.
//!
//! ```text
//! interop_client --mode auto|legacy|modern|REVISION --script JSON (--url URL | --stdio COMMAND ARGS...)
//! ```
//!
//! The script says what this server has to show each feature with. Every feature gives one line of
//! JSON: whether it works, is absent (not offered, and why) or fails.

mod arguments;
mod feature;
mod peer;
mod script;
mod walk;

use std::process::ExitCode;
use std::time::Duration;

use mcpact::client::ClientError;
use serde_json::json;

use arguments::Arguments;
use feature::{FEATURES, Feature, Outcome};
use peer::Peer;

/// How long one feature may take.
const PATIENCE: Duration = Duration::from_secs(15);

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the runner shows what a client says")]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(2);
        }
    };
    let script = arguments.script;
    let connecting = Peer::connect(arguments.target, arguments.mode, &script.root);
    let peer = match limited(connecting).await {
        Ok(peer) => peer,
        Err(why) => {
            say(Feature::Negotiate, &Outcome::Fails(why));
            return ExitCode::FAILURE;
        }
    };
    say(Feature::Negotiate, &Outcome::Works(peer.revision()));
    for feature in FEATURES {
        let outcome = limited(async { Ok(walk::show(feature, &script, &peer).await) });
        let outcome = outcome.await.unwrap_or_else(Outcome::Fails);
        say(feature, &outcome);
    }
    peer.leave().await;
    ExitCode::SUCCESS
}

/// What comes of it, unless it takes too long.
async fn limited<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("no result within {} seconds", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, work).await.map_err(late)?
}

#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn say(feature: Feature, outcome: &Outcome) {
    let (word, note) = outcome.told();
    println!(
        "{}",
        json!({ "feature": feature.as_str(), "outcome": word, "note": note })
    );
}

/// An error with all of its causes in one line.
fn whole(error: ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.replace('\n', " ")
}
