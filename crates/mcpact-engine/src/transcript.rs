//! The transcript of a negotiation: what was offered, answered, decided and left out, and why.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::{Revision, Side};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::capability::{CapabilitySet, Trimmed};
use crate::pact::Pact;
use crate::refusal::{Dialect, Refusal};
use crate::version::Chosen;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(
    tag = "event",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum TranscriptEvent {
    /// A side said what it has.
    Declared {
        /// Side.
        side: &'static str,
        /// The versions that it named.
        versions: Vec<String>,
        /// Its document.
        capabilities: Box<RawValue>,
    },
    /// Something in a document was forgiven.
    Forgiven {
        /// Owner of the document.
        side: &'static str,
        /// The path.
        path: String,
        /// Fault.
        detail: String,
    },
    /// The version was chosen.
    Selected {
        /// The version.
        revision: &'static str,
        /// Its era.
        era: &'static str,
        /// Reason for the choice.
        how: Chosen,
    },
    /// A declaration that has no effect.
    Dropped {
        /// Side that declared it.
        side: &'static str,
        /// The path.
        path: String,
        /// Reason.
        why: &'static str,
    },
    /// A path that is left out of what this side sends.
    Trimmed {
        /// Side.
        side: &'static str,
        /// The path.
        path: String,
        /// Reason.
        why: &'static str,
    },
    /// A step of finding out the peer's era.
    Probed {
        /// Observation.
        saw: String,
        /// Conclusion.
        concluded: String,
    },
    /// The peers agreed.
    Agreed {
        /// On this version.
        revision: &'static str,
    },
    /// They did not.
    Refused {
        /// A stable word.
        reason: &'static str,
        /// The code that the peer sees.
        code: i64,
        /// The text for the log.
        detail: String,
    },
}

/// Limit of events in a transcript.
const LIMIT: usize = 256;

/// The transcript of one negotiation.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Transcript {
    events: Vec<TranscriptEvent>,
}

impl Transcript {
    /// Events in their order.
    #[must_use]
    pub fn events(&self) -> &[TranscriptEvent] {
        &self.events
    }

    fn note(&mut self, event: TranscriptEvent) {
        if self.events.len() < LIMIT {
            self.events.push(event);
        }
    }

    fn note_all(&mut self, events: impl Iterator<Item = TranscriptEvent>) {
        events.for_each(|event| self.note(event));
    }

    /// Notes a declaration and what was forgiven in it.
    pub fn declared<'v>(
        &mut self,
        set: &CapabilitySet,
        versions: impl IntoIterator<Item = &'v str>,
    ) {
        let side = set.owner().as_str();
        // The document was scanned before; an unserialisable one is recorded as an empty object.
        let raw = RawValue::from_string(set.raw().to_string()).unwrap_or_default();
        self.note(TranscriptEvent::Declared {
            side,
            versions: versions.into_iter().map(String::from).collect(),
            capabilities: raw,
        });
        for fault in set.findings() {
            self.note(TranscriptEvent::Forgiven {
                side,
                path: fault.path.clone(),
                detail: fault.to_string(),
            });
        }
    }

    /// Notes the choice of a version.
    pub fn selected(&mut self, revision: Revision, how: Chosen) {
        self.note(TranscriptEvent::Selected {
            revision: revision.as_str(),
            era: revision.era().as_str(),
            how,
        });
    }

    /// Notes what a side leaves out of what it sends.
    pub fn trimmed(&mut self, side: Side, all: Vec<Trimmed>) {
        let side = side.as_str();
        self.note_all(all.into_iter().map(|t| TranscriptEvent::Trimmed {
            side,
            path: t.path,
            why: t.why,
        }));
    }

    /// Notes a step of the probe.
    pub fn probed(&mut self, saw: impl Into<String>, concluded: impl Into<String>) {
        self.note(TranscriptEvent::Probed {
            saw: saw.into(),
            concluded: concluded.into(),
        });
    }

    /// Notes the agreement, and every declaration that came to nothing.
    pub fn agreed(&mut self, pact: &Pact) {
        for dropped in pact.ignored() {
            self.note(TranscriptEvent::Dropped {
                side: dropped.owner.as_str(),
                path: dropped.path.into(),
                why: dropped.why.explain(),
            });
        }
        self.note(TranscriptEvent::Agreed {
            revision: pact.revision().as_str(),
        });
    }

    /// Notes a refusal.
    pub fn refused(&mut self, refusal: &Refusal, dialect: Dialect) {
        self.note(TranscriptEvent::Refused {
            reason: refusal.reason(),
            code: refusal.on_wire(dialect).code,
            detail: refusal.log_text(),
        });
    }
}
