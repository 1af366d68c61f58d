//! The names by which other machines call whoever listens.

use std::net::SocketAddr;

/// Where the names are given that are answered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostsGiven {
    /// By a key of the config.
    InConfig,
    /// By arguments of the command.
    AsArguments,
}

/// Other machines reach an address, but by no name that is answered to there: what that means, and what to do.
#[must_use]
pub fn namelessness(
    address: SocketAddr,
    hosts: &[String],
    given: HostsGiven,
) -> Option<(String, String)> {
    if address.ip().is_loopback() || !hosts.is_empty() {
        return None;
    }
    let (setting, example) = match given {
        HostsGiven::InConfig => ("allow_hosts", "allow_hosts = [\"mcp.example\"]"),
        HostsGiven::AsArguments => ("--allow-host", "--allow-host mcp.example"),
    };
    let message = format!("other machines can reach `{address}`, but get 403 without `{setting}`");
    let remedy = format!("say by which names and addresses clients call it, such as `{example}`");
    Some((message, remedy))
}
