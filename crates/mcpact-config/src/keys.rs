//! All keys of the config with kind, limits, default and description.
//!
//! The reader, the JSON Schema and the manual are derived from this table.

mod command;
mod gateway;
mod server;

pub use command::FILTER;
pub use gateway::{ANSWERS, COMMANDS, GATEWAY};
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
    /// String.
    Text {
        /// Default.
        default: Option<&'static str>,
    },
    /// List of strings, empty by default.
    Texts,
    /// Table of strings, empty by default.
    TextTable,
    /// Boolean.
    Flag {
        /// Default.
        default: bool,
    },
    /// Integer.
    Count {
        /// Minimum.
        least: u32,
        /// Maximum.
        most: u32,
        /// Default.
        default: u32,
    },
    /// Duration in seconds; fractions allowed.
    Seconds {
        /// Minimum.
        least: f64,
        /// Maximum.
        most: f64,
        /// Default.
        default: f64,
    },
    /// One of a fixed set of strings.
    Choice {
        /// Possible values.
        of: &'static [&'static str],
        /// Default.
        default: &'static str,
    },
    /// List of values of a fixed set, empty by default.
    Choices {
        /// Possible values.
        of: &'static [&'static str],
    },
    /// Table of lists of strings, empty by default.
    TextsTable,
    /// Table with fixed keys.
    Table {
        /// Its keys.
        keys: &'static [Key],
    },
    /// Table of named tables, each with a `command`.
    Commands {
        /// Keys of each table.
        keys: &'static [Key],
    },
    /// Table of named tables.
    Named {
        /// Keys of each table.
        keys: &'static [Key],
    },
}

const fn text(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::Text { default: None };
    Key { name, kind, about }
}

const fn text_or(name: &'static str, default: &'static str, about: &'static str) -> Key {
    let kind = Kind::Text {
        default: Some(default),
    };
    Key { name, kind, about }
}

const fn texts(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::Texts;
    Key { name, kind, about }
}

const fn text_table(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::TextTable;
    Key { name, kind, about }
}

const fn texts_table(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::TextsTable;
    Key { name, kind, about }
}

const fn flag(name: &'static str, default: bool, about: &'static str) -> Key {
    let kind = Kind::Flag { default };
    Key { name, kind, about }
}

const fn count(name: &'static str, range: [u32; 2], default: u32, about: &'static str) -> Key {
    let [least, most] = range;
    let kind = Kind::Count {
        least,
        most,
        default,
    };
    Key { name, kind, about }
}

const fn seconds(name: &'static str, range: [f64; 2], default: f64, about: &'static str) -> Key {
    let [least, most] = range;
    let kind = Kind::Seconds {
        least,
        most,
        default,
    };
    Key { name, kind, about }
}

const fn choice(
    name: &'static str,
    of: &'static [&'static str],
    default: &'static str,
    about: &'static str,
) -> Key {
    let kind = Kind::Choice { of, default };
    Key { name, kind, about }
}

const fn choices(name: &'static str, of: &'static [&'static str], about: &'static str) -> Key {
    let kind = Kind::Choices { of };
    Key { name, kind, about }
}

const fn table(name: &'static str, keys: &'static [Key], about: &'static str) -> Key {
    let kind = Kind::Table { keys };
    Key { name, kind, about }
}

/// Keys of the root table.
pub const ROOT: &[Key] = &[
    text(
        "$schema",
        "URL of the JSON Schema, for editors; ignored by mcpact.",
    ),
    table("gateway", GATEWAY, "Settings of the gateway."),
    Key {
        name: "servers",
        kind: Kind::Named { keys: SERVER },
        about: "Servers, each in its own table, such as `[servers.files]`.",
    },
    Key {
        name: "filters",
        kind: Kind::Commands { keys: FILTER },
        about: "Filter programs for requests and results, each in its own table, such as `[filters.audit]`.",
    },
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

    use super::*;

    fn words(keys: &'static [Key], name: &str) -> &'static [&'static str] {
        match find(keys, name).unwrap().kind {
            Kind::Choice { of, .. } | Kind::Choices { of } => of,
            _ => panic!("{name} is no choice"),
        }
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
        let inner = COMMANDS.iter().chain(ANSWERS).chain(FILTER);
        for key in ROOT.iter().chain(GATEWAY).chain(inner).chain(SERVER) {
            assert!(key.about.ends_with('.'), "{}", key.name);
            match key.kind {
                Kind::Count {
                    least,
                    most,
                    default,
                } => {
                    assert!((least..=most).contains(&default), "{}", key.name);
                }
                Kind::Seconds {
                    least,
                    most,
                    default,
                } => {
                    assert!((least..=most).contains(&default), "{}", key.name);
                }
                Kind::Choice { of, default } => assert!(of.contains(&default), "{}", key.name),
                _ => {}
            }
        }
    }
}
