use serde::Deserialize;
use serde::de::Error as _;
use toml::{Table, Value};

use super::citations::TestFn;

/// `requirements.toml`: which tests show which requirement.
pub(super) struct Ledger {
    /// What stands above the first entry; kept as it is.
    header: String,
    pub(super) entries: Vec<Entry>,
}

/// One requirement.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) tests: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    text: String,
    tests: Vec<String>,
}

impl Ledger {
    /// Parse the file, in its own order.
    pub(super) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let table: Table = toml::from_str(text)?;
        let entries = table.into_iter().map(|(id, value)| {
            let Body { text, tests } = value.try_into().map_err(|why| in_entry(&id, &why))?;
            Ok(Entry { id, text, tests })
        });
        let header = text
            .split_inclusive('\n')
            .take_while(|line| !line.starts_with('['));
        Ok(Self {
            header: header.collect(),
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Add the ids that are missing, and list for every id the tests that cite it.
    pub(super) fn adopt(&mut self, required: &[String], tests: &[TestFn]) {
        for id in required {
            if !self.entries.iter().any(|entry| entry.id == *id) {
                let (id, text) = (id.clone(), String::new());
                self.entries.push(Entry {
                    id,
                    text,
                    tests: Vec::new(),
                });
            }
        }
        for entry in &mut self.entries {
            let citing = tests.iter().filter(|test| test.cites(&entry.id));
            entry.tests = citing.map(TestFn::name).collect();
            entry.tests.sort();
            entry.tests.dedup();
        }
    }

    /// The text of the file.
    pub(super) fn render(&self) -> String {
        let entries: Vec<String> = self.entries.iter().map(Entry::render).collect();
        format!("{}{}", self.header, entries.join("\n"))
    }
}

impl Entry {
    fn render(&self) -> String {
        let tests: Vec<String> = self
            .tests
            .iter()
            .map(|test| format!("    {},\n", quoted(test)))
            .collect();
        let tests = if tests.is_empty() {
            String::new()
        } else {
            format!("\n{}", tests.concat())
        };
        format!(
            "[{}]\ntext = {}\ntests = [{tests}]\n",
            self.id,
            quoted(&self.text)
        )
    }
}

/// The parser forgets where a value stood once the file is a table.
fn in_entry(id: &str, why: &toml::de::Error) -> toml::de::Error {
    toml::de::Error::custom(format!("[{id}]: {}", why.message()))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
