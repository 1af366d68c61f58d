//! Every capability path of every revision.

use crate::revision::columns;
use crate::{Revision, Side};

/// Status of a capability path in a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// The revision does not know the path.
    Undefined,
    /// The revision's schema defines it.
    Defined,
    /// Defined, with a note that it will go.
    Deprecated,
    /// Not spelled out, but meant by its parent.
    Implied,
    /// Not in the schema, yet used on the wire and harmless: an allowed unknown key.
    Tolerated,
    /// An older revision had it; this one took it away.
    Removed,
}

impl Presence {
    /// Returns whether a declaration of this path means anything under the revision.
    #[must_use]
    pub const fn counts(self) -> bool {
        match self {
            Self::Defined | Self::Deprecated | Self::Implied | Self::Tolerated => true,
            Self::Undefined | Self::Removed => false,
        }
    }

    /// Returns whether a peer that speaks the revision may be sent this path.
    #[must_use]
    pub const fn may_be_sent(self) -> bool {
        match self {
            Self::Defined | Self::Deprecated | Self::Tolerated => true,
            Self::Undefined | Self::Removed | Self::Implied => false,
        }
    }
}

/// The JSON shape that a capability path takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An object; present means supported, even when empty.
    Object,
    /// A boolean; absent means false.
    Flag,
    /// An object with free values.
    OpenMap,
    /// An object from identifier to settings object.
    SettingsMap,
}

macro_rules! capabilities {
    ($($name:ident = $owner:ident $path:literal $shape:ident [$($cell:ident)+] $doc:literal;)+) => {
        /// A capability path, owned by the side that declares it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability { $(#[doc = $doc] $name,)+ }

        impl Capability {
            /// All paths, client's first, parents before children.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The side that declares it.
            #[must_use]
            pub const fn owner(self) -> Side {
                match self { $(Self::$name => Side::$owner,)+ }
            }

            /// The dotted path in the owner's capability document.
            #[must_use]
            pub const fn path(self) -> &'static str {
                match self { $(Self::$name => $path,)+ }
            }

            /// The JSON shape of the value.
            #[must_use]
            pub const fn shape(self) -> Shape {
                match self { $(Self::$name => Shape::$shape,)+ }
            }

            /// Meaning, as a sentence for people.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $doc,)+ }
            }

            /// Status in the revision.
            #[must_use]
            pub const fn presence(self, revision: Revision) -> Presence {
                let row = match self { $(Self::$name => const { columns([$(Presence::$cell),+]) },)+ };
                row[revision.index()]
            }
        }
    };
}

capabilities! {
    ClientExperimental = Client "experimental" OpenMap [Defined Defined Defined Defined Defined]
        "Non-standard features of the client.";
    Roots = Client "roots" Object [Defined Defined Defined Defined Deprecated]
        "The client can list its filesystem roots.";
    RootsListChanged = Client "roots.listChanged" Flag [Defined Defined Defined Defined Removed]
        "The client tells when its roots change.";
    Sampling = Client "sampling" Object [Defined Defined Defined Defined Deprecated]
        "The client can run a model for the server.";
    SamplingTools = Client "sampling.tools" Object [Undefined Undefined Undefined Defined Defined]
        "The client accepts tools in a sampling request.";
    SamplingContext = Client "sampling.context" Object
        [Undefined Undefined Undefined Defined Deprecated]
        "The client can add context of its servers to a sampling request.";
    Elicitation = Client "elicitation" Object [Undefined Undefined Defined Defined Defined]
        "The client can ask the user for input.";
    ElicitationForm = Client "elicitation.form" Object
        [Undefined Undefined Implied Defined Defined]
        "The client can show the user a form.";
    ElicitationUrl = Client "elicitation.url" Object
        [Undefined Undefined Undefined Defined Defined]
        "The client can send the user to a URL.";
    ClientTasks = Client "tasks" Object [Undefined Undefined Undefined Defined Removed]
        "The client can run requests of the server as tasks.";
    ClientTasksList = Client "tasks.list" Object [Undefined Undefined Undefined Defined Removed]
        "The client lists its tasks.";
    ClientTasksCancel = Client "tasks.cancel" Object [Undefined Undefined Undefined Defined Removed]
        "The client cancels tasks on request.";
    ClientTasksSampling = Client "tasks.requests.sampling.createMessage" Object
        [Undefined Undefined Undefined Defined Removed]
        "The client can run sampling as a task.";
    ClientTasksElicitation = Client "tasks.requests.elicitation.create" Object
        [Undefined Undefined Undefined Defined Removed]
        "The client can run elicitation as a task.";
    ClientExtensions = Client "extensions" SettingsMap
        [Tolerated Tolerated Tolerated Tolerated Defined]
        "Extensions that the client supports, with settings.";

    ServerExperimental = Server "experimental" OpenMap [Defined Defined Defined Defined Defined]
        "Non-standard features of the server.";
    Logging = Server "logging" Object [Defined Defined Defined Defined Deprecated]
        "The server sends log messages.";
    Completions = Server "completions" Object [Undefined Defined Defined Defined Defined]
        "The server completes arguments.";
    Prompts = Server "prompts" Object [Defined Defined Defined Defined Defined]
        "The server offers prompts.";
    PromptsListChanged = Server "prompts.listChanged" Flag
        [Defined Defined Defined Defined Defined]
        "The server tells when its prompts change.";
    Resources = Server "resources" Object [Defined Defined Defined Defined Defined]
        "The server offers resources.";
    ResourcesSubscribe = Server "resources.subscribe" Flag
        [Defined Defined Defined Defined Defined]
        "The server tells when a chosen resource changes.";
    ResourcesListChanged = Server "resources.listChanged" Flag
        [Defined Defined Defined Defined Defined]
        "The server tells when its list of resources changes.";
    Tools = Server "tools" Object [Defined Defined Defined Defined Defined]
        "The server offers tools.";
    ToolsListChanged = Server "tools.listChanged" Flag [Defined Defined Defined Defined Defined]
        "The server tells when its tools change.";
    ServerTasks = Server "tasks" Object [Undefined Undefined Undefined Defined Removed]
        "The server can run requests of the client as tasks.";
    ServerTasksList = Server "tasks.list" Object [Undefined Undefined Undefined Defined Removed]
        "The server lists its tasks.";
    ServerTasksCancel = Server "tasks.cancel" Object [Undefined Undefined Undefined Defined Removed]
        "The server cancels tasks on request.";
    ServerTasksToolsCall = Server "tasks.requests.tools.call" Object
        [Undefined Undefined Undefined Defined Removed]
        "The server can run a tool as a task.";
    ServerExtensions = Server "extensions" SettingsMap
        [Tolerated Tolerated Tolerated Tolerated Defined]
        "Extensions that the server supports, with settings.";
}

impl Capability {
    /// The rows of one side.
    pub fn of(owner: Side) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |c| c.owner() == owner)
    }

    /// The row with this owner and path.
    #[must_use]
    pub fn parse(owner: Side, path: &str) -> Option<Self> {
        Self::of(owner).find(|c| c.path() == path)
    }

    /// The position in [`Capability::ALL`], for bit sets.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl core::fmt::Display for Capability {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.path())
    }
}
