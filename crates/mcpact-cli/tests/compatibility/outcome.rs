//! The features, and what can come of one.

/// What a client uses of a server, or a server of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    Tools,
    Resources,
    Templates,
    Prompts,
    Completion,
    ElicitationForm,
    ElicitationUrl,
    Sampling,
    Roots,
    Logging,
    Progress,
    Cancellation,
    Subscriptions,
    ListChanged,
    Tasks,
    Pagination,
    Errors,
}

impl Feature {
    pub(crate) const ALL: [Self; 17] = [
        Self::Tools,
        Self::Resources,
        Self::Templates,
        Self::Prompts,
        Self::Completion,
        Self::ElicitationForm,
        Self::ElicitationUrl,
        Self::Sampling,
        Self::Roots,
        Self::Logging,
        Self::Progress,
        Self::Cancellation,
        Self::Subscriptions,
        Self::ListChanged,
        Self::Tasks,
        Self::Pagination,
        Self::Errors,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resource templates",
            Self::Prompts => "prompts",
            Self::Completion => "completion",
            Self::ElicitationForm => "elicitation by form",
            Self::ElicitationUrl => "elicitation by URL",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::Logging => "logging",
            Self::Progress => "progress",
            Self::Cancellation => "cancellation",
            Self::Subscriptions => "subscriptions",
            Self::ListChanged => "changed lists",
            Self::Tasks => "tasks",
            Self::Pagination => "pagination",
            Self::Errors => "errors",
        }
    }

    /// What the test does to show it.
    pub(crate) const fn shown_by(self) -> &'static str {
        match self {
            Self::Tools => {
                "lists the tools, calls one that gives text and one that gives structured content"
            }
            Self::Resources => "lists the resources, reads a text and a picture",
            Self::Templates => "lists the templates, reads a resource that one of them describes",
            Self::Prompts => "lists the prompts, gets one with its arguments filled in",
            Self::Completion => "asks for the rest of an argument of a prompt",
            Self::ElicitationForm => "calls a tool that asks the user to fill in a form",
            Self::ElicitationUrl => "calls a tool that asks the user to visit a page",
            Self::Sampling => "calls a tool that asks the client's model",
            Self::Roots => "calls a tool that asks for the client's roots",
            Self::Logging => {
                "asks for warnings and gets none, then for everything and gets all three messages"
            }
            Self::Progress => "calls a tool that tells three times how far it has come",
            Self::Cancellation => "gives up a call that would never end; the tool notices",
            Self::Subscriptions => "subscribes to a resource, and hears that it has changed",
            Self::ListChanged => "hears that the list of tools has changed",
            Self::Tasks => {
                "calls a tool as a task and fetches the result; a client without tasks calls a tool that insists on one"
            }
            Self::Pagination => "reads the list of tools in pages of ten",
            Self::Errors => "gets the right code for an unknown tool, resource and prompt",
        }
    }
}

/// What a client gets instead of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    StructuredContent,
    ProgressMessage,
    TaskWaitedFor,
    TaskAtOnce,
}

impl Loss {
    pub(crate) const fn how(self) -> &'static str {
        match self {
            Self::StructuredContent => {
                "structured content, which came with 2025-06-18, arrives as text"
            }
            Self::ProgressMessage => {
                "the message of a progress report, which came with 2025-03-26, is left out"
            }
            Self::TaskWaitedFor => {
                "the client has no tasks: the bridge waits for the task and gives its result"
            }
            Self::TaskAtOnce => "the server has no tasks: the call is answered when it is done",
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    Works,
    Degrades(Loss),
    /// A precise error, and its text.
    Refused(String),
    /// Anything else, which is a bug.
    Broken(String),
}
