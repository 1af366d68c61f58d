//! The names by which other machines call whoever listens.

use std::net::{Ipv6Addr, SocketAddr};

/// What a host looks like that somebody can be asked for by, for whoever wrote another one.
const HOST: &str = "a name or an IP address alone is needed, such as `mcp.example`";

/// What to do about a name that has other letters than those which clients and browsers send.
const ASCII_HOST: &str =
    "write the name in its ASCII form, as clients send it, such as `xn--bcher-kva.example`";

/// Where the names are given that are answered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostsGiven {
    /// By a key of the config.
    InConfig,
    /// By arguments of the command.
    AsArguments,
}

/// Other machines reach an address, but by no name that is answered to there: what that means, and what to do. One address
/// alone is a name by itself.
#[must_use]
pub fn namelessness(
    address: SocketAddr,
    hosts: &[String],
    given: HostsGiven,
) -> Option<(String, String)> {
    if !address.ip().to_canonical().is_unspecified() || !hosts.is_empty() {
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

/// Whether a text is a name or an address of a host alone: one with a port, a scheme or a path would never be equal to
/// what clients call the host.
#[must_use]
pub fn is_host(text: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = !text.is_empty() && !text.ends_with('.') && text.chars().all(is_usual);
    is_name || text.parse::<Ipv6Addr>().is_ok()
}

/// What to do about a text that is no host.
#[must_use]
pub const fn host_remedy(text: &str) -> &'static str {
    match text.is_ascii() {
        true => HOST,
        false => ASCII_HOST,
    }
}

/// What is wrong with an origin: it is one only as browsers send it, or else would never be equal to theirs.
#[must_use]
pub fn origin_fault(text: &str) -> Option<&'static str> {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    match host {
        Some(_) if !text.is_ascii() => Some(ASCII_HOST),
        Some(host) if !host.is_empty() && !host.contains(['/', '*', '@']) => None,
        Some(_) | None => Some("scheme, host and port are needed, such as `https://app.example`"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ASCII_HOST, HOST, HostsGiven, host_remedy, is_host, namelessness, origin_fault};

    /// Whoever listens on one address is called by it, and nobody is turned away.
    #[test]
    fn one_address_is_a_name_by_itself() {
        let told = |address: &str, hosts: &[String]| {
            namelessness(address.parse().unwrap(), hosts, HostsGiven::InConfig).is_some()
        };
        for (address, is_told) in [
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("[::ffff:0.0.0.0]:1", true),
            ("192.0.2.7:1", false),
            ("127.0.0.1:1", false),
        ] {
            assert_eq!(told(address, &[]), is_told, "{address}");
            assert!(!told(address, &[String::from("mcp.example")]), "{address}");
        }
    }

    #[test]
    fn hosts_are_names_and_addresses_alone() {
        for good in ["mcp.example", "a_b-1", "10.0.0.1", "fd00::1", "::1"] {
            assert!(is_host(good), "{good}");
        }
        for bad in [
            "",
            "mcp.example:80",
            "http://mcp.example",
            "*.example",
            "[::1]",
            "a b",
            "a.",
            "a/b",
            "b\u{fc}cher.example",
        ] {
            assert!(!is_host(bad), "{bad}");
        }
        assert_eq!(host_remedy("a b"), HOST);
        assert_eq!(host_remedy("b\u{fc}cher.example"), ASCII_HOST);
    }

    #[test]
    fn origins_are_what_browsers_send() {
        for good in [
            "https://app.example",
            "http://[::1]:3000",
            "https://xn--bcher-kva.example",
        ] {
            assert_eq!(origin_fault(good), None, "{good}");
        }
        for bad in [
            "app.example",
            "https://",
            "https://a/b",
            "https://*.a",
            "https://a@b",
        ] {
            assert!(origin_fault(bad).unwrap().starts_with("scheme"), "{bad}");
        }
        assert_eq!(
            origin_fault("https://b\u{fc}cher.example"),
            Some(ASCII_HOST)
        );
    }
}
