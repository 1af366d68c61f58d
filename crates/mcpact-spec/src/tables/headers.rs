//! HTTP headers and what each revision asks of them.

use crate::Revision;
use crate::revision::columns;

/// Rule of a revision for a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderRule {
    /// The revision does not define it.
    Undefined,
    /// It may be sent.
    Optional,
    /// Required on every request.
    Required,
    /// Required on every request after `initialize`.
    AfterInitialize,
    /// Required when the server has handed out a session.
    WithSession,
    /// Required on the methods that [`crate::Method::name_param`] lists.
    OnNamedMethods,
    /// Required for the tool parameters that the tool's schema annotates.
    OnAnnotatedParams,
    /// Present or not, it has no meaning.
    Ignored,
}

macro_rules! headers {
    ($($(#[$doc:meta])+ $name:ident = $text:literal [$($rule:ident)+];)+) => {
        /// A header with a meaning in the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Header { $($(#[$doc])+ $name,)+ }

        impl Header {
            /// All headers, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The name as the newest revision spells it; names compare without case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// Rule of the revision.
            #[must_use]
            pub const fn rule(self, revision: Revision) -> HeaderRule {
                let row = match self { $(Self::$name => const { columns([$(HeaderRule::$rule),+]) },)+ };
                row[revision.index()]
            }
        }
    };
}

headers! {
    /// Both `application/json` and `text/event-stream` on POST.
    Accept = "Accept" [Undefined Required Required Required Required];
    /// Checked against the allowed origins when a browser sends it.
    Origin = "Origin" [Optional Optional Optional Optional Optional];
    /// The revision in use.
    ProtocolVersion = "MCP-Protocol-Version"
        [Undefined Undefined AfterInitialize AfterInitialize Required];
    /// The session that `initialize` opened.
    SessionId = "Mcp-Session-Id" [Undefined WithSession WithSession WithSession Ignored];
    /// Event after which a stream resumes.
    LastEventId = "Last-Event-ID" [Undefined Optional Optional Optional Ignored];
    /// The method of the body.
    Method = "Mcp-Method" [Undefined Undefined Undefined Undefined Required];
    /// The tool, prompt, resource or task of the body.
    Name = "Mcp-Name" [Undefined Undefined Undefined Undefined OnNamedMethods];
    /// Prefix of the headers that mirror annotated tool parameters.
    ParamPrefix = "Mcp-Param-" [Undefined Undefined Undefined Undefined OnAnnotatedParams];
}
