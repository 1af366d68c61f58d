//! Every request and notification of every revision.

use crate::revision::columns;
use crate::{Capability, Era, Extension, Gate, Revision, Side};

/// Role of a method in one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The revision does not have it.
    Absent,
    /// A request that the client sends.
    ClientRequest,
    /// A request that the server sends.
    ServerRequest,
    /// A request that either side sends.
    EitherRequest,
    /// A notification that the client sends.
    ClientNote,
    /// A notification that the server sends.
    ServerNote,
    /// A notification that either side sends.
    EitherNote,
    /// Not a message: a question inside the server's result.
    EmbeddedInput,
}

/// Kind of message: with or without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It has an `id` and wants an answer.
    Request,
    /// It has no `id` and gets no answer.
    Notification,
}

impl Role {
    /// Returns whether `sender` may send the method as a message of this kind.
    #[must_use]
    pub const fn allows(self, sender: Side, kind: Kind) -> bool {
        match (self, sender, kind) {
            (Self::EitherRequest, _, Kind::Request)
            | (Self::EitherNote, _, Kind::Notification)
            | (Self::ClientRequest, Side::Client, Kind::Request)
            | (Self::ServerRequest, Side::Server, Kind::Request)
            | (Self::ClientNote, Side::Client, Kind::Notification)
            | (Self::ServerNote, Side::Server, Kind::Notification) => true,
            (
                Self::Absent
                | Self::EmbeddedInput
                | Self::ClientRequest
                | Self::ServerRequest
                | Self::EitherRequest
                | Self::ClientNote
                | Self::ServerNote
                | Self::EitherNote,
                _,
                _,
            ) => false,
        }
    }
}

/// In which eras a method name occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EraUse {
    /// Only legacy revisions have it.
    LegacyOnly,
    /// Only modern revisions have it.
    ModernOnly,
    /// Both have it, as the same message: the name alone does not tell the era.
    Ambiguous,
    /// Both have the name, but a legacy request is a modern embedded question.
    OtherCarrier,
}

