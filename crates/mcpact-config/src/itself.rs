//! Whether a server is the very gateway that would serve it: its own address stands in the config of a client that the
//! gateway reads, too.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use http::Uri;

use super::Catalog;
use super::config::{CommandLaunch, GatewayConfig, Launch};
use super::name::ServerName;
use super::secret::ExpandedText;

/// Programs that lead from their own pipes to the address among their arguments.
const RELAYS: [&str; 2] = ["mcpact", "mcp-remote"];

impl Catalog {
    /// The servers that lead back to a gateway that listens there.
    #[must_use]
    pub fn leading_back_to(&self, listen: SocketAddr) -> Vec<ServerName> {
        let served = self.served().into_iter();
        let back = served.filter(|(_, server)| self.gateway.is_reached_by(&server.launch, listen));
        back.map(|(name, _)| name.clone()).collect()
    }
}

impl GatewayConfig {
    /// Whether this leads to the gateway itself, if it listens there.
    pub(super) fn is_reached_by(&self, launch: &Launch, listen: SocketAddr) -> bool {
        match launch {
            Launch::Url(url) => self.is_at(url.url.value(), listen),
            Launch::Command(command) => {
                let mut args = command.args.iter().map(ExpandedText::value);
                is_relay(command) && args.any(|arg| self.is_at(arg, listen))
            }
            Launch::Builtin(_) => false,
        }
    }

    /// Whether this is an address of the gateway, whatever its path.
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

/// By its own name, or by that of the package that a launcher starts.
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
    use crate::read::tests::taken_from;

    /// Every way to write the own address is known, and no other one is taken for it.
    #[test]
    fn the_own_address_is_known_however_it_is_written() {
        let leads_back = |listen: &str, url: &str| {
            let text = format!("[servers.a]\nurl = \"{url}\"\n");
            let catalog = taken_from("mcpact.toml", &text);
            !catalog.leading_back_to(listen.parse().unwrap()).is_empty()
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

    /// So is a program that only leads there, and a name that the gateway is called by.
    #[test]
    fn a_relay_to_the_own_address_is_known() {
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
            let back = catalog.leading_back_to("127.0.0.1:6272".parse().unwrap());
            assert_eq!(back.len(), expected, "{program}");
        }
    }
}
