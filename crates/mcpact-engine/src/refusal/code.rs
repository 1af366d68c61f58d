//! Stable reasons of refusals.

mcpact_spec::stable_strings! {
    /// Stable reason of a refusal, a failed negotiation or a withheld message.
    ///
    /// It appears as `reason` in JSON-RPC error data and logs, and as a label of metrics.
    pub enum ReasonCode {
        /// A second `initialize`.
        AlreadyInitialized = "already_initialized",
        /// The server asks for credentials.
        AuthenticationRequired = "authentication_required",
        /// A batch where the revision has none, or one with a handshake.
        BatchNotAllowed = "batch_not_allowed",
        /// More messages in a batch than allowed.
        BatchTooLarge = "batch_too_large",
        /// An attempt to cancel `initialize`.
        CancelInitialize = "cancel_initialize",
        /// The policy requires a client capability for this method.
        ClientCapabilityRequired = "client_capability_required",
        /// The connection closed during negotiation.
        ConnectionClosed = "connection_closed",
        /// The server stopped before the request was finished.
        CutOff = "cut_off",
        /// The id of a request in flight.
        DuplicateId = "duplicate_id",
        /// A header is missing, malformed, or differs from the body.
        HeaderMismatch = "header_mismatch",
        /// An id that was used before in the session.
        IdReused = "id_reused",
        /// A malformed capability document.
        InvalidCapabilities = "invalid_capabilities",
        /// An unknown log level.
        InvalidLogLevel = "invalid_log_level",
        /// JSON that is not a JSON-RPC message.
        InvalidMessage = "invalid_message",
        /// Malformed parameters.
        InvalidParams = "invalid_params",
        /// A missing or malformed protocol version.
        InvalidVersion = "invalid_version",
        /// The revision, or what was negotiated, does not allow the method.
        MethodNotAvailable = "method_not_available",
        /// A required capability is not declared.
        MissingCapability = "missing_capability",
        /// The memory for messages is exhausted.
        MemoryExhausted = "memory_exhausted",
        /// A required member of `_meta` is missing or malformed.
        MissingMeta = "missing_meta",
        /// The session header is missing.
        MissingSession = "missing_session",
        /// The server lists no common version.
        NoCommonVersion = "no_common_version",
        /// A request before `initialize`.
        NotInitialized = "not_initialized",
        /// Nothing that speaks MCP answered.
        NotMcp = "not_mcp",
        /// The message was not negotiated.
        NotNegotiated = "not_negotiated",
        /// The connection is not open.
        NotReady = "not_ready",
        /// The parameter was not negotiated.
        ParamNotNegotiated = "param_not_negotiated",
        /// Not JSON.
        ParseError = "parse_error",
        /// No agreement on a version.
        ProtocolVersionMismatch = "protocol_version_mismatch",
        /// The server rejected the first message.
        Rejected = "rejected",
        /// An invalid or expired `requestState`.
        RequestState = "request_state",
        /// The server failed during negotiation.
        ServerTrouble = "server_trouble",
        /// The version header differs from the version of the session.
        SessionVersionMismatch = "session_version_mismatch",
        /// The server did not answer in time.
        Silence = "silence",
        /// Every request of this kind must be a task.
        TaskRequired = "task_required",
        /// The tool runs only as a task, or never as one.
        TaskSupport = "task_support",
        /// Too many requests in flight, or too often.
        TooManyRequests = "too_many_requests",
        /// Too many sessions of one connection, or all sessions are in use.
        TooManySessions = "too_many_sessions",
        /// An unknown or ended session.
        UnknownSession = "unknown_session",
        /// The requested version is not served.
        UnsupportedVersion = "unsupported_version",
        /// The client did not ask for the message.
        Unwanted = "unwanted",
    }
}
