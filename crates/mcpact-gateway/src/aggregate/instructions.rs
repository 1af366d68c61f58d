//! One text from the instructions of several servers.

use std::fmt::Write;

/// How many characters of one server's instructions are shown.
const LONGEST: usize = 4096;

/// What is known about a server when instructions are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) server: &'a str,
    pub(crate) prefix: &'a str,
    pub(crate) instructions: Option<&'a str>,
    /// Why it is not there, if it is not.
    pub(crate) failure: Option<&'a str>,
    /// What its lists lack.
    pub(crate) lacking: &'a [String],
}

/// The instructions for a client: how names are made, who is missing, and what each server says.
pub(crate) fn merged(parts: &[Part<'_>], separator: &str) -> Option<String> {
    let mut out = String::new();
    out.push_str(&naming(parts, separator));
    for part in parts {
        if let Some(failure) = part.failure {
            let _ = write!(out, "\n\n`{}` is missing: {failure}.", part.server);
        } else if !part.lacking.is_empty() {
            let lacking = part.lacking.join("; ");
            let _ = write!(out, "\n\n`{}` is incomplete: {lacking}.", part.server);
        }
    }
    for part in parts {
        let text = part.instructions.map(str::trim).unwrap_or_default();
        if !text.is_empty() {
            let shown: String = text.chars().take(LONGEST).collect();
            let _ = write!(out, "\n\n## {}\n{shown}", part.server);
        }
    }
    let out = out.trim();
    (!out.is_empty()).then(|| out.to_owned())
}

/// How the names of tools and prompts begin.
fn naming(parts: &[Part<'_>], separator: &str) -> String {
    let mut prefixed = parts.iter().filter(|part| !part.prefix.is_empty());
    let mut out = String::new();
    let own = prefixed.clone().filter(|part| part.prefix == part.server);
    // Nobody can try the name of one that is missing.
    if let Some(part) = own.min_by_key(|part| part.failure.is_some()) {
        let server = part.server;
        let _ = write!(
            out,
            "The names of tools and prompts begin with their server: `{server}{separator}…` is of `{server}`."
        );
    }
    let others = prefixed.by_ref().filter(|part| part.prefix != part.server);
    for Part { server, prefix, .. } in others {
        let lead = if out.is_empty() { "" } else { " " };
        let _ = write!(
            out,
            "{lead}Names of `{server}` begin with `{prefix}{separator}`."
        );
    }
    out
}

/// The instructions of a server that is alone: its own, and what is kept back of it.
pub(crate) fn of_one(own: Option<&str>, withheld: Option<String>) -> Option<String> {
    let incomplete = withheld.map(|withheld| format!("This server is incomplete: {withheld}."));
    match (own, incomplete) {
        (Some(own), Some(incomplete)) => Some(format!("{incomplete}\n\n{own}")),
        (own, incomplete) => own.map(str::to_owned).or(incomplete),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The instructions of all servers, in order, each under its name; a failure is visible.
    #[test]
    fn instructions_name_their_server_and_those_that_are_missing() {
        let part = |server, instructions, failure| Part {
            server,
            prefix: server,
            instructions,
            failure,
            lacking: &[],
        };
        let parts = [
            part("0", None, Some("it could not be started")),
            part("a", Some(" Use it. "), None),
            part("b", None, None),
            part("c", Some(""), Some("it could not be started")),
        ];
        let text = merged(&parts, "__").unwrap();
        assert!(
            text.starts_with(
                "The names of tools and prompts begin with their server: `a__…` is of `a`.\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("`c` is missing: it could not be started."),
            "{text}"
        );
        assert!(text.ends_with("## a\nUse it."), "{text}");
        assert_eq!(merged(&[], "__"), None);
    }

    #[test]
    fn a_server_alone_says_what_it_says_and_what_is_kept_back() {
        let withheld = || Some(String::from("1 tool is hidden"));
        let incomplete = "This server is incomplete: 1 tool is hidden.";
        assert_eq!(of_one(None, None), None);
        assert_eq!(of_one(Some(" Use it."), None).unwrap(), " Use it.");
        assert_eq!(of_one(None, withheld()).unwrap(), incomplete);
        let both = of_one(Some("Use it."), withheld()).unwrap();
        assert_eq!(both, format!("{incomplete}\n\nUse it."));
    }

    #[test]
    fn another_prefix_is_told_with_its_server() {
        let part = |server, prefix| Part {
            server,
            prefix,
            instructions: None,
            failure: None,
            lacking: &[],
        };
        let told = |parts: &[Part<'_>]| merged(parts, ".").unwrap_or_default();
        assert_eq!(told(&[part("a", "x")]), "Names of `a` begin with `x.`.");
        assert_eq!(
            told(&[part("a", "x"), part("b", "b"), part("c", "c")]),
            "The names of tools and prompts begin with their server: `b.…` is of `b`. Names of `a` begin with `x.`."
        );
        assert_eq!(told(&[part("a", "")]), "");
    }

    #[test]
    fn nobody_fills_the_text_alone() {
        let long = "x".repeat(2 * LONGEST);
        let part = Part {
            server: "a",
            prefix: "",
            instructions: Some(&long),
            failure: None,
            lacking: &[],
        };
        assert!(merged(&[part], "__").unwrap().len() < LONGEST + 100);
    }
}
