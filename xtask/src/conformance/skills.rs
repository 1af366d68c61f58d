//! Scenarios of the skills extension, which belong to no revision: at our reference server, and at a gateway with two of
//! them, whose skills have the same URIs.

use std::fs;
use std::process::Command;

use super::results::Status;
use super::server;
use super::suite::Suite;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::listening::Listening;
use crate::process::build;
use crate::report;

const SCENARIOS: [&str; 3] = [
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
    "sep-2640-skills-directory",
];

/// Skills of two servers may have the same name.
const SAME_NAMES: &str = "sep-2640-names-should-be-unique";

/// Runs the scenarios at both endpoints. Every check must succeed; none may be skipped.
pub(super) fn run(checkout: &Checkout, suite: &Suite) -> Result<Vec<String>, Failure> {
    let binary = build(checkout, &["-p", "mcpact-cli", "--bin", "mcpact"])?;
    let direct = server::start(&binary, &suite.log("skills-everything"))?;
    let config = suite.log("skills").with_extension("toml");
    let servers =
        ["one", "two"].map(|name| format!("[servers.{name}]\nbuiltin = \"everything\"\n"));
    fs::write(&config, servers.join("\n")).map_err(Failure::file(&config))?;
    let mut gateway = Command::new(&binary);
    gateway.args(["serve", "--listen", "127.0.0.1:0", "--no-cache", "--config"]);
    gateway
        .arg(&config)
        .env("XDG_RUNTIME_DIR", suite.log("skills-run"));
    let gateway = Listening::start("mcpact serve", gateway, &suite.log("skills-gateway"))?;
    let mut findings = Vec::new();
    for (name, server) in [("direct", direct), ("gateway", gateway)] {
        for scenario in SCENARIOS {
            let url = server::by_name(server.url());
            let checks = suite.scenario(scenario, name, &url)?;
            let is_fine = |status, id: &str| match status {
                Status::Success | Status::Info => true,
                Status::Warning => name == "gateway" && id == SAME_NAMES,
                Status::Failure | Status::Skipped => false,
            };
            let wrong = checks
                .iter()
                .filter(|check| !is_fine(check.status, &check.id));
            let wrong = wrong.map(|check| {
                let why = check.error_message.as_deref().unwrap_or_default();
                format!("{scenario} {name}: {} {:?}: {why}", check.id, check.status)
            });
            let wrong: Vec<String> = wrong.collect();
            let passed = checks.len() - wrong.len();
            report::say(format_args!(
                "skills {name}: {scenario}: {passed} of {} checks",
                checks.len()
            ));
            findings.extend(wrong);
            if checks.is_empty() {
                findings.push(format!("{scenario} {name}: no checks"));
            }
        }
    }
    Ok(findings)
}
