//! Reasons of errors: stable strings that users and scripts depend on.

use mcpact_spec::stable_strings;

stable_strings! {
    /// Stable reason of an error of the gateway: `reason` in JSON-RPC error data, a label of metrics.
    pub(crate) enum Reason {
        /// The client does not read its messages fast enough.
        ClientTooSlow = "client_too_slow",
        /// The connection to an instance ended unexpectedly.
        ConnectionEnded = "connection_ended",
        /// A filter denied the request or its result.
        FilterDenied = "filter_denied",
        /// A required filter did not answer.
        FilterFailed = "filter_failed",
        /// The gateway is shutting down.
        GatewayDraining = "gateway_draining",
        /// The memory for messages is exhausted.
        MemoryExhausted = "memory_exhausted",
        /// Readers may understand the parameters differently: a key occurs twice, or is another spelling of a protocol key.
        RequestAmbiguous = "request_ambiguous",
        /// No configured server has this name.
        NoSuchServer = "no_such_server",
        /// No configured server has all of these tags.
        NoSuchTag = "no_such_tag",
        /// The `Mcpact-Server` header is malformed.
        ServerUnclear = "server_unclear",
        /// The configuration of the server is invalid.
        ServerWrong = "server_wrong",
        /// The request would return to the gateway that sent it.
        ServersInACircle = "servers_in_a_circle",
        /// The `Mcpact-Tags` header is malformed.
        TagsUnclear = "tags_unclear",
        /// The `Mcpact-Tools` header or the `tools` of the URL is invalid.
        ToolsUnclear = "tools_unclear",
        /// Too many different combinations of tags are in use.
        TooManyChoices = "too_many_choices",
        /// No server has a tool, prompt or resource of this name.
        UnknownName = "unknown_name",
        /// Readers may understand the result differently: a key occurs twice, or is another spelling of a protocol key.
        UpstreamAmbiguous = "upstream_ambiguous",
        /// Every instance is at its limit and the queue is full.
        UpstreamBusy = "upstream_busy",
        /// The server speaks another revision than before and did not process the request.
        UpstreamChanged = "upstream_changed",
        /// The server routes back to this gateway.
        UpstreamCircle = "upstream_circle",
        /// The server is no longer served; it did not receive the call.
        UpstreamClosed = "upstream_closed",
        /// The approved program or script was exchanged during the start.
        UpstreamExchanged = "upstream_exchanged",
        /// The program exited during negotiation.
        UpstreamExited = "upstream_exited",
        /// The connection was lost during the call.
        UpstreamGone = "upstream_gone",
        /// The call timed out in the queue; it was not sent to the server.
        UpstreamLate = "upstream_late",
        /// The server broke a rule of the protocol.
        UpstreamMisbehaved = "upstream_misbehaved",
        /// A server that may have the requested name is unavailable.
        UpstreamMissing = "upstream_missing",
        /// Negotiation with the server failed.
        UpstreamNoAgreement = "upstream_no_agreement",
        /// The server ended the session during the call.
        UpstreamSession = "upstream_session",
        /// The server did not start in time.
        UpstreamSlow = "upstream_slow",
        /// The state that the server kept for the client is lost; the call was not sent.
        UpstreamStateLost = "upstream_state_lost",
        /// The server answered with an HTTP status and no message.
        UpstreamStatus = "upstream_status",
        /// The server failed repeatedly and is suspended.
        UpstreamSuspended = "upstream_suspended",
        /// The server did not answer the call in time.
        UpstreamTimeout = "upstream_timeout",
        /// The response exceeds the size limit.
        UpstreamTooLong = "upstream_too_long",
        /// The command or URL of the server is not approved.
        UpstreamUnapproved = "upstream_unapproved",
        /// The response cannot be translated to the revision of the client.
        UpstreamUnfit = "upstream_unfit",
        /// The server cannot be reached or started.
        UpstreamUnreachable = "upstream_unreachable",
        /// The system cannot enforce the sandbox of the server.
        UpstreamUnsandboxed = "upstream_unsandboxed",
    }
}

/// Reason why a log message of a shared connection was not passed on: it may concern the call of any of several clients.
/// A label of `mcpact_dropped_total`, beside those of [`mcpact::connection::DropReason`].
pub(crate) const LOG_OF_WHOM: &str = "log_of_whom";

stable_strings! {
    /// Result of a reload: a label of `mcpact_reloads_total`.
    pub(crate) enum ReloadOutcome {
        /// The configuration is in effect.
        Applied = "ok",
        /// The configuration was rejected.
        Refused = "refused",
    }
}

stable_strings! {
    /// State of a server beside those of [`ServerState`](crate::ServerState): `state` in `mcpact status --json` and `/readyz`.
    pub(crate) enum ServerWord {
        /// The server was removed from the configuration; its calls are finishing.
        Draining = "draining",
        /// The last start or call failed.
        Failed = "failed",
        /// The configuration of the server is invalid.
        Wrong = "wrong",
    }
}

stable_strings! {
    /// State of the gateway: `gateway.state` in `mcpact status --json`.
    pub(crate) enum GatewayState {
        /// It finishes its calls and accepts no new ones.
        Draining = "draining",
        /// It accepts calls.
        Serving = "serving",
    }
}

stable_strings! {
    /// Log event of the gateway beside those of [`mcpact::log::event`]: `event` in the log and in `mcpact logs --json`.
    pub(crate) enum LogEvent {
        /// A request or result with an ambiguous key was refused.
        AmbiguousMessage = "ambiguous_message",
        /// The configuration of a server is invalid.
        ConfigWrong = "config_wrong",
        /// The gateway is shutting down.
        Drain = "drain",
        /// A filter did not answer.
        FilterFailure = "filter_failure",
        /// An unreachable server is reachable again.
        ReachedServer = "reached",
        /// A reload was rejected.
        ReloadFailure = "reload_failure",
        /// A reload took effect.
        ReloadSuccess = "reload_success",
        /// Part of a reload takes effect at the next start.
        ReloadWaiting = "reload_waiting",
        /// A server is this gateway itself.
        ServerIsItself = "server_is_itself",
        /// A proxy loop was detected.
        ServersInACircle = "servers_in_a_circle",
        /// The process of an instance runs.
        Spawned = "spawned",
        /// The description of a tool changed.
        ToolChanged = "tool_changed",
        /// The description of a tool contains invisible characters.
        ToolHiddenText = "tool_hidden_text",
        /// A user approved changed tools.
        ToolsAgreed = "tools_agreed",
    }
}
