//! Properties of a revision that are neither methods nor capabilities.

use crate::Revision;
use crate::revision::columns;

macro_rules! features {
    ($($(#[$doc:meta])+ $name:ident [$($cell:ident)+];)+) => {
        /// A property of a revision that code may depend on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature { $($(#[$doc])+ $name,)+ }

        impl Feature {
            /// All features, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The row of this feature, one cell per revision.
            #[must_use]
            pub const fn column(self) -> [bool; Revision::COUNT] {
                match self { $(Self::$name => const { columns([$($cell),+]) },)+ }
            }

            /// The name of this feature as it stands in the code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

/// The revision has it.
const Y: bool = true;
/// The revision does not have it.
const N: bool = false;

features! {
    /// The `initialize` handshake: what makes a revision legacy.
    Initialize [Y Y Y Y N];
    /// Version and capabilities in the `_meta` of every request.
    RequestMeta [N N N N Y];
    /// `ping` in both directions.
    Ping [Y Y Y Y N];
    /// JSON-RPC requests from server to client.
    ServerRequests [Y Y Y Y N];
    /// JSON-RPC batches.
    Batching [N Y N N N];
    /// Newline-delimited JSON on standard input and output.
    Stdio [Y Y Y Y Y];
    /// The HTTP+SSE transport with its `endpoint` event.
    HttpSse [Y N N N N];
    /// One endpoint that takes POST and may answer with a stream.
    StreamableHttp [N Y Y Y Y];
    /// `Mcp-Session-Id`, and DELETE to end it.
    Sessions [N Y Y Y N];
    /// A GET stream for messages that belong to no request.
    GetStream [Y Y Y Y N];
    /// `Last-Event-ID` resumes a broken stream.
    Resumability [N Y Y Y N];
    /// Streams are primed with an empty event and carry `retry`.
    PrimedStreams [N N N Y N];
    /// The `MCP-Protocol-Version` header.
    VersionHeader [N N Y Y Y];
    /// `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` mirror the body.
    MirroredHeaders [N N N N Y];
    /// Closing the response stream cancels the request.
    DisconnectCancels [N N N N Y];
    /// `notifications/progress` carries a message.
    ProgressMessage [N Y Y Y Y];
    /// Tools carry annotations.
    ToolAnnotations [N Y Y Y Y];
    /// Audio content.
    AudioContent [N Y Y Y Y];
    /// `outputSchema` and `structuredContent`.
    StructuredOutput [N N Y Y Y];
    /// `structuredContent` may be any JSON value, not only an object.
    AnyStructuredContent [N N N N Y];
    /// Resource links in tool results.
    ResourceLinks [N N Y Y Y];
    /// `title` beside `name`.
    Titles [N N Y Y Y];
    /// `icons` on tools, resources, prompts and implementations.
    Icons [N N N Y Y];
    /// Completion carries the arguments that are already known.
    CompletionContext [N N Y Y Y];
    /// The server may ask the user for a form.
    ElicitationForm [N N Y Y Y];
    /// The server may send the user to a URL.
    ElicitationUrl [N N N Y Y];
    /// Sampling with tools.
    SamplingTools [N N N Y Y];
    /// Tasks as a core feature, in both directions.
    TasksCore [N N N Y N];
    /// Tasks as the extension `io.modelcontextprotocol/tasks`.
    TasksExtension [N N N N Y];
    /// Arguments that fail validation are a tool result with `isError`, not a protocol error.
    ArgumentErrorsAreResults [N N N Y Y];
    /// Every result carries `resultType`.
    ResultType [N N N N Y];
    /// A result may ask for input and be continued by a retry.
    MultiRoundTrip [N N N N Y];
    /// `ttlMs` and `cacheScope` on cacheable results.
    CacheHints [N N N N Y];
    /// `subscriptions/listen`.
    Listen [N N N N Y];
    /// `logging/setLevel` for the whole session.
    SessionLogLevel [Y Y Y Y N];
    /// An error answer may come without `id`.
    ErrorWithoutId [N N N Y Y];
    /// Using only what was negotiated is a MUST, not a SHOULD.
    StrictNegotiation [N N Y Y Y];
}
