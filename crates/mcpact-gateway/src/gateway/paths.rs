//! Which path leads where.

use std::borrow::Cow;

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    /// All servers as one; also the other transports of the same.
    All,
    /// One server.
    Server(Cow<'a, str>),
    /// The servers with all of these tags, sorted.
    Tagged(Vec<String>),
    /// Whether the gateway lives.
    Alive,
    /// Whether the gateway can do its work.
    Ready,
    /// What happened, in numbers.
    Metrics,
    /// Nothing that is here.
    Nothing,
}

/// The paths of the front that shows all servers as one.
const FRONT: [&str; 4] = ["/mcp", "/sse", "/messages", "/ws"];

/// What a path asks for.
pub(super) fn wanted(path: &str) -> Wanted<'_> {
    if FRONT.contains(&path) {
        return Wanted::All;
    }
    match path {
        "/healthz" => return Wanted::Alive,
        "/readyz" => return Wanted::Ready,
        "/metrics" => return Wanted::Metrics,
        _ => {}
    }
    let inner = |start: &str| path.strip_prefix(start)?.strip_suffix("/mcp");
    if let Some(name) = inner("/servers/") {
        return Wanted::Server(decoded(name));
    }
    match inner("/tags/").map(|list| tags(&decoded(list))) {
        Some(tags) if !tags.is_empty() => Wanted::Tagged(tags),
        Some(_) | None => Wanted::Nothing,
    }
}

/// A part of a path without its percent signs; one that stands for nothing stays as it is.
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

/// The tags in a list with commas, each once, in one order.
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

    /// One address for all, one for each server, one for each choice of tags.
    #[test]
    fn paths_lead_to_servers() {
        let tagged = |tags: &[&str]| Wanted::Tagged(tags.iter().map(|t| (*t).to_owned()).collect());
        let cells = [
            ("/mcp", Wanted::All),
            ("/sse", Wanted::All),
            ("/servers/files/mcp", Wanted::Server("files".into())),
            ("/servers/%66iles/mcp", Wanted::Server("files".into())),
            ("/servers/a%2/mcp", Wanted::Server("a%2".into())),
            ("/servers/a%+1/mcp", Wanted::Server("a%+1".into())),
            ("/servers/a%FF/mcp", Wanted::Server("a%FF".into())),
            ("/tags/work%3Adev/mcp", tagged(&["work:dev"])),
            ("/tags/b%2ca/mcp", tagged(&["a", "b"])),
            ("/tags/b,a,b/mcp", tagged(&["a", "b"])),
            ("/tags/,/mcp", Wanted::Nothing),
            ("/servers/files", Wanted::Nothing),
            ("/healthz", Wanted::Alive),
            ("/readyz", Wanted::Ready),
            ("/metrics", Wanted::Metrics),
            ("/", Wanted::Nothing),
        ];
        for (path, expected) in cells {
            assert_eq!(wanted(path), expected, "{path}");
        }
    }
}
