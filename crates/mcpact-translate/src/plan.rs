//! Fate of a message between a client and a server.
//!
//! [`plan`] decides whether a message is forwarded, or which machine of this crate answers it;
//! [`request_params`] translates the parameters. Both look at nothing but tables and the members
//! that they name.

mod params;

use mcpact_spec::{Era, Feature, Method, Revision, Role};

pub use params::{
    request_params, with_capabilities, with_progress_token, with_reported_token,
    without_progress_token,
};

/// Fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Both sides have the same revision: it is forwarded unchanged.
    Pass,
    /// The server has the newer revision: both directions are translated.
    NewerServer,
    /// The server has the older revision: both directions are translated.
    OlderServer,
    /// It is not forwarded; this machine answers it, or decides what is sent instead.
    Emulate(Machine),
}

/// Part of this crate that answers a message which is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// The handshake with a legacy client, `initialize` and its notification
    /// ([`lifecycle`](crate::lifecycle)).
    Initialize,
    /// The introduction to a modern client ([`lifecycle`](crate::lifecycle)).
    Discover,
    /// An empty result, from either side.
    Ping,
    /// The level of a session, kept by the gateway.
    SetLevel,
    /// Log messages, filtered for the request that wants them
    /// ([`logging::RequestLogLevels`](crate::logging::RequestLogLevels)).
    Log,
    /// A subscription of a legacy client
    /// ([`listen::LegacySubscriptions`](crate::listen::LegacySubscriptions)).
    Subscribe,
    /// The end of such a subscription.
    Unsubscribe,
    /// A stream of changes for a modern client, or from a modern server
    /// ([`listen`](crate::listen)).
    Listen,
    /// Tasks of 2025-11-25 that are hosted here ([`tasks::HostedTasks`](crate::tasks::HostedTasks)).
    TasksCore,
    /// Tasks of the extension, in front of tasks of 2025-11-25
    /// ([`tasks::MappedTasks`](crate::tasks::MappedTasks)).
    TasksExtension,
    /// A question of a legacy server that a modern client finds in a result.
    Input,
    /// Progress, under the token of the requester ([`progress`](crate::progress)).
    Progress,
    /// A cancellation: an id is valid only on its own connection.
    Cancel,
    /// A notification that has no meaning on the other side.
    Drop,
    /// None: the sender may not send it, or the other side has nothing like it.
    Refuse,
}

/// Cell of the table: forwarded between these eras, or answered here.
#[derive(Clone, Copy)]
enum Cell {
    Cross,
    Here(Machine),
}

/// The columns: client and server both legacy; legacy client, modern server; modern client, legacy
/// server; both modern.
type Row = [Cell; 4];

use Cell::{Cross, Here};

const REFUSED: Cell = Here(Machine::Refuse);
const DROPPED: Cell = Here(Machine::Drop);
const EVERYWHERE: Row = [Cross; 4];
/// Messages that a legacy server may push at any time, and a modern one only on a stream.
const CHANGES: Row = [
    Cross,
    Here(Machine::Listen),
    Here(Machine::Listen),
    Here(Machine::Listen),
];
/// A modern server asks in its results, never by a request.
const QUESTION: Row = [Cross, REFUSED, Here(Machine::Input), REFUSED];

const fn here(machine: Machine) -> Row {
    [Here(machine); 4]
}

const fn legacy_subscription(machine: Machine) -> Row {
    [Cross, Here(machine), REFUSED, REFUSED]
}

