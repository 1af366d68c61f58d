//! Pages of the specification that describe a method.

use crate::{Era, Method, Revision};

impl Method {
    /// The page of the revision that describes the method, without its file ending.
    ///
    /// For a revision that does not have the method, the page that would.
    #[must_use]
    pub const fn page(self, revision: Revision) -> &'static str {
        let is_modern = matches!(revision.era(), Era::Modern);
        match self {
            Self::Initialize | Self::Initialized if is_modern => "basic/versioning",
            Self::Initialize | Self::Initialized => "basic/lifecycle",
            Self::Discover => "server/discover",
            Self::Ping if is_modern => "changelog",
            Self::Ping => "basic/utilities/ping",
            Self::ToolsList | Self::ToolsCall | Self::ToolsListChanged => "server/tools",
            #[cfg(feature = "pretend-revision")]
            Self::ToolsDescribe => "server/tools",
            Self::PromptsList | Self::PromptsGet | Self::PromptsListChanged => "server/prompts",
            Self::ResourcesList
            | Self::ResourceTemplatesList
            | Self::ResourcesRead
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::ResourcesListChanged
            | Self::ResourcesUpdated => "server/resources",
            Self::CompletionComplete => "server/utilities/completion",
            Self::LoggingSetLevel | Self::LoggingMessage => "server/utilities/logging",
            Self::SubscriptionsListen | Self::SubscriptionsAcknowledged => {
                "basic/patterns/subscriptions"
            }
            Self::SkillsList | Self::SkillsGet | Self::ResourcesDirectoryRead => {
                "extensions/skills"
            }
            Self::RootsList | Self::RootsListChanged => "client/roots",
            Self::SamplingCreateMessage => "client/sampling",
            Self::ElicitationCreate | Self::ElicitationComplete => "client/elicitation",
            Self::Progress if is_modern => "basic/patterns/progress",
            Self::Progress => "basic/utilities/progress",
            Self::Cancelled if is_modern => "basic/patterns/cancellation",
            Self::Cancelled => "basic/utilities/cancellation",
            Self::TasksGet
            | Self::TasksResult
            | Self::TasksCancel
            | Self::TasksList
            | Self::TasksUpdate
            | Self::TasksStatus
            | Self::TasksChanged
                if is_modern =>
            {
                "extensions/tasks"
            }
            Self::TasksGet
            | Self::TasksResult
            | Self::TasksCancel
            | Self::TasksList
            | Self::TasksUpdate
            | Self::TasksStatus
            | Self::TasksChanged => "basic/utilities/tasks",
        }
    }
}
