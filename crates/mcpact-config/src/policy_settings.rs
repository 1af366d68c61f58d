//! Protocol settings of the command line, with the keys of the config.

use std::fmt;

use mcpact_engine::policy::Policy;

use crate::fields::{Fields, one_of};
use crate::keys::{self, Kind};
use crate::problem::{Findings, Problem};
use crate::read::policy_keys;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// Settings `KEY=VALUE` with the keys of [`keys::POLICY`], as on the command line.
#[derive(Clone, Default)]
pub struct PolicySettings(Table);

/// Treatment of invalid servers of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidServers {
    /// They are skipped; the others are served.
    Skip,
    /// The whole config is rejected.
    Refuse,
}

impl fmt::Debug for PolicySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.0.0.iter().map(|member| &member.key);
        f.debug_set().entries(keys).finish()
    }
}

impl PolicySettings {
    /// Parses settings. Items of a list are separated by commas; `KEY.NAME=VALUE` sets one value of a table.
    ///
    /// # Errors
    /// A key is unknown or repeated, or a value is invalid.
    pub fn parse<'s>(given: impl IntoIterator<Item = &'s str>) -> Result<Self, Problem> {
        let mut findings = Findings::default();
        let mut table = Table::default();
        for setting in given {
            add(setting, &mut table, &mut findings);
        }
        let settings = Self(table);
        settings.read(&mut findings);
        settings.checked(findings)
    }

    /// Policy of these settings alone.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.read(&mut Findings::default())
    }

    /// Sets the treatment of invalid servers, whatever the config says.
    #[must_use]
    pub fn with_invalid_servers(mut self, invalid: InvalidServers) -> Self {
        let is_lenient = invalid == InvalidServers::Skip;
        let node = Node::new(Span::default(), Value::Flag(is_lenient));
        let member = Member::new(String::from("lenient"), Span::default(), node);
        self.0.0.push(member);
        self
    }

    /// Replaces the same keys in `[gateway]`.
    pub(crate) fn override_in(&self, gateway: &mut Table) {
        gateway
            .0
            .retain(|member| self.0.member(&member.key).is_none());
        gateway.0.extend(self.0.0.iter().cloned());
    }

    fn read(&self, findings: &mut Findings) -> Policy {
        let mut fields = Fields::new(&self.0, keys::GATEWAY, "the command line", findings);
        policy_keys::read(&mut fields)
    }

    fn checked(self, findings: Findings) -> Result<Self, Problem> {
        match findings.finish().into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(self),
        }
    }
}

fn add(setting: &str, table: &mut Table, findings: &mut Findings) {
    let (path, value) = setting.split_once('=').unwrap_or((setting, ""));
    let (name, inner) = path
        .split_once('.')
        .map_or((path, None), |(name, inner)| (name, Some(inner)));
    let key = keys::POLICY
        .contains(&name)
        .then(|| keys::find(keys::GATEWAY, name))
        .flatten();
    let Some(key) = key else {
        let message = format!("unknown protocol setting `{name}`");
        return findings.error_with(Span::default(), message, one_of(name, &keys::POLICY));
    };
    let new = |key: &str, value| {
        let node = Node::new(Span::default(), value);
        Member::new(key.to_owned(), Span::default(), node)
    };
    let present = table.0.iter_mut().find(|member| member.key == name);
    match (present, inner) {
        (
            Some(Member {
                node:
                    Node {
                        value: Value::Table(rows),
                        ..
                    },
                ..
            }),
            Some(inner),
        ) if rows.member(inner).is_none() => {
            rows.0.push(new(inner, Value::from(value)));
        }
        (Some(_), _) => {
            let message = format!("protocol setting `{path}` is set twice");
            findings.error_with(Span::default(), message, "remove one of them");
        }
        (None, Some(inner)) => {
            let rows = Table(vec![new(inner, Value::from(value))]);
            table.0.push(new(name, Value::Table(rows)));
        }
        (None, None) => table.0.push(new(name, typed(key.kind, value))),
    }
}

/// Value of the kind, or the text itself, which the reader then rejects.
fn typed(kind: Kind, text: &str) -> Value {
    let item = |text: &str| Node::new(Span::default(), Value::from(text.trim()));
    let parsed = match kind {
        Kind::Flag(_) => text.parse().ok().map(Value::Flag),
        Kind::Count(..) => text.parse().ok().map(Value::Whole),
        Kind::Texts | Kind::Choices(_) => Some(Value::List(text.split(',').map(item).collect())),
        _ => None,
    };
    parsed.unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use mcpact_engine::policy::{Extras, Reading};
    use mcpact_engine::revisions::RevisionSet;
    use mcpact_spec::Revision;

    use super::*;

    #[test]
    fn settings_have_the_keys_of_the_config() {
        let given = [
            "strict=true",
            "revisions=2025-11-25, 2025-06-18",
            "announce_extras=true",
            "max_batch_size=7",
        ];
        let policy = PolicySettings::parse(given).unwrap().policy();
        let both = [Revision::V2025_06_18, Revision::V2025_11_25];
        assert_eq!(policy.version.supported, RevisionSet::of(&both));
        assert_eq!(
            (policy.reading, policy.extras),
            (Reading::Strict, Extras::Announce)
        );
        assert_eq!(policy.batch_limit, 7);
    }

    #[test]
    fn invalid_settings_are_rejected() {
        for (given, expected) in [
            (&["profil=spec"][..], "unknown protocol setting `profil`"),
            (&["listen=127.0.0.1:1"], "unknown protocol setting `listen`"),
            (&["profile=erlang"], "unknown value `erlang` for `profile`"),
            (
                &["max_batch_size=many"],
                "`max_batch_size` must be an integer",
            ),
            (&["strict=yes"], "`strict` must be true or false"),
            (&["strict=true", "strict=false"], "`strict` is set twice"),
            (&["strict"], "`strict` must be true or false"),
        ] {
            let problem = PolicySettings::parse(given.iter().copied()).unwrap_err();
            assert!(problem.message.contains(expected), "{}", problem.message);
        }
    }
}