const fn row(method: Method) -> Row {
    match method {
        Method::Initialize | Method::Initialized => here(Machine::Initialize),
        Method::Discover => here(Machine::Discover),
        Method::Ping => here(Machine::Ping),
        Method::ToolsList
        | Method::ToolsCall
        | Method::PromptsList
        | Method::PromptsGet
        | Method::ResourcesList
        | Method::ResourceTemplatesList
        | Method::ResourcesRead
        | Method::CompletionComplete
        | Method::SkillsList
        | Method::SkillsGet
        | Method::ResourcesDirectoryRead => EVERYWHERE,
        #[cfg(feature = "pretend-revision")]
        Method::ToolsDescribe => EVERYWHERE,
        Method::ToolsListChanged
        | Method::PromptsListChanged
        | Method::ResourcesListChanged
        | Method::ResourcesUpdated => CHANGES,
        Method::ResourcesSubscribe => legacy_subscription(Machine::Subscribe),
        Method::ResourcesUnsubscribe => legacy_subscription(Machine::Unsubscribe),
        Method::LoggingSetLevel => legacy_subscription(Machine::SetLevel),
        Method::LoggingMessage => [Cross, Cross, Here(Machine::Log), Cross],
        Method::SubscriptionsListen | Method::SubscriptionsAcknowledged => here(Machine::Listen),
        Method::RootsList | Method::SamplingCreateMessage | Method::ElicitationCreate => QUESTION,
        Method::RootsListChanged => [Cross, DROPPED, DROPPED, DROPPED],
        Method::ElicitationComplete => [Cross, DROPPED, Here(Machine::Input), DROPPED],
        Method::Progress => here(Machine::Progress),
        Method::Cancelled => here(Machine::Cancel),
        Method::TasksGet | Method::TasksCancel => [
            Cross,
            Here(Machine::TasksCore),
            Here(Machine::TasksExtension),
            Cross,
        ],
        Method::TasksResult | Method::TasksList => {
            [Cross, Here(Machine::TasksCore), REFUSED, REFUSED]
        }
        Method::TasksUpdate => [REFUSED, REFUSED, Here(Machine::TasksExtension), Cross],
        Method::TasksStatus => [Cross, DROPPED, Here(Machine::TasksExtension), DROPPED],
        Method::TasksChanged => [
            DROPPED,
            Here(Machine::TasksCore),
            DROPPED,
            Here(Machine::Listen),
        ],
    }
}

/// Decides the fate of a message between a client of revision `downstream` and a server of revision
/// `upstream`, whichever of them sent it. A method that no table knows crosses.
#[must_use]
pub const fn plan(method: Option<Method>, downstream: Revision, upstream: Revision) -> Plan {
    let cell = match method {
        Some(method) => row(method)[column(downstream, upstream)],
        None => Cross,
    };
    match cell {
        Here(machine) => Plan::Emulate(narrowed(machine, downstream, upstream)),
        Cross => match method {
            Some(method) if lacks(method, downstream) || lacks(method, upstream) => {
                Plan::Emulate(unheard(method, downstream, upstream))
            }
            Some(_) | None => between(downstream, upstream),
        },
    }
}

const fn lacks(method: Method, revision: Revision) -> bool {
    matches!(method.role(revision), Role::Absent)
}

/// Fate of a message to a side that has no such method.
const fn unheard(method: Method, downstream: Revision, upstream: Revision) -> Machine {
    let is_note = is_note(method.role(downstream)) || is_note(method.role(upstream));
    if is_note {
        Machine::Drop
    } else {
        Machine::Refuse
    }
}

const fn is_note(role: Role) -> bool {
    matches!(role, Role::ClientNote | Role::ServerNote | Role::EitherNote)
}

const fn column(downstream: Revision, upstream: Revision) -> usize {
    match (downstream.era(), upstream.era()) {
        (Era::Legacy, Era::Legacy) => 0,
        (Era::Legacy, Era::Modern) => 1,
        (Era::Modern, Era::Legacy) => 2,
        (Era::Modern, Era::Modern) => 3,
    }
}

const fn between(downstream: Revision, upstream: Revision) -> Plan {
    if downstream.index() == upstream.index() {
        Plan::Pass
    } else if downstream.index() < upstream.index() {
        Plan::NewerServer
    } else {
        Plan::OlderServer
    }
}

/// Core tasks need a side that has them; the others never heard of any.
const fn narrowed(machine: Machine, downstream: Revision, upstream: Revision) -> Machine {
    let lacks_tasks = (matches!(machine, Machine::TasksCore)
        && !downstream.has(Feature::TasksCore))
        || (matches!(machine, Machine::TasksExtension) && !upstream.has(Feature::TasksCore));
    if lacks_tasks {
        Machine::Refuse
    } else {
        machine
    }
}

#[cfg(test)]
mod tests;
