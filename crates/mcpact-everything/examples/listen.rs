//! Serves the reference server on a free port; for trying things out.

use mcpact_spec::Revision;

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    let listening = mcpact_everything::server(&Revision::ALL)
        .listen(([127, 0, 0, 1], 7777).into())
        .await?;
    listening.run(std::future::pending()).await
}
