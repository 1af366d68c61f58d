//! Scenarios that a revision requires, from the suite's own list.
//!
//! The lists are YAML of a very plain form: sections at the margin, names as items, and for what is
//! not scored a scenario and its leg. A line that breaks this form is refused, not guessed at.

use super::leg::Leg;

/// The scenarios of one leg under one revision.
#[derive(Debug, PartialEq)]
pub(super) struct RequirementSet {
    /// Scenarios that the revision requires.
    pub(super) scored: Vec<String>,
    /// Other scenarios: extensions, and scenarios that were added later.
    pub(super) not_scored: Vec<String>,
}

const NOT_SCORED: &str = "not_scored";

impl RequirementSet {
    /// Parse the list of a revision; the error quotes the line that is not understood.
    pub(super) fn parse(text: &str, leg: Leg) -> Result<Self, String> {
        let mut set = Self {
            scored: Vec::new(),
            not_scored: Vec::new(),
        };
        let mut section = "";
        // The scenario whose leg has not come yet.
        let mut open = None;
        for (line, number) in text.lines().zip(1..) {
            let refused = || format!("line {number}: `{line}`");
            let words = line.trim();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            if words.len() == line.len() {
                section = words.strip_suffix(':').ok_or_else(refused)?;
                continue;
            }
            let item = words.strip_prefix("- ");
            let of_leg = words.strip_prefix("leg: ");
            match (section, item, of_leg) {
                (NOT_SCORED, Some(item), _) => {
                    let named = item.strip_prefix("scenario: ").ok_or_else(refused)?;
                    if open.replace(named).is_some() {
                        return Err(refused());
                    }
                }
                (NOT_SCORED, None, Some(of_leg)) => {
                    let scenario = name(open.take().ok_or_else(refused)?).ok_or_else(refused)?;
                    if of_leg == leg.role() {
                        set.not_scored.push(scenario);
                    }
                }
                (section, Some(item), _) if section == leg.role() => {
                    set.scored.push(name(item).ok_or_else(refused)?);
                }
                (section, None, _) if section == leg.role() => return Err(refused()),
                _ => {}
            }
        }
        if let Some(scenario) = open {
            return Err(format!("the leg of `{scenario}`"));
        }
        if set.scored.is_empty() {
            return Err(format!("a list of `{leg}` scenarios"));
        }
        Ok(set)
    }
}

/// A plain name, as every scenario has one.
fn name(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    (!text.is_empty() && text.chars().all(plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Requirements.
#   - not-a-scenario

server:
  - server-initialize
  - ping

client:
  - tools_call
  - auth/metadata-default

not_scored:
  - scenario: auth/dpop
    leg: client
    reason: extension
  - scenario: server-sse-polling
    leg: server
    reason: pending
    note: >-
      on hold: the reference fixture
";

    #[test]
    fn each_leg_has_its_scenarios() {
        let server = RequirementSet::parse(TEXT, Leg::Server).unwrap();
        assert_eq!(server.scored, ["server-initialize", "ping"]);
        assert_eq!(server.not_scored, ["server-sse-polling"]);
        let client = RequirementSet::parse(TEXT, Leg::Client).unwrap();
        assert_eq!(client.scored, ["tools_call", "auth/metadata-default"]);
        assert_eq!(client.not_scored, ["auth/dpop"]);
    }

    #[test]
    fn another_form_is_refused() {
        for (text, line) in [
            ("server: [ping]\n", "line 1: `server: [ping]`"),
            ("server:\n  - \"ping\"\n", "line 2: `  - \"ping\"`"),
            ("server:\n  ping: {}\n", "line 2: `  ping: {}`"),
            ("not_scored:\n  - dpop\n", "line 2: `  - dpop`"),
            (
                "not_scored:\n  - scenario: a\n    leg: server\n    leg: server\n",
                "line 4: `    leg: server`",
            ),
            ("not_scored:\n  - scenario: a\n", "the leg of `a`"),
            (
                "not_scored:\n  - scenario: a\n  - scenario: b\n",
                "line 3: `  - scenario: b`",
            ),
            ("client:\n  - ping\n", "a list of `server` scenarios"),
        ] {
            let refused = RequirementSet::parse(text, Leg::Server);
            assert_eq!(refused.unwrap_err(), line);
        }
    }
}
