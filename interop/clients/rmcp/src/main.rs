//! A client on rmcp, which knows both eras: walks through all features of the reference server.

mod ear;
mod peer;
mod report;
mod walk;

use crate::peer::Peer;
use crate::report::Invocation;
use crate::walk::Walk;

#[tokio::main]
async fn main() -> Result<(), report::Trouble> {
    let given = Invocation::read(std::env::args().skip(1))?;
    match Peer::connect(&given).await {
        Ok(peer) => Walk::new(peer, given.revision()).all().await,
        Err(trouble) => report::tell("negotiate", &Err(trouble)),
    }
}
