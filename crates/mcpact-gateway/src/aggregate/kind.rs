//! The four lists.

use mcpact_spec::Method;

/// A list that servers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The list that a method asks for.
    pub(crate) fn of(method: Method) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The list that a notification says has changed. Templates change with the resources.
    pub(crate) fn changed_by(method: Method) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.changed() == method)
    }

    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourceTemplatesList,
        }
    }

    /// What tells that it has changed.
    pub(crate) const fn changed(self) -> Method {
        match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources | Self::Templates => Method::ResourcesListChanged,
        }
    }

    /// The member of a result that holds it.
    pub(crate) const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item that tells it from others.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}
