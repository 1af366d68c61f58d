//! Host names and origins that clients may use.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use http::Uri;

use super::Catalog;
use super::config::{CommandLaunch, GatewayConfig, Launch};
use super::name::ServerName;
use super::secret::ExpandedText;

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

/// Programs that connect stdio to a URL in their arguments.
const RELAYS: [&str; 2] = ["mcpact", "mcp-remote"];

impl Catalog {
    /// Returns the servers with the URL of a gateway that listens on this address.
    #[must_use]
    pub fn with_url_of(&self, listen: SocketAddr) -> Vec<ServerName> {
        let served = self.served().into_iter();
        let back =
            served.filter(|(_, server)| self.gateway.leads_to_gateway(&server.launch, listen));
        back.map(|(name, _)| name.clone()).collect()
    }
}

impl GatewayConfig {
    /// Returns true if this launch leads to the gateway, given its listen address.
    pub(super) fn leads_to_gateway(&self, launch: &Launch, listen: SocketAddr) -> bool {
        match launch {
            Launch::Url(url) => self.is_at(url.url.value(), listen),
            Launch::Command(command) => {
                let mut args = command.args.iter().map(ExpandedText::value);
                is_relay(command) && args.any(|arg| self.is_at(arg, listen))
            }
            Launch::Builtin(_) => false,
        }
    }

    /// Returns true if a URL is the gateway's, with any path.
    fn is_at(&self, url: &str, listen: SocketAddr) -> bool {
        let Ok(uri) = url.parse::<Uri>() else {
            return false;
        };
        let usual = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            Some(_) | None => return false,
        };
        let Some(host) = uri.host() else {
            return false;
        };
        uri.port_u16().unwrap_or(usual) == listen.port() && self.is_called(host, listen.ip())
    }

    fn is_called(&self, host: &str, own: IpAddr) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if self
            .allow_hosts
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
        {
            return true;
        }
        let own = own.to_canonical();
        let is_here = own.is_loopback() || own.is_unspecified();
        match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
            Ok(ip) => ip == own || is_here && (ip.is_loopback() || ip.is_unspecified()),
            Err(_) => is_here && host.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// Returns true for a program that connects stdio to a URL, by its name or that of the package that a launcher starts.
fn is_relay(command: &CommandLaunch) -> bool {
    let program = Path::new(command.program.value()).file_stem();
    let program = program.and_then(|name| name.to_str());
    let args = command.args.iter().map(ExpandedText::value);
    let mut words = program.into_iter().chain(args);
    words.any(|word| {
        let package = word.split_once('@').map_or(word, |(package, _)| package);
        RELAYS.contains(&package)
    })
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

#[cfg(test)]
mod own_url_tests {
    use crate::read::tests::taken_from;

    #[test]
    fn own_url_is_recognised_in_every_form() {
        let leads_back = |listen: &str, url: &str| {
            let text = format!("[servers.a]\nurl = \"{url}\"\n");
            let catalog = taken_from("mcpact.toml", &text);
            !catalog.with_url_of(listen.parse().unwrap()).is_empty()
        };
        let loopback = "127.0.0.1:6272";
        for (listen, url, expected) in [
            (loopback, "http://127.0.0.1:6272/mcp", true),
            (loopback, "http://LOCALHOST:6272/servers/x/mcp", true),
            (loopback, "https://[::1]:6272/mcp", true),
            (loopback, "http://127.0.0.1:6273/mcp", false),
            (loopback, "http://127.0.0.1/mcp", false),
            (loopback, "http://mcp.example:6272/mcp", false),
            ("[::]:6272", "http://localhost:6272/mcp", true),
            ("192.0.2.7:6272", "http://192.0.2.7:6272/mcp", true),
            ("192.0.2.7:6272", "http://localhost:6272/mcp", false),
            ("[::1]:80", "http://localhost/mcp", true),
        ] {
            assert_eq!(leads_back(listen, url), expected, "{listen} {url}");
        }
    }

    #[test]
    fn relay_to_the_own_url_is_recognised() {
        let url = "http://gateway.example:6272/mcp";
        for (program, args, expected) in [
            ("/opt/mcpact", format!("\"bridge\", \"{url}\""), 1),
            ("npx", format!("\"-y\", \"mcp-remote@1\", \"{url}\""), 1),
            ("crawl", format!("\"{url}\""), 0),
            ("mcpact", String::from("\"everything\""), 0),
        ] {
            let text = format!(
                "[gateway]\nallow_hosts = [\"gateway.example\"]\n[servers.a]\ncommand = \"{program}\"\nargs = [{args}]\n"
            );
            let catalog = taken_from("mcpact.toml", &text);
            let back = catalog.with_url_of("127.0.0.1:6272".parse().unwrap());
            assert_eq!(back.len(), expected, "{program}");
        }
    }
}
