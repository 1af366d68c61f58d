//! Findings from the probe of a server.

use std::time::Duration;

use mcpact::connection::ConnectError;
use mcpact_config::ServerName;
use mcpact_gateway::Target;
use mcpact_spec::Method;
use mcpact_transport::error::TransportError;

use super::{Finding, Subject, tools};
use crate::error::Exit;
use crate::probe::dialogue::{Carrier, Dialogue, Entry};
use crate::probe::violations::Rule;
use crate::probe::{Probe, failure, failure_exit, stderr_of};

/// Start time after which some clients give up.
const SLOW_START: Duration = Duration::from_secs(10);

/// Number of violations that are shown.
const SHOWN: usize = 3;

/// Returns the findings of a probe.
pub(super) fn findings(probe: &Probe, target: &Target, name: Option<&ServerName>) -> Vec<Finding> {
    let Some(first) = probe.attempts.first() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Target::Url { url, .. } = target {
        findings.extend(network(first.outcome.as_ref().err(), url));
    }
    match &first.outcome {
        Ok(agreement) => {
            if probe.carrier == Carrier::Http {
                let text = "the server accepts the credentials, or needs none";
                findings.push(Finding::ok(Subject::Authentication, text));
            }
            findings.extend(start(probe.carrier, first.connect_time));
            findings.extend(stdout(probe));
            let revision = agreement.pact.revision();
            let text = format!("revision {revision}");
            findings.push(Finding::ok(Subject::Negotiation, text));
            for method in &agreement.unanswered {
                findings.push(Finding::problem(
                    Subject::Negotiation,
                    format!("no response to `{method}`"),
                    "check the output of the server, or pass a longer `--timeout`",
                ));
            }
            findings.extend(protocol(probe));
            let names = tool_names(probe);
            findings.extend(tools::findings(&names, name.map(ServerName::as_str)));
        }
        Err(error) => {
            findings.extend(stdout(probe));
            findings.extend(refused(error, probe.carrier));
            findings.extend(protocol(probe));
        }
    }
    findings
}

/// Findings about the connection to a URL.
fn network(error: Option<&ConnectError>, url: &str) -> Vec<Finding> {
    let is_tls = url.starts_with("https://");
    let connected = Finding::ok(Subject::Network, "connected");
    let trusted = Finding::ok(Subject::Tls, "the certificate is trusted");
    match error {
        Some(ConnectError::Transport(source @ TransportError::Certificate { remedy, .. })) => {
            vec![
                connected,
                Finding::problem(Subject::Tls, source.to_string(), *remedy),
            ]
        }
        Some(error @ ConnectError::Transport(_)) => {
            let explained = failure::explain(error);
            let remedy = explained.fixes.first().cloned().unwrap_or_default();
            vec![Finding::problem(Subject::Network, explained.cause, remedy)]
        }
        Some(_) | None if is_tls => vec![connected, trusted],
        Some(_) | None => vec![connected],
    }
}

fn start(carrier: Carrier, time: Duration) -> Option<Finding> {
    let text = format!("ready after {} ms", time.as_millis());
    match carrier {
        Carrier::Http => None,
        Carrier::Stdio if time > SLOW_START => Some(Finding::warning(
            Subject::Start,
            format!(
                "{text}; some clients give up after {} s",
                SLOW_START.as_secs()
            ),
            "install the package once instead of downloading it at every start",
        )),
        Carrier::Stdio => Some(Finding::ok(Subject::Start, text)),
    }
}

/// Findings about lines on stdout that are no messages.
fn stdout(probe: &Probe) -> Option<Finding> {
    if probe.carrier != Carrier::Stdio {
        return None;
    }
    let noise: usize = probe
        .attempts
        .iter()
        .map(|attempt| {
            let dialogue = Dialogue::new(&attempt.record, probe.carrier, None);
            let entries = dialogue.entries.iter();
            entries
                .filter(|entry| matches!(entry, Entry::NotJson(_)))
                .count()
        })
        .sum();
    let has_messages = probe.attempts.iter().any(|attempt| attempt.outcome.is_ok());
    match noise {
        0 if has_messages => Some(Finding::ok(Subject::Stdout, "only messages")),
        0 => None,
        lines => Some(Finding::problem(
            Subject::Stdout,
            format!(
                "{} on stdout that {} no message; some clients disconnect",
                crate::report::count(lines, "line"),
                if lines == 1 { "is" } else { "are" }
            ),
            "write logs to stderr; stdout is only for messages",
        )),
    }
}

fn protocol(probe: &Probe) -> Vec<Finding> {
    // Noise has its own finding, and tool names have theirs.
    let other = [Rule::NotJson.as_str(), Rule::ToolName.as_str()];
    let own: Vec<_> = probe
        .violations
        .iter()
        .filter(|violation| !other.contains(&violation.rule))
        .collect();
    let mut findings: Vec<Finding> = own
        .iter()
        .take(SHOWN)
        .map(|violation| {
            let text = format!("{}: {}", violation.rule, violation.detail);
            Finding::warning(
                Subject::Protocol,
                text,
                format!("correct the server; see {}", violation.section),
            )
        })
        .collect();
    if own.len() > SHOWN {
        findings.push(Finding::warning(
            Subject::Protocol,
            format!("{} more violations of the specification", own.len() - SHOWN),
            "run `mcpact probe` with the same target to see all of them",
        ));
    }
    findings
}

/// Finding about a server that could not be used.
fn refused(error: &ConnectError, carrier: Carrier) -> Option<Finding> {
    // The network has its own finding.
    if carrier == Carrier::Http && matches!(error, ConnectError::Transport(_)) {
        return None;
    }
    let explained = failure::explain(error);
    let subject = match (failure_exit(error), error) {
        (Exit::Auth, _) => Subject::Authentication,
        (Exit::Refused, _) => Subject::Negotiation,
        (_, ConnectError::Exited { .. } | ConnectError::Transport(_)) => Subject::Start,
        _ => Subject::Negotiation,
    };
    let last = stderr_of(error).lines().last().unwrap_or_default();
    let text = match last {
        "" => explained.cause,
        last => format!("{}; stderr: {last}", explained.cause),
    };
    let remedy = explained.fixes.first().cloned().unwrap_or_default();
    Some(Finding::problem(subject, text, remedy))
}

/// Returns the names of the tools that the server lists.
fn tool_names(probe: &Probe) -> Vec<String> {
    let Some(first) = probe.attempts.first() else {
        return Vec::new();
    };
    let dialogue = Dialogue::new(&first.record, probe.carrier, None);
    let results = dialogue.results();
    let lists = results.filter(|(method, _)| *method == Method::ToolsList);
    let tools = lists.filter_map(|(_, result)| result.get("tools")?.as_array());
    let names = tools
        .flatten()
        .filter_map(|tool| tool.get("name")?.as_str());
    names.map(str::to_owned).collect()
}
