//! Extensions that the project knows by name.

/// An extension with an identifier of its own in the `extensions` capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extension {
    /// `io.modelcontextprotocol/tasks`: server-directed tasks of the modern era.
    Tasks,
    /// `io.modelcontextprotocol/ui`: MCP Apps.
    Ui,
    /// `io.modelcontextprotocol/skills`: Agent Skills of a server, as resources.
    Skills,
    /// `io.modelcontextprotocol/oauth-client-credentials`.
    OauthClientCredentials,
}

impl Extension {
    /// All extensions, in table order.
    pub const ALL: [Self; 4] = [
        Self::Tasks,
        Self::Ui,
        Self::Skills,
        Self::OauthClientCredentials,
    ];

    /// The key in the `extensions` capability.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Tasks => "io.modelcontextprotocol/tasks",
            Self::Ui => "io.modelcontextprotocol/ui",
            Self::Skills => "io.modelcontextprotocol/skills",
            Self::OauthClientCredentials => "io.modelcontextprotocol/oauth-client-credentials",
        }
    }

    /// The extension with this key.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.id() == id)
    }

    /// Returns whether declaring the extension under this revision may enable anything.
    ///
    /// The tasks extension must not switch tasks on under a legacy revision: there the core
    /// feature of 2025-11-25 is the only one. The methods of the skills extension came with 2026-07-28.
    #[must_use]
    pub const fn in_force(self, revision: crate::Revision) -> bool {
        match self {
            Self::Tasks => revision.has(crate::Feature::TasksExtension),
            Self::Skills => matches!(revision.era(), crate::Era::Modern),
            Self::Ui | Self::OauthClientCredentials => true,
        }
    }
}
