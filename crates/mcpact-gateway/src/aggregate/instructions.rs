//! Instructions of the aggregated server.

use std::fmt::Write;

/// Maximum characters of the instructions of one server.
const MAX_CHARS: usize = 4096;

/// State of a server as far as the instructions show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerInstructions<'a> {
    pub(crate) server: &'a str,
    pub(crate) prefix: &'a str,
    pub(crate) instructions: Option<Box<str>>,
    /// Cause of unavailability.
    pub(crate) failure: Option<String>,
    /// Missing parts of its lists.
    pub(crate) lacking: Vec<String>,
}

/// Returns the instructions for a client: naming scheme, unavailable servers and the instructions of each server.
pub(crate) fn merge(parts: &[ServerInstructions<'_>], separator: &str) -> Option<String> {
    let mut out = describe_prefixes(parts, separator);
    for part in parts {
        if let Some(failure) = &part.failure {
            let _ = write!(out, "\n\n`{}` is unavailable: {failure}.", part.server);
        } else if !part.lacking.is_empty() {
            let lacking = part.lacking.join("; ");
            let _ = write!(out, "\n\n`{}` is incomplete: {lacking}.", part.server);
        }
    }
    for part in parts {
        let text = part.instructions.as_deref().unwrap_or_default().trim();
        if !text.is_empty() {
            let shown: String = text.chars().take(MAX_CHARS).collect();
            let _ = write!(out, "\n\n## {}\n{shown}", part.server);
        }
    }
    let out = out.trim();
    (!out.is_empty()).then(|| out.to_owned())
}

/// Describes the prefixes of tool and prompt names.
fn describe_prefixes(parts: &[ServerInstructions<'_>], separator: &str) -> String {
    let mut prefixed = parts.iter().filter(|part| !part.prefix.is_empty());
    let mut out = String::new();
    let own = prefixed.clone().filter(|part| part.prefix == part.server);
    // The example is of an available server if there is one.
    if let Some(part) = own.min_by_key(|part| part.failure.is_some()) {
        let server = part.server;
        let _ = write!(
            out,
            "Names of tools and prompts start with the server name: `{server}{separator}…` belongs to `{server}`."
        );
    }
    let others = prefixed.by_ref().filter(|part| part.prefix != part.server);
    for ServerInstructions { server, prefix, .. } in others {
        let space = if out.is_empty() { "" } else { " " };
        let _ = write!(
            out,
            "{space}Names of `{server}` start with `{prefix}{separator}`."
        );
    }
    out
}

/// Returns the instructions of a single server with a note about withheld tools.
pub(crate) fn with_withheld(own: Option<&str>, withheld: Option<String>) -> Option<String> {
    let incomplete = withheld.map(|withheld| format!("This server is incomplete: {withheld}."));
    match (own, incomplete) {
        (Some(own), Some(incomplete)) => Some(format!("{incomplete}\n\n{own}")),
        (own, incomplete) => own.map(str::to_owned).or(incomplete),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions are in server order under the server name; failures are visible.
    #[test]
    fn instructions_list_servers_and_failures() {
        let part = |server, instructions: Option<&str>, failure: Option<&str>| ServerInstructions {
            server,
            prefix: server,
            instructions: instructions.map(Box::from),
            failure: failure.map(String::from),
            lacking: Vec::new(),
        };
        let parts = [
            part("0", None, Some("it could not be started")),
            part("a", Some(" Use it. "), None),
            part("b", None, None),
            part("c", Some(""), Some("it could not be started")),
        ];
        let text = merge(&parts, "__").unwrap();
        assert!(
            text.starts_with(
                "Names of tools and prompts start with the server name: `a__…` belongs to `a`.\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("`c` is unavailable: it could not be started."),
            "{text}"
        );
        assert!(text.ends_with("## a\nUse it."), "{text}");
        assert_eq!(merge(&[], "__"), None);
    }

    #[test]
    fn single_server_instructions_mention_withheld_tools() {
        let withheld = || Some(String::from("1 tool is hidden"));
        let incomplete = "This server is incomplete: 1 tool is hidden.";
        assert_eq!(with_withheld(None, None), None);
        assert_eq!(with_withheld(Some(" Use it."), None).unwrap(), " Use it.");
        assert_eq!(with_withheld(None, withheld()).unwrap(), incomplete);
        let both = with_withheld(Some("Use it."), withheld()).unwrap();
        assert_eq!(both, format!("{incomplete}\n\nUse it."));
    }

    #[test]
    fn custom_prefixes_are_listed_per_server() {
        let part = |server, prefix| ServerInstructions {
            server,
            prefix,
            instructions: None,
            failure: None,
            lacking: Vec::new(),
        };
        let text = |parts: &[ServerInstructions<'_>]| merge(parts, ".").unwrap_or_default();
        assert_eq!(text(&[part("a", "x")]), "Names of `a` start with `x.`.");
        assert_eq!(
            text(&[part("a", "x"), part("b", "b"), part("c", "c")]),
            "Names of tools and prompts start with the server name: `b.…` belongs to `b`. Names of `a` start with `x.`."
        );
        assert_eq!(text(&[part("a", "")]), "");
    }

    #[test]
    fn long_instructions_are_truncated() {
        let long = "x".repeat(2 * MAX_CHARS);
        let part = ServerInstructions {
            server: "a",
            prefix: "",
            instructions: Some(long.into()),
            failure: None,
            lacking: Vec::new(),
        };
        assert!(merge(&[part], "__").unwrap().len() < MAX_CHARS + 100);
    }
}
