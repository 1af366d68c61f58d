//! Results of the suite: one directory for each scenario that ran.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::leg::Leg;
use crate::failure::Failure;

/// The results of a run, by scenario.
#[derive(Default)]
pub(super) struct Results {
    records: BTreeMap<String, Record>,
}

/// Result of one scenario.
#[derive(Default)]
pub(super) struct Record {
    pub(super) checks: Vec<Check>,
    /// Standard error of our client; empty for a server.
    pub(super) complaint: String,
}

/// One check of the suite.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    pub(super) id: String,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) error_message: Option<String>,
    #[serde(default)]
    pub(super) details: Value,
}

/// Status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

impl Results {
    /// Reads every result below the directory, which need not exist.
    pub(super) fn read(folder: &Path, leg: Leg) -> Result<Self, Failure> {
        let mut results = Self::default();
        if folder.is_dir() {
            results.collect(folder, "", leg)?;
        }
        Ok(results)
    }

    /// Result of a scenario.
    pub(super) fn of(&self, scenario: &str) -> Option<&Record> {
        self.records.get(scenario)
    }

    /// Removes the result of a scenario.
    pub(super) fn take(&mut self, scenario: &str) -> Option<Record> {
        self.records.remove(scenario)
    }

    /// Returns `true` if there are no results.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The name of a scenario may hold `/`, so a folder without a time in its name is a part of one.
    fn collect(&mut self, folder: &Path, above: &str, leg: Leg) -> Result<(), Failure> {
        for entry in fs::read_dir(folder).map_err(Failure::file(folder))? {
            let path = entry.map_err(Failure::file(folder))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if !path.is_dir() {
                continue;
            }
            let name = format!("{above}{name}");
            match scenario_of(&name, leg) {
                Some(scenario) => {
                    if let Some(record) = record(&path)? {
                        self.records.insert(scenario.to_owned(), record);
                    }
                }
                None => self.collect(&path, &format!("{name}/"), leg)?,
            }
        }
        Ok(())
    }
}

/// The record in the folder of a scenario; none if the scenario broke off.
fn record(folder: &Path) -> Result<Option<Record>, Failure> {
    let path = folder.join("checks.json");
    if !path.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(Failure::file(&path))?;
    let checks = serde_json::from_str(&text).map_err(|source| Failure::Json { path, source })?;
    let path = folder.join("stderr.txt");
    let complaint = if path.is_file() {
        fs::read_to_string(&path).map_err(Failure::file(&path))?
    } else {
        String::new()
    };
    Ok(Some(Record { checks, complaint }))
}

/// `<scenario>-2026-01-31T23-59-59-999Z`, with `server-` before it on the server leg.
fn scenario_of(folder: &str, leg: Leg) -> Option<&str> {
    const TIME: &str = "-dddd-dd-ddTdd-dd-dd-dddZ";
    let (name, time) = folder.split_at_checked(folder.len().checked_sub(TIME.len())?)?;
    let alike = |(form, found): (u8, u8)| match form {
        b'd' => found.is_ascii_digit(),
        sign => found == sign,
    };
    if !TIME.bytes().zip(time.bytes()).all(alike) {
        return None;
    }
    match leg {
        Leg::Client => Some(name),
        _ => name.strip_prefix("server-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-11-15T10-39-01-051Z";
    const CHECKS: &str = r#"[
        { "id": "a", "name": "A", "status": "SUCCESS", "details": { "toolCount": 3 } },
        { "id": "b", "name": "B", "status": "FAILURE", "errorMessage": "no" }
    ]"#;

    fn write(folder: &Path, name: &str, file: &str, text: &str) {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), text).unwrap();
    }

    #[test]
    fn folders_are_named_after_scenario_and_time() {
        let of = |name: String, leg| scenario_of(&name, leg).map(str::to_owned);
        let server = of(format!("server-tools-list-{TIME}"), Leg::Server);
        assert_eq!(server.unwrap(), "tools-list");
        let twice = of(format!("server-server-initialize-{TIME}"), Leg::Server);
        assert_eq!(twice.unwrap(), "server-initialize");
        let client = of(format!("auth/dpop-{TIME}"), Leg::Client);
        assert_eq!(client.unwrap(), "auth/dpop");
        assert_eq!(of("auth".to_owned(), Leg::Client), None);
        assert_eq!(of(format!("a-{TIME}x"), Leg::Client), None);
    }

    #[test]
    fn results_are_found_however_deep() {
        let folder = tempfile::tempdir().unwrap();
        let deep = format!("auth/dpop-{TIME}");
        write(folder.path(), &deep, "checks.json", CHECKS);
        write(folder.path(), &deep, "stderr.txt", "refused\n");
        let broken = format!("tools_call-{TIME}");
        write(folder.path(), &broken, "stderr.txt", "");
        let results = Results::read(folder.path(), Leg::Client).unwrap();
        let record = results.of("auth/dpop").unwrap();
        assert_eq!(record.complaint, "refused\n");
        assert_eq!(record.checks[0].status, Status::Success);
        assert_eq!(record.checks[0].details["toolCount"], 3);
        assert_eq!(record.checks[1].error_message.as_deref(), Some("no"));
        assert!(results.of("tools_call").is_none());
    }

    #[test]
    fn a_run_without_results_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("none");
        assert!(Results::read(&nowhere, Leg::Server).unwrap().is_empty());
    }
}
