//! Features and their results.

/// A feature of the protocol.
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
    Apps,
    Skills,
    Pagination,
    Errors,
}

impl Feature {
    pub(crate) const ALL: [Self; 19] = [
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
        Self::Apps,
        Self::Skills,
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
            Self::Apps => "MCP Apps",
            Self::Skills => "skills",
            Self::Pagination => "pagination",
            Self::Errors => "errors",
        }
    }

    /// Describes the test.
    pub(crate) const fn shown_by(self) -> &'static str {
        match self {
            Self::Tools => {
                "lists the tools, calls one that returns text and one that returns structured content"
            }
            Self::Resources => "lists the resources, reads a text and an image",
            Self::Templates => "lists the templates, reads a resource of one of them",
            Self::Prompts => "lists the prompts, gets one with arguments",
            Self::Completion => "completes an argument of a prompt",
            Self::ElicitationForm => "calls a tool that requests form input",
            Self::ElicitationUrl => "calls a tool that requests a visit to a URL",
            Self::Sampling => "calls a tool that requests sampling",
            Self::Roots => "calls a tool that lists the client's roots",
            Self::Logging => {
                "sets the level to warning and gets no message, then to info and gets all three"
            }
            Self::Progress => "calls a tool that reports progress three times",
            Self::Cancellation => "cancels a call; the tool receives the cancellation",
            Self::Subscriptions => "subscribes to a resource and receives an update",
            Self::ListChanged => "receives a change of the tool list",
            Self::Tasks => {
                "calls a tool as a task and fetches the result; a client without tasks calls a tool that requires one"
            }
            Self::Apps => "finds the view of a tool and reads it, or calls the tool without it",
            Self::Skills => {
                "lists the skills, gets one of them, reads its files and its directory; other clients find a skill among the resources"
            }
            Self::Pagination => "lists the tools in pages of ten; at `/mcp` on one page",
            Self::Errors => "gets the specified code for an unknown tool, resource and prompt",
        }
    }
}

/// Degradation of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    StructuredContent,
    ProgressMessage,
    TaskWaitedFor,
    TaskAtOnce,
    AppAsText,
    SkillAsResource,
}

impl Loss {
    pub(crate) const fn how(self) -> &'static str {
        match self {
            Self::StructuredContent => "structured content (added in 2025-06-18) arrives as text",
            Self::ProgressMessage => {
                "the message of a progress notification (added in 2025-03-26) is omitted"
            }
            Self::TaskWaitedFor => {
                "the client has no tasks; the bridge waits for the task and returns its result"
            }
            Self::AppAsText => "tools name no view before 2025-06-18; the call returns text",
            Self::SkillAsResource => {
                "the methods of the extension need 2026-07-28 on both sides; skills are listed as resources"
            }
            Self::TaskAtOnce => "the server has no tasks; the call returns its result directly",
        }
    }
}

/// Observed result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    Works,
    Degrades(Loss),
    /// An error response, with its text.
    Refused(String),
    /// Anything else is a bug.
    Broken(String),
}
