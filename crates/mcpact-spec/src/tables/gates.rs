//! Capabilities that a message requires.

use crate::{Capability, Extension, Feature, Method, Revision, Side};

/// The condition under which a method may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// No capability is needed.
    Open,
    /// The owner of this capability must have declared it.
    Needs(Capability),
    /// One of these must have been declared.
    NeedsAny(&'static [Capability]),
    /// The receiver of the message must have declared its own variant.
    OfReceiver {
        /// Asked when the client receives.
        client: Capability,
        /// Asked when the server receives.
        server: Capability,
    },
    /// The sender of the message must have declared its own variant.
    OfSender {
        /// Asked when the client sends.
        client: Capability,
        /// Asked when the server sends.
        server: Capability,
    },
    /// Both sides must have declared the extension.
    Shared(Extension),
    /// The server must have declared the extension, with this setting if there is one.
    OfServer(Extension, Option<&'static str>),
}

impl Gate {
    /// The single capability that this gate asks when `sender` speaks, if it is a single one.
    #[must_use]
    pub const fn capability(self, sender: Side) -> Option<Capability> {
        match (self, sender) {
            (Self::Needs(capability), _) => Some(capability),
            (Self::OfReceiver { client, .. }, Side::Server)
            | (Self::OfSender { client, .. }, Side::Client) => Some(client),
            (Self::OfReceiver { server, .. }, Side::Client)
            | (Self::OfSender { server, .. }, Side::Server) => Some(server),
            (Self::Open | Self::NeedsAny(_) | Self::Shared(_) | Self::OfServer(..), _) => None,
        }
    }
}

/// Sign in the parameters of a request that a sub-capability is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamProbe {
    /// The member is there and not null.
    Present(&'static str),
    /// The member is a string with one of these values.
    Equals(&'static str, &'static [&'static str]),
    /// The member is absent or has this value.
    AbsentOr(&'static str, &'static str),
}

/// Reaction of a receiver to the use of a sub-capability that it did not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// Refuse the request: the parameters are not acceptable.
    Refuse,
    /// Serve the request as if the member were not there.
    Ignore,
}

/// A capability that is needed only for some parameters of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParamGate {
    /// The method.
    pub method: Method,
    /// Sign of the use.
    pub probe: ParamProbe,
    /// The capability that must have been declared.
    pub capability: Capability,
    /// Reaction of the receiver to its absence; a sender always refrains.
    pub violation: Violation,
    /// The rule holds in revisions with this feature.
    pub since: Feature,
}

/// Every parameter gate.
pub const PARAM_GATES: &[ParamGate] = &[
    ParamGate {
        method: Method::ToolsCall,
        probe: ParamProbe::Present("task"),
        capability: Capability::ServerTasksToolsCall,
        violation: Violation::Ignore,
        since: Feature::TasksCore,
    },
    ParamGate {
        method: Method::SamplingCreateMessage,
        probe: ParamProbe::Present("tools"),
        capability: Capability::SamplingTools,
        violation: Violation::Refuse,
        since: Feature::SamplingTools,
    },
    ParamGate {
        method: Method::SamplingCreateMessage,
        probe: ParamProbe::Present("toolChoice"),
        capability: Capability::SamplingTools,
        violation: Violation::Refuse,
        since: Feature::SamplingTools,
    },
    ParamGate {
        method: Method::SamplingCreateMessage,
        probe: ParamProbe::Equals("includeContext", &["thisServer", "allServers"]),
        capability: Capability::SamplingContext,
        violation: Violation::Ignore,
        since: Feature::SamplingTools,
    },
    ParamGate {
        method: Method::SamplingCreateMessage,
        probe: ParamProbe::Present("task"),
        capability: Capability::ClientTasksSampling,
        violation: Violation::Ignore,
        since: Feature::TasksCore,
    },
    ParamGate {
        method: Method::ElicitationCreate,
        probe: ParamProbe::AbsentOr("mode", "form"),
        capability: Capability::ElicitationForm,
        violation: Violation::Refuse,
        since: Feature::ElicitationForm,
    },
    ParamGate {
        method: Method::ElicitationCreate,
        probe: ParamProbe::Equals("mode", &["url"]),
        capability: Capability::ElicitationUrl,
        violation: Violation::Refuse,
        since: Feature::ElicitationForm,
    },
    ParamGate {
        method: Method::ElicitationCreate,
        probe: ParamProbe::Present("task"),
        capability: Capability::ClientTasksElicitation,
        violation: Violation::Ignore,
        since: Feature::TasksCore,
    },
];

impl ParamGate {
    /// The gates of a method under a revision.
    pub fn of(method: Method, revision: Revision) -> impl Iterator<Item = &'static Self> {
        PARAM_GATES
            .iter()
            .filter(move |g| g.method == method && revision.has(g.since))
    }
}
