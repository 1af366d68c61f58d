//! Every key of the config: its kind, its limits, its default and what it does.
//!
//! The reader takes limits and defaults from here, the JSON Schema and the manual are made from it.

mod answers;
mod filter;
mod gateway;
mod launch;
mod server;

pub use answers::ANSWERS;
pub use filter::FILTER;
pub use gateway::{COMMANDS, GATEWAY};
pub use server::{BUILTINS, EVERYTHING, SERVER};

/// A key of the config.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What may stand behind it.
    pub kind: Kind,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text {
        /// The text when the key is not there.
        default: Option<&'static str>,
    },
    /// A list of texts, empty when the key is not there.
    Texts,
    /// A table of texts, empty when the key is not there.
    TextTable,
    /// True or false.
    Flag {
        /// When the key is not there.
        default: bool,
    },
    /// A whole number.
    Count {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
        /// When the key is not there.
        default: u32,
    },
    /// A duration in seconds, fractions allowed.
    Seconds {
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
        /// When the key is not there.
        default: f64,
    },
    /// One of a few words.
    Choice {
        /// The words.
        of: &'static [&'static str],
        /// When the key is not there.
        default: &'static str,
    },
    /// A list of a few words, empty when the key is not there.
    Choices {
        /// The words.
        of: &'static [&'static str],
    },
    /// A table of lists of texts, empty when the key is not there.
    TextsTable,
    /// A table with keys of its own.
    Table {
        /// Its keys.
        keys: &'static [Key],
    },
    /// A table of tables, whose names are chosen by whoever writes it, of which each has a `command`.
    Commands {
        /// The keys of each.
        keys: &'static [Key],
    },
    /// A table of tables, whose names are chosen by whoever writes it.
    Named {
        /// The keys of each.
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

/// The keys of a whole config.
pub const ROOT: &[Key] = &[
    text(
        "$schema",
        "The address of the JSON Schema, for editors; mcpact does not read it.",
    ),
    table("gateway", GATEWAY, "The gateway itself."),
    Key {
        name: "servers",
        kind: Kind::Named { keys: SERVER },
        about: "The servers behind it, each in a table of its own, such as `[servers.files]`.",
    },
    Key {
        name: "filters",
        kind: Kind::Commands { keys: FILTER },
        about: "Programs that look at requests and results, each in a table of its own, such as `[filters.audit]`.",
    },
];

/// The key with this name.
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
    fn the_words_are_those_of_the_engine() {
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

    /// Every key says what it does, and its default is within its limits.
    #[test]
    fn every_key_is_described_and_its_default_is_possible() {
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
