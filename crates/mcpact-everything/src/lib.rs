//! The reference server: every feature of every revision, built with the library only.
//!
//! It is the demo, a test fixture, and the subject of the official conformance suite, which calls tools by these names.
//! One set of tools serves both eras: a tool that requests input is a single handler.

mod app;
mod cancellation;
mod input;
mod media;
mod plain;
mod prompts;
mod resources;
mod skills;
mod tasks;

use mcpact::server::Server;
use mcpact_spec::Revision;

/// The reference server, restricted to these revisions.
#[must_use]
pub fn server(revisions: &[Revision]) -> Server {
    let server = Server::new("mcpact-everything", env!("CARGO_PKG_VERSION"))
        .instructions("Every feature of the protocol, for tests and demonstrations.")
        .revisions(revisions)
        .logging();
    let server = plain::register(server);
    let server = input::register(server);
    let server = cancellation::register(server);
    let server = tasks::register(server);
    let server = resources::register(server);
    let server = skills::register(server);
    let server = app::register(server);
    prompts::register(server)
}
