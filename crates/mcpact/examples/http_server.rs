//! One address for clients of both eras: an `initialize` opens a session, a request with metadata of
//! its own is served alone. 2024-11-05 clients find their transport at `/sse`.
//!
//! `cargo run --example http_server` prints its address and serves until Ctrl-C.

use mcpact::server::{Context, NoArgs, Server};

pub(crate) fn server() -> Server {
    Server::new("both", "1.0.0")
        .settings(|settings| settings.http_sse = true)
        .tool(
            "era",
            "Tells the era of its client",
            |_: NoArgs, context: Context| async move { Ok(context.pact().era().as_str()) },
        )
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "its address is what people want to know"
)]
async fn main() -> Result<(), mcpact::Error> {
    let listening = server().listen(([127, 0, 0, 1], 0).into()).await?;
    println!("{}", listening.url());
    let stop = async {
        // Without signals there is nothing to wait for; the process ends by force.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    listening.run(stop).await
}
