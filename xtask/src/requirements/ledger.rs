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
    /// What is not shown yet, and why; all of it where no test is listed.
    pub(super) later: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    text: String,
    tests: Vec<String>,
    later: Option<String>,
}

impl Ledger {
    /// Parse the file, in its own order.
    pub(super) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let table: Table = toml::from_str(text)?;
        let entries = table.into_iter().map(|(id, value)| {
            let body: Body = value.try_into().map_err(|why| in_entry(&id, &why))?;
            let Body { text, tests, later } = body;
            Ok(Entry {
                id,
                text,
                tests,
                later,
            })
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
                    later: None,
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

    /// The ids that are not yet shown whole, each with its reason.
    pub(super) fn postponed(&self) -> impl Iterator<Item = (&str, &str)> {
        let reasons = self.entries.iter();
        reasons.filter_map(|entry| Some((entry.id.as_str(), entry.later.as_deref()?)))
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
        let later = self.later.as_deref().map(quoted);
        let later = later.map_or_else(String::new, |why| format!("later = {why}\n"));
        format!(
            "[{}]\ntext = {}\n{later}tests = [{tests}]\n",
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
