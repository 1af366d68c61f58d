//! All keys of the config with kind, limits, default and description.
//!
//! The reader, the JSON Schema and the manual are derived from this table.

mod gateway;
mod server;

pub use gateway::{ANSWERS, COMMANDS, GATEWAY, LIMITS, POLICY, TOOLS};
pub use server::FILTER;
pub use server::{BUILTINS, EVERYTHING, SERVER};

/// A key of the config.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Kind of value.
    pub kind: Kind,
    /// Description in one sentence.
    pub about: &'static str,
}

/// Kind of value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// String, with its default.
    Text(Option<&'static str>),
    /// List of strings, empty by default.
    Texts,
    /// List of user names and user ids, empty by default.
    Users,
    /// Table of strings, empty by default.
    TextTable,
    /// Table of lists of strings, empty by default.
    TextsTable,
    /// Boolean, with its default.
    Flag(bool),
    /// Integer, with minimum and maximum, and its default.
    Count([u32; 2], u32),
    /// List of integers, each with minimum and maximum, empty by default.
    Counts([u32; 2]),
    /// Duration in seconds, with minimum and maximum, and its default; fractions allowed.
    Seconds([f64; 2], f64),
    /// One of a fixed set of strings, with its default.
    Choice(&'static [&'static str], &'static str),
    /// List of values of a fixed set, empty by default.
    Choices(&'static [&'static str]),
    /// Table with fixed keys.
    Table(&'static [Key]),
    /// Table of named tables with these keys, each with a `command`.
    Commands(&'static [Key]),
    /// Table of named tables with these keys.
    Named(&'static [Key]),
}

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, about }
}

/// Levels of `sandbox`.
const SANDBOXES: &[&str] = &["off", "standard", "strict"];

/// Keys of the root table.
pub const ROOT: &[Key] = &[
    key(
        "$schema",
        Kind::Text(None),
        "URL of the JSON Schema, for editors; ignored by mcpact.",
    ),
    key("gateway", Kind::Table(GATEWAY), "Settings of the gateway."),
    key(
        "servers",
        Kind::Named(SERVER),
        "Servers, each in its own table, such as `[servers.files]`.",
    ),
    key(
        "filters",
        Kind::Commands(FILTER),
        "Filter programs for requests and results, each in its own table, such as `[filters.audit]`.",
    ),
];

/// Returns the key with this name.
#[must_use]
pub fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use mcpact_engine::policy::Profile;
    use mcpact_spec::Revision;
    use mcpact_transport::stdio::child::SandboxLevel;

    use super::*;

    fn words(keys: &'static [Key], name: &str) -> &'static [&'static str] {
        match find(keys, name).unwrap().kind {
            Kind::Choice(of, _) | Kind::Choices(of) => of,
            _ => panic!("{name} is no choice"),
        }
    }

    #[test]
    fn sandbox_levels_match_the_transport() {
        let levels = SandboxLevel::ALL.iter().map(|level| level.as_str());
        let levels: Vec<&str> = levels.collect();
        assert_eq!(words(GATEWAY, "sandbox"), levels);
        assert_eq!(words(SERVER, "sandbox"), levels);
    }

    #[test]
    fn choices_match_the_engine() {
        assert_eq!(
            words(GATEWAY, "revisions"),
            Revision::ALL.map(Revision::as_str)
        );
        assert_eq!(
            words(SERVER, "era")[3..],
            Revision::ALL.map(Revision::as_str)
        );
        assert_eq!(words(GATEWAY, "profile"), Profile::ALL.map(Profile::as_str));
    }

    /// Every key has a description, and a default within its limits.
    #[test]
    fn every_key_has_a_description_and_a_valid_default() {
        let inner = COMMANDS
            .iter()
            .chain(LIMITS)
            .chain(TOOLS)
            .chain(ANSWERS)
            .chain(FILTER);
        for key in ROOT.iter().chain(GATEWAY).chain(inner).chain(SERVER) {
            assert!(key.about.ends_with('.'), "{}", key.name);
            match key.kind {
                Kind::Count([least, most], default) => {
                    assert!((least..=most).contains(&default), "{}", key.name);
                }
                Kind::Seconds([least, most], default) => {
                    assert!((least..=most).contains(&default), "{}", key.name);
                }
                Kind::Choice(of, default) => assert!(of.contains(&default), "{}", key.name),
                _ => {}
            }
        }
    }
}
