//! One URL for clients of both eras: `initialize` opens a session, modern requests are stateless. Clients of
//! 2024-11-05 use the HTTP+SSE transport at `/sse`.
//!
//! `cargo run --example http_server` prints its URL and serves until Ctrl-C.

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
#[expect(clippy::print_stdout, reason = "prints its URL")]
async fn main() -> Result<(), mcpact::Error> {
    let listening = server().listen(([127, 0, 0, 1], 0).into()).await?;
    println!("{}", listening.url());
    let stop = async {
        // Without signal support the process must be killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    listening.run(stop).await
}
