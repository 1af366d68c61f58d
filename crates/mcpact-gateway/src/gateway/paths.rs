//! Which path leads where.

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    /// All servers as one; also the other transports of the same.
    All,
    /// One server.
    Server(&'a str),
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
        return Wanted::Server(name);
    }
    match inner("/tags/").map(tags) {
        Some(tags) if !tags.is_empty() => Wanted::Tagged(tags),
        Some(_) | None => Wanted::Nothing,
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

    /// G17: one address for all, one for each server, one for each choice of tags.
    #[test]
    fn paths_lead_to_servers() {
        let tagged = |tags: &[&str]| Wanted::Tagged(tags.iter().map(|t| (*t).to_owned()).collect());
        let cells = [
            ("/mcp", Wanted::All),
            ("/sse", Wanted::All),
            ("/servers/files/mcp", Wanted::Server("files")),
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
