//! Host names and origins that clients may use.

use std::net::{Ipv6Addr, SocketAddr};

/// Hint for a non-ASCII host name.
const ASCII_HOST: &str = "use the ASCII form that clients send, such as `xn--bcher-kva.example`";

/// Source of the accepted host names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowHostsSource {
    /// Key of the config.
    InConfig,
    /// Command line arguments.
    AsArguments,
}

/// Warning and hint if other hosts can reach an address, but no host name is accepted. A specific IP address is
/// accepted by itself.
#[must_use]
pub fn missing_host_warning(
    address: SocketAddr,
    hosts: &[String],
    given: AllowHostsSource,
) -> Option<(String, String)> {
    if !address.ip().to_canonical().is_unspecified() || !hosts.is_empty() {
        return None;
    }
    let (setting, example) = match given {
        AllowHostsSource::InConfig => ("allow_hosts", "allow_hosts = [\"mcp.example\"]"),
        AllowHostsSource::AsArguments => ("--allow-host", "--allow-host mcp.example"),
    };
    let message = format!("other hosts can reach `{address}`, but get 403 without `{setting}`");
    let remedy = format!("list the host names and addresses that clients use, such as `{example}`");
    Some((message, remedy))
}

/// Hint if a text is not a host name or IP address without port, scheme and path.
#[must_use]
pub fn host_problem(text: &str) -> Option<&'static str> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = !text.is_empty() && !text.ends_with('.') && text.chars().all(is_usual);
    if is_name || text.parse::<Ipv6Addr>().is_ok() {
        None
    } else if text.is_ascii() {
        Some("use a host name or IP address without port, such as `mcp.example`")
    } else {
        Some(ASCII_HOST)
    }
}

/// Hint if a text is not an origin in the form that browsers send.
#[must_use]
pub fn origin_problem(text: &str) -> Option<&'static str> {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    match host {
        Some(_) if !text.is_ascii() => Some(ASCII_HOST),
        Some(host) if !host.is_empty() && !host.contains(['/', '*', '@']) => None,
        Some(_) | None => Some("use scheme, host and port, such as `https://app.example`"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ASCII_HOST, AllowHostsSource, host_problem, missing_host_warning, origin_problem};

    /// A specific listen address is accepted as host.
    #[test]
    fn specific_listen_address_is_accepted() {
        let told = |address: &str, hosts: &[String]| {
            missing_host_warning(address.parse().unwrap(), hosts, AllowHostsSource::InConfig)
                .is_some()
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
    fn hosts_have_no_port_scheme_or_path() {
        for good in ["mcp.example", "a_b-1", "10.0.0.1", "fd00::1", "::1"] {
            assert_eq!(host_problem(good), None, "{good}");
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
            assert!(host_problem(bad).is_some(), "{bad}");
        }
        let hint = host_problem("a b").unwrap();
        assert!(hint.starts_with("use a host name or IP address"), "{hint}");
        assert_eq!(host_problem("b\u{fc}cher.example"), Some(ASCII_HOST));
    }

    #[test]
    fn origins_have_the_form_that_browsers_send() {
        for good in [
            "https://app.example",
            "http://[::1]:3000",
            "https://xn--bcher-kva.example",
        ] {
            assert_eq!(origin_problem(good), None, "{good}");
        }
        for bad in [
            "app.example",
            "https://",
            "https://a/b",
            "https://*.a",
            "https://a@b",
        ] {
            assert!(
                origin_problem(bad).unwrap().starts_with("use scheme"),
                "{bad}"
            );
        }
        assert_eq!(
            origin_problem("https://b\u{fc}cher.example"),
            Some(ASCII_HOST)
        );
    }
}