macro_rules! methods {
    ($($(#[$cfg:meta])? $name:ident = $text:literal
        [$($role:ident)+ $(; $pretend:ident)?] $gate:expr;)+) => {
        /// A method name that at least one revision, or an extension, defines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method { $($(#[$cfg])? #[doc = concat!("`", $text, "`")] $name,)+ }

        impl Method {
            /// All methods, in table order.
            pub const ALL: &'static [Self] = &[$($(#[$cfg])? Self::$name,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($(#[$cfg])? Self::$name => $text,)+ }
            }

            /// The method with exactly this name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($(#[$cfg])? $text => Some(Self::$name),)+ _ => None }
            }

            /// Role of the method in the revision.
            #[must_use]
            pub const fn role(self, revision: Revision) -> Role {
                let row = match self {
                    $($(#[$cfg])? Self::$name => const {
                        let row = columns([$($role),+]);
                        $(let row = crate::revision::pretending(row, $pretend);)?
                        row
                    },)+
                };
                row[revision.index()]
            }

            /// Capability that the method requires in the revision.
            #[must_use]
            pub const fn gate(self, revision: Revision) -> Gate {
                let row: [Gate; Revision::COUNT] = match self {
                    $($(#[$cfg])? Self::$name => const { $gate },)+
                };
                row[revision.index()]
            }
        }
    };
}

use Role::Absent as None_;
use Role::ClientNote as NoteC;
use Role::ClientRequest as ReqC;
use Role::EitherNote as NoteE;
use Role::EitherRequest as ReqE;
use Role::EmbeddedInput as Input;
use Role::ServerNote as NoteS;
use Role::ServerRequest as ReqS;

/// The same gate in every revision.
const fn each(gate: Gate) -> [Gate; Revision::COUNT] {
    [gate; Revision::COUNT]
}

/// One gate in the legacy revisions, another in the modern ones.
const fn eras(legacy: Gate, modern: Gate) -> [Gate; Revision::COUNT] {
    let mut row = [legacy; Revision::COUNT];
    let mut column = 0;
    while column < Revision::COUNT {
        if matches!(Revision::ALL[column].era(), Era::Modern) {
            row[column] = modern;
        }
        column += 1;
    }
    row
}

const OPEN: [Gate; Revision::COUNT] = each(Gate::Open);
const TOOLS: [Gate; Revision::COUNT] = each(Gate::Needs(Capability::Tools));
const PROMPTS: [Gate; Revision::COUNT] = each(Gate::Needs(Capability::Prompts));
const RESOURCES: [Gate; Revision::COUNT] = each(Gate::Needs(Capability::Resources));
const SUBSCRIBE: [Gate; Revision::COUNT] = each(Gate::Needs(Capability::ResourcesSubscribe));
/// `ext-skills stable skills#capability-negotiation`: clients need not declare the extension.
const SKILLS: Gate = Gate::OfServer(Extension::Skills, None);
const DIRECTORIES: Gate = Gate::OfServer(Extension::Skills, Some("directoryRead"));
const TASKS_SHARED: Gate = Gate::Shared(Extension::Tasks);
const TASKS: Gate = Gate::OfReceiver {
    client: Capability::ClientTasks,
    server: Capability::ServerTasks,
};
/// 2024-11-05 has `completion/complete` but no capability for it; what it completes belongs to
/// prompts or resources, so one of these must be there.
const COMPLETION_2024: Gate = Gate::NeedsAny(&[Capability::Prompts, Capability::Resources]);
const COMPLETION: Gate = Gate::Needs(Capability::Completions);

methods! {
    Initialize = "initialize" [ReqC ReqC ReqC ReqC None_] OPEN;
    Initialized = "notifications/initialized" [NoteC NoteC NoteC NoteC None_] OPEN;
    Discover = "server/discover" [None_ None_ None_ None_ ReqC] OPEN;
    Ping = "ping" [ReqE ReqE ReqE ReqE None_] OPEN;
    ToolsList = "tools/list" [ReqC ReqC ReqC ReqC ReqC] TOOLS;
    ToolsCall = "tools/call" [ReqC ReqC ReqC ReqC ReqC] TOOLS;
    ToolsListChanged = "notifications/tools/list_changed" [NoteS NoteS NoteS NoteS NoteS]
        each(Gate::Needs(Capability::ToolsListChanged));
    PromptsList = "prompts/list" [ReqC ReqC ReqC ReqC ReqC] PROMPTS;
    PromptsGet = "prompts/get" [ReqC ReqC ReqC ReqC ReqC] PROMPTS;
    PromptsListChanged = "notifications/prompts/list_changed" [NoteS NoteS NoteS NoteS NoteS]
        each(Gate::Needs(Capability::PromptsListChanged));
    ResourcesList = "resources/list" [ReqC ReqC ReqC ReqC ReqC] RESOURCES;
    ResourceTemplatesList = "resources/templates/list" [ReqC ReqC ReqC ReqC ReqC] RESOURCES;
    ResourcesRead = "resources/read" [ReqC ReqC ReqC ReqC ReqC] RESOURCES;
    ResourcesSubscribe = "resources/subscribe" [ReqC ReqC ReqC ReqC None_] SUBSCRIBE;
    ResourcesUnsubscribe = "resources/unsubscribe" [ReqC ReqC ReqC ReqC None_] SUBSCRIBE;
    ResourcesListChanged = "notifications/resources/list_changed" [NoteS NoteS NoteS NoteS NoteS]
        each(Gate::Needs(Capability::ResourcesListChanged));
    ResourcesUpdated = "notifications/resources/updated" [NoteS NoteS NoteS NoteS NoteS] SUBSCRIBE;
    CompletionComplete = "completion/complete" [ReqC ReqC ReqC ReqC ReqC]
        columns([COMPLETION_2024, COMPLETION, COMPLETION, COMPLETION, COMPLETION]);
    LoggingSetLevel = "logging/setLevel" [ReqC ReqC ReqC ReqC None_]
        each(Gate::Needs(Capability::Logging));
    LoggingMessage = "notifications/message" [NoteS NoteS NoteS NoteS NoteS]
        each(Gate::Needs(Capability::Logging));
    SubscriptionsListen = "subscriptions/listen" [None_ None_ None_ None_ ReqC] OPEN;
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged"
        [None_ None_ None_ None_ NoteS] OPEN;
    RootsList = "roots/list" [ReqS ReqS ReqS ReqS Input] each(Gate::Needs(Capability::Roots));
    RootsListChanged = "notifications/roots/list_changed" [NoteC NoteC NoteC NoteC None_]
        each(Gate::Needs(Capability::RootsListChanged));
    SamplingCreateMessage = "sampling/createMessage" [ReqS ReqS ReqS ReqS Input]
        each(Gate::Needs(Capability::Sampling));
    ElicitationCreate = "elicitation/create" [None_ None_ ReqS ReqS Input]
        each(Gate::Needs(Capability::Elicitation));
    ElicitationComplete = "notifications/elicitation/complete" [None_ None_ None_ NoteS None_]
        each(Gate::Needs(Capability::ElicitationUrl));
    Progress = "notifications/progress" [NoteE NoteE NoteE NoteE NoteS] OPEN;
    Cancelled = "notifications/cancelled" [NoteE NoteE NoteE NoteE NoteE] OPEN;
    TasksGet = "tasks/get" [None_ None_ None_ ReqE ReqC] eras(TASKS, TASKS_SHARED);
    TasksResult = "tasks/result" [None_ None_ None_ ReqE None_] each(TASKS);
    TasksCancel = "tasks/cancel" [None_ None_ None_ ReqE ReqC] eras(
        Gate::OfReceiver {
            client: Capability::ClientTasksCancel,
            server: Capability::ServerTasksCancel,
        },
        TASKS_SHARED,
    );
    TasksList = "tasks/list" [None_ None_ None_ ReqE None_] each(Gate::OfReceiver {
        client: Capability::ClientTasksList,
        server: Capability::ServerTasksList,
    });
    TasksUpdate = "tasks/update" [None_ None_ None_ None_ ReqC] each(TASKS_SHARED);
    TasksStatus = "notifications/tasks/status" [None_ None_ None_ NoteE None_]
        each(Gate::OfSender {
            client: Capability::ClientTasks,
            server: Capability::ServerTasks,
        });
    TasksChanged = "notifications/tasks" [None_ None_ None_ None_ NoteS] each(TASKS_SHARED);
    SkillsList = "skills/list" [None_ None_ None_ None_ ReqC] each(SKILLS);
    SkillsGet = "skills/get" [None_ None_ None_ None_ ReqC] each(SKILLS);
    ResourcesDirectoryRead = "resources/directory/read" [None_ None_ None_ None_ ReqC]
        each(DIRECTORIES);
    #[cfg(feature = "pretend-revision")]
    ToolsDescribe = "tools/describe" [None_ None_ None_ None_ None_; ReqC] TOOLS;
}

impl Method {
    /// In which eras the name occurs.
    #[must_use]
    pub fn era_use(self) -> EraUse {
        let in_era = |era: Era| {
            Revision::ALL
                .into_iter()
                .any(|r| r.era() == era && self.role(r) != Role::Absent)
        };
        let embedded = Revision::ALL
            .into_iter()
            .any(|r| self.role(r) == Role::EmbeddedInput);
        match (in_era(Era::Legacy), in_era(Era::Modern)) {
            (true, true) if embedded => EraUse::OtherCarrier,
            (true, true) => EraUse::Ambiguous,
            (true, false) => EraUse::LegacyOnly,
            (false, _) => EraUse::ModernOnly,
        }
    }

    /// The extension that defines the method under a modern revision, if the core does not.
    #[must_use]
    pub fn extension(self) -> Option<Extension> {
        let modern = |r: &Revision| r.era() == Era::Modern;
        let mut gates = Revision::ALL
            .into_iter()
            .filter(modern)
            .map(|r| self.gate(r));
        gates.find_map(|gate| match gate {
            Gate::Shared(extension) | Gate::OfServer(extension, _) => Some(extension),
            Gate::Open
            | Gate::Needs(_)
            | Gate::NeedsAny(_)
            | Gate::OfReceiver { .. }
            | Gate::OfSender { .. } => None,
        })
    }

    /// The member of `params` that the `Mcp-Name` header mirrors, if the method has one.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other method has no name"
    )]
    pub const fn name_param(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            Self::TasksGet | Self::TasksUpdate | Self::TasksCancel => Some("taskId"),
            _ => None,
        }
    }

    /// Returns whether a modern server may answer with `input_required`.
    #[must_use]
    pub const fn may_ask_for_input(self) -> bool {
        matches!(
            self,
            Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead
        )
    }

    /// Returns whether a modern result carries cache hints.
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::Discover
                | Self::ToolsList
                | Self::PromptsList
                | Self::ResourcesList
                | Self::ResourceTemplatesList
                | Self::ResourcesRead
                | Self::SkillsList
                | Self::SkillsGet
        )
    }

    /// Returns whether the result comes in pages.
    #[must_use]
    pub const fn is_paginated(self) -> bool {
        matches!(
            self,
            Self::ToolsList
                | Self::PromptsList
                | Self::ResourcesList
                | Self::ResourceTemplatesList
                | Self::TasksList
                | Self::SkillsList
                | Self::ResourcesDirectoryRead
        )
    }

    /// The method that a peer meant by a notification name without its prefix.
    ///
    /// Some servers in the field send `resources/list_changed`; we understand it, never send it.
    #[must_use]
    pub fn parse_alias(text: &str) -> Option<Self> {
        match text {
            "initialized" => Some(Self::Initialized),
            "tools/list_changed" | "tools/listChanged" => Some(Self::ToolsListChanged),
            "prompts/list_changed" | "prompts/listChanged" => Some(Self::PromptsListChanged),
            "resources/list_changed" | "resources/listChanged" => Some(Self::ResourcesListChanged),
            "resources/updated" => Some(Self::ResourcesUpdated),
            "roots/list_changed" | "roots/listChanged" => Some(Self::RootsListChanged),
            "progress" => Some(Self::Progress),
            "cancelled" => Some(Self::Cancelled),
            "message" => Some(Self::LoggingMessage),
            _ => None,
        }
    }
}

impl core::fmt::Display for Method {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}
