//! Paths of the gateway.

use std::borrow::Cow;

/// Destination of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// All servers, over any HTTP transport.
    All,
    /// One server.
    Server(String),
    /// Servers with all of these tags, which are sorted.
    Tagged(Vec<String>),
    /// Liveness check.
    Health,
    /// Readiness check.
    Readiness,
    /// Metrics.
    Metrics,
    /// Unknown path.
    Unknown,
}

/// Paths of the aggregated server.
const AGGREGATE: [&str; 4] = ["/mcp", "/sse", "/messages", "/ws"];

/// Returns the destination of a path.
pub(super) fn destination(path: &str) -> Destination {
    if AGGREGATE.contains(&path) {
        return Destination::All;
    }
    match path {
        "/healthz" => return Destination::Health,
        "/readyz" => return Destination::Readiness,
        "/metrics" => return Destination::Metrics,
        _ => {}
    }
    let inner = |start: &str| path.strip_prefix(start)?.strip_suffix("/mcp");
    if let Some(name) = inner("/servers/") {
        return Destination::Server(decoded(name).into_owned());
    }
    match inner("/tags/").map(|list| tags(&decoded(list))) {
        Some(tags) if !tags.is_empty() => Destination::Tagged(tags),
        Some(_) | None => Destination::Unknown,
    }
}

/// Decodes percent-encoding; invalid sequences stay unchanged.
fn decoded(part: &str) -> Cow<'_, str> {
    let mut pieces = part.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        bytes.extend_from_slice(&piece.as_bytes()[byte.map_or(0, |_| 2)..]);
    }
    match String::from_utf8(bytes) {
        Ok(text) if text != part => Cow::Owned(text),
        Ok(_) | Err(_) => Cow::Borrowed(part),
    }
}

/// Parses a comma-separated list of tags; the result is sorted and without duplicates.
pub(super) fn tags(list: &str) -> Vec<String> {
    let tags = list.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let mut tags: Vec<String> = tags.map(str::to_owned).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The aggregated server, each server and each set of tags have their own path.
    #[test]
    fn paths_have_destinations() {
        let tagged =
            |tags: &[&str]| Destination::Tagged(tags.iter().map(|t| (*t).to_owned()).collect());
        let cells = [
            ("/mcp", Destination::All),
            ("/sse", Destination::All),
            ("/servers/files/mcp", Destination::Server("files".into())),
            ("/servers/%66iles/mcp", Destination::Server("files".into())),
            ("/servers/a%2/mcp", Destination::Server("a%2".into())),
            ("/servers/a%+1/mcp", Destination::Server("a%+1".into())),
            ("/servers/a%FF/mcp", Destination::Server("a%FF".into())),
            ("/tags/work%3Adev/mcp", tagged(&["work:dev"])),
            ("/tags/b%2ca/mcp", tagged(&["a", "b"])),
            ("/tags/b,a,b/mcp", tagged(&["a", "b"])),
            ("/tags/,/mcp", Destination::Unknown),
            ("/servers/files", Destination::Unknown),
            ("/healthz", Destination::Health),
            ("/readyz", Destination::Readiness),
            ("/metrics", Destination::Metrics),
            ("/", Destination::Unknown),
        ];
        for (path, expected) in cells {
            assert_eq!(destination(path), expected, "{path}");
        }
    }
}
