//! The lists of a server.

use mcpact_spec::Method;

/// List of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
    Skills,
}

impl ListKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Tools,
        Self::Prompts,
        Self::Resources,
        Self::Templates,
        Self::Skills,
    ];

    /// Returns the list that a method requests.
    pub(crate) fn of(method: Method) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// Returns the list that a notification concerns; `resources/list_changed` includes templates and skills.
    pub(crate) fn changed_by(method: Method) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.changed() == method)
    }

    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourceTemplatesList,
            Self::Skills => Method::SkillsList,
        }
    }

    /// Returns the notification of a change.
    pub(crate) const fn changed(self) -> Method {
        match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources | Self::Templates | Self::Skills => Method::ResourcesListChanged,
        }
    }

    /// Returns the member of a result that holds the list.
    pub(crate) const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Skills => "skills",
        }
    }

    /// Returns the member that identifies an item.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources | Self::Skills => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}
