//! Client that `cargo xtask interop` runs against servers of other SDKs.
//!
//! ```text
//! interop_client --mode auto|legacy|modern|REVISION --script JSON (--url URL | --stdio COMMAND ARGS...)
//! ```
//!
//! The script tells how to exercise each feature of this server. Each feature prints one line of JSON: whether it
//! works, is absent (not offered, and why) or fails.

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

/// Timeout of one feature.
const FEATURE_TIMEOUT: Duration = Duration::from_secs(15);

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the runner shows stderr")]
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
    let peer = match with_timeout(connecting).await {
        Ok(peer) => peer,
        Err(why) => {
            print(Feature::Negotiate, &Outcome::Fails(why));
            return ExitCode::FAILURE;
        }
    };
    print(Feature::Negotiate, &Outcome::Works(peer.revision()));
    for feature in FEATURES {
        let outcome = with_timeout(async { Ok(walk::exercise(feature, &script, &peer).await) });
        let outcome = outcome.await.unwrap_or_else(Outcome::Fails);
        print(feature, &outcome);
    }
    peer.leave().await;
    ExitCode::SUCCESS
}

/// Limits the duration of a future.
async fn with_timeout<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("no result within {} seconds", FEATURE_TIMEOUT.as_secs());
    tokio::time::timeout(FEATURE_TIMEOUT, work)
        .await
        .map_err(late)?
}

#[expect(clippy::print_stdout, reason = "prints its result")]
fn print(feature: Feature, outcome: &Outcome) {
    let (word, note) = outcome.status_and_note();
    println!(
        "{}",
        json!({ "feature": feature.as_str(), "outcome": word, "note": note })
    );
}

/// Formats an error and its causes in one line.
fn with_causes(error: ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.replace('\n', " ")
}
