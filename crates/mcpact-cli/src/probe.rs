//! Probe of a server: what it negotiates and why, independent of the output format.
//!
//! [`connect`] makes the connections, with the negotiation of the library. Everything else is derived from their outcome
//! and from the record of their messages.

pub(crate) mod connect;
pub(crate) mod dialogue;
pub(crate) mod failure;
pub(crate) mod record;
pub(crate) mod revisions;
pub(crate) mod violations;

use std::time::Duration;

use mcpact::connection::ConnectError;
use mcpact_engine::client::{ClientTerms, EraMode, Failure, ProbeFailure};
use mcpact_gateway::Target;
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_transport::stdio::child::Masks;

use self::connect::{Agreement, Attempt, Lists, attempt, carrier};
use self::dialogue::Carrier;
use self::revisions::{RevisionVerdict, revision_verdicts};
use self::violations::{Violation, violations};
use crate::error::Exit;

/// Settings of a probe.
#[derive(Clone, Debug)]
pub(crate) struct ProbeSettings {
    /// Name and capabilities of the client, and the eras to try.
    pub(crate) terms: ClientTerms,
    /// Time to wait for each answer.
    pub(crate) timeout: Duration,
    /// Which revisions are tried.
    pub(crate) scope: Scope,
    /// Secrets that are masked.
    pub(crate) masks: Masks,
}

/// Revisions that a probe tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One `server/discover` and one `initialize`.
    Eras,
    /// Only the revision of the terms.
    One,
    /// Every revision on its own.
    Matrix,
}

/// Result of a probe.
#[derive(Debug)]
pub(crate) struct Probe {
    /// Name of the target.
    pub(crate) target: String,
    /// Transport.
    pub(crate) carrier: Carrier,
    /// Connections; the first one negotiates like any client.
    pub(crate) attempts: Vec<Attempt>,
    /// Verdict on each revision.
    pub(crate) revisions: Vec<RevisionVerdict>,
    /// Violations of the specification.
    pub(crate) violations: Vec<Violation>,
}

impl Probe {
    /// Returns the agreement, or the reason for none.
    pub(crate) fn outcome(&self) -> Option<Result<&Agreement, &ConnectError>> {
        let first = self.attempts.first()?;
        Some(first.outcome.as_ref())
    }

    /// Returns the number of processes that were started.
    pub(crate) fn starts(&self) -> u32 {
        self.attempts.iter().map(|attempt| attempt.starts).sum()
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self.outcome() {
            Some(Ok(_)) => Exit::Ok,
            Some(Err(error)) => failure_exit(error),
            None => Exit::Unexpected,
        }
    }
}

/// Returns the exit code for a failed connection.
pub(crate) fn failure_exit(error: &ConnectError) -> Exit {
    match error {
        ConnectError::HttpStatus(refusal) if matches!(refusal.status, 401 | 403) => Exit::Auth,
        ConnectError::Negotiation { failure, .. } => match failure {
            Failure::Probe(ProbeFailure::Authentication(_)) => Exit::Auth,
            // A server in trouble, or a gateway whose server is.
            Failure::Rejected { code, .. }
                if ErrorCode::parse(*code) == Some(ErrorCode::InternalError) =>
            {
                Exit::Unreachable
            }
            Failure::Refused(_)
            | Failure::Rejected { .. }
            | Failure::Probe(ProbeFailure::Incompatible(_) | ProbeFailure::Refused(_)) => {
                Exit::Refused
            }
            Failure::Probe(_) | Failure::InitTimeout | Failure::ConnectionClosed => {
                Exit::Unreachable
            }
        },
        ConnectError::HttpStatus(_)
        | ConnectError::Transport(_)
        | ConnectError::NotMcp { .. }
        | ConnectError::Exited { .. } => Exit::Unreachable,
    }
}

/// Returns the end of the stderr of a server that could not be used.
pub(crate) fn stderr_of(error: &ConnectError) -> &str {
    match error {
        ConnectError::Exited { stderr, .. } | ConnectError::Negotiation { stderr, .. } => {
            stderr.trim()
        }
        ConnectError::Transport(_) | ConnectError::NotMcp { .. } | ConnectError::HttpStatus(_) => {
            ""
        }
    }
}

/// Returns the largest number of processes that a probe starts.
pub(crate) const fn max_starts(scope: Scope) -> usize {
    match scope {
        Scope::One | Scope::Eras => 2,
        // One for the modern revision, or two if it ends the server, and one for each legacy revision.
        Scope::Matrix => Revision::COUNT + 1,
    }
}

/// Probes a server. Its processes run one after the other.
pub(crate) async fn probe(target: &Target, name: String, settings: &ProbeSettings) -> Probe {
    let connect = |mode, lists| {
        let mut terms = settings.terms.clone();
        terms.mode = mode;
        attempt(
            target,
            terms,
            settings.masks.clone(),
            settings.timeout,
            lists,
        )
    };
    let first = connect(settings.terms.mode, Lists::Read).await;
    let mut attempts = vec![first];
    for mode in follow_ups(settings.scope, &attempts) {
        attempts.push(connect(mode, Lists::Skip).await);
    }
    let carrier = carrier(target);
    let revisions = revision_verdicts(&attempts, carrier);
    let violations = all_violations(&attempts, carrier);
    Probe {
        target: name,
        carrier,
        attempts,
        revisions,
        violations,
    }
}

/// Returns the modes of the connections after the first.
fn follow_ups(scope: Scope, attempts: &[Attempt]) -> Vec<EraMode> {
    let Some(first) = attempts.first() else {
        return Vec::new();
    };
    let agreed = first.outcome.as_ref().ok();
    let era = agreed.map(|agreement| agreement.pact.era());
    match (scope, era) {
        // A legacy server has answered `initialize` on the first connection.
        (Scope::Eras, Some(Era::Modern)) => vec![EraMode::Legacy],
        (Scope::Eras | Scope::One, _) => Vec::new(),
        (Scope::Matrix, _) if is_unusable(first) => Vec::new(),
        (Scope::Matrix, _) => {
            let tried = revisions::offered(first);
            let legacy = Revision::ALL.into_iter().rev();
            let legacy = legacy.filter(|revision| revision.era() == Era::Legacy);
            let open = legacy.filter(|revision| !tried.contains(revision));
            open.map(EraMode::Pin).collect()
        }
    }
}

/// Returns whether more connections would fail for the same reason.
fn is_unusable(first: &Attempt) -> bool {
    let failure = first.outcome.as_ref().err();
    failure.is_some_and(|error| failure_exit(error) != Exit::Refused)
}

fn all_violations(attempts: &[Attempt], carrier: Carrier) -> Vec<Violation> {
    let mut all: Vec<Violation> = Vec::new();
    for attempt in attempts {
        let pact = attempt.outcome.as_ref().ok();
        let pact = pact.map(|agreement| &*agreement.pact);
        let asked = match attempt.mode {
            EraMode::Pin(revision) => revision,
            EraMode::Modern => Revision::newest(Era::Modern),
            EraMode::Auto | EraMode::Legacy => Revision::newest(Era::Legacy),
        };
        for violation in violations(&attempt.record, carrier, pact, asked) {
            let is_known = |known: &Violation| {
                known.rule == violation.rule && known.detail == violation.detail
            };
            if !all.iter().any(is_known) {
                all.push(violation);
            }
        }
    }
    all
}
