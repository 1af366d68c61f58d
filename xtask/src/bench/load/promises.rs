//! Performance targets of whole servers and clients.

use super::{Findings, Row, Weight};

/// Direction of a target.
enum Promise {
    /// Our answers per second are at least so many times the rival's.
    Faster {
        contest: &'static str,
        open: &'static [u32],
        rival: &'static str,
        factor: f64,
    },
    /// A session weighs at most so many bytes.
    Lighter { stream: &'static str, bytes: f64 },
}

const BOTH: &[u32] = &[1, 32];
const MANY: &[u32] = &[32];

const fn faster(
    contest: &'static str,
    open: &'static [u32],
    rival: &'static str,
    factor: f64,
) -> Promise {
    Promise::Faster {
        contest,
        open,
        rival,
        factor,
    }
}

const PROMISES: &[Promise] = &[
    faster("server, HTTP, legacy", BOTH, "rmcp", 1.5),
    faster("server, HTTP, legacy", BOTH, "rmcp without sessions", 1.5),
    faster("server, HTTP, legacy", MANY, "floor", 0.6),
    faster("server, HTTP, modern", BOTH, "rmcp without sessions", 1.5),
    faster("server, HTTP, modern", MANY, "floor", 0.6),
    faster("server, stdio", MANY, "rmcp", 4.0),
    faster("server, stdio", MANY, "floor", 0.25),
    faster("client, HTTP, legacy", BOTH, "rmcp", 1.5),
    faster("client, HTTP, modern", BOTH, "rmcp", 1.5),
    Promise::Lighter {
        stream: "no stream",
        bytes: 8.0 * 1024.0,
    },
    Promise::Lighter {
        stream: "open stream",
        bytes: 32.0 * 1024.0,
    },
];

/// A promise and what became of it in this run.
pub(super) struct Outcome {
    pub(super) what: String,
    pub(super) promised: String,
    pub(super) seen: String,
    pub(super) is_met: bool,
}

/// Compares the findings with the promises; what was not measured is left out.
pub(super) fn judge(findings: &Findings) -> Vec<Outcome> {
    PROMISES
        .iter()
        .flat_map(|promise| match promise {
            Promise::Faster {
                contest,
                open,
                rival,
                factor,
            } => open
                .iter()
                .filter_map(|open| speed(findings, contest, *open, rival, *factor))
                .collect::<Vec<_>>(),
            Promise::Lighter { stream, bytes } => {
                weight(findings, stream, *bytes).into_iter().collect()
            }
        })
        .collect()
}

pub(super) fn speed(
    findings: &Findings,
    contest: &str,
    open: u32,
    rival: &str,
    factor: f64,
) -> Option<Outcome> {
    let find = |subject: &str| findings.find(contest, open, subject);
    let ratio = find("ours")?.rate / find(rival)?.rate;
    Some(Outcome {
        what: format!("{contest}, {open} open: against {rival}"),
        promised: format!("at least {factor:.2}x"),
        seen: format!("{ratio:.2}x"),
        is_met: ratio >= factor,
    })
}

fn weight(findings: &Findings, stream: &str, most: f64) -> Option<Outcome> {
    let mut ours = findings.weights.iter().filter(|w| w.subject == "ours");
    let weight = ours.find(|weight| weight.stream == stream)?;
    Some(lighter(weight, most))
}

pub(super) fn lighter(weight: &Weight, most: f64) -> Outcome {
    let Weight {
        subject,
        stream,
        bytes,
    } = weight;
    Outcome {
        what: format!("resident memory of an idle session, {subject}, {stream}"),
        promised: format!("at most {:.1} KiB", most / 1024.0),
        seen: format!("{:.1} KiB", bytes / 1024.0),
        is_met: *bytes <= most,
    }
}

impl Findings {
    pub(super) fn find(&self, contest: &str, open: u32, subject: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.contest == contest && row.open == open && row.subject == subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, rate: f64) -> Row {
        Row {
            contest: "server, stdio".to_owned(),
            open: 32,
            subject: subject.to_owned(),
            rate,
            p50: 1.0,
            p99: 1.0,
            cpu: 1.0,
            resident: None,
        }
    }

    fn judged(ours: f64, bytes: f64) -> Vec<(String, bool)> {
        let weight = Weight {
            subject: "ours".to_owned(),
            stream: "no stream".to_owned(),
            bytes,
        };
        let findings = Findings {
            rows: vec![row("ours", ours), row("rmcp", 10.0), row("floor", 100.0)],
            weights: vec![weight],
            failures: Vec::new(),
        };
        let outcomes = judge(&findings).into_iter();
        outcomes.map(|o| (o.seen, o.is_met)).collect()
    }

    #[test]
    fn a_ratio_of_one_run_decides_and_a_weight_has_a_limit() {
        let cells = |seen: &[(&str, bool)]| -> Vec<(String, bool)> {
            seen.iter()
                .map(|(s, met)| ((*s).to_owned(), *met))
                .collect()
        };
        let good = cells(&[("4.00x", true), ("0.40x", true), ("8.0 KiB", true)]);
        assert_eq!(judged(40.0, 8192.0), good);
        let bad = cells(&[("2.00x", false), ("0.20x", false), ("9.0 KiB", false)]);
        assert_eq!(judged(20.0, 9216.0), bad);
    }
}
