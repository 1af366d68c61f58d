//! The keys of requests and results that belong to the protocol, in any revision or extension.
//!
//! A reader that ignores case takes any spelling of them for the key itself. Objects without a table have keys of their
//! own: the arguments of a tool, structured content, schemas, capabilities.

use super::meta;
use crate::Method;

/// Keys of one object, and of the objects below them.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolKeys(&'static [KeyRow]);

/// A key, and the keys of the object at it or of the objects in the array at it.
#[derive(Debug, PartialEq, Eq)]
struct KeyRow {
    name: &'static str,
    below: Option<&'static ProtocolKeys>,
}

impl ProtocolKeys {
    /// The row of exactly this key: the keys of the object below it, if the protocol defines them.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Option<&'static Self>> {
        let row = self.0.iter().find(|row| row.name == key)?;
        Some(row.below)
    }

    /// All keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|row| row.name)
    }
}

macro_rules! keys {
    (@below) => { None };
    (@below $below:ident) => { Some(&$below) };
    ($($(#[$doc:meta])* $table:ident { $($name:tt $(=> $below:ident)?),+ $(,)? })+) => {
        $($(#[$doc])* static $table: ProtocolKeys = ProtocolKeys(&[
            $(KeyRow { name: $name, below: keys!(@below $($below)?) }),+
        ]);)+
    };
}

keys! {
    /// `_meta` of requests and results.
    META {
        (meta::PROGRESS_TOKEN), (meta::PROTOCOL_VERSION), (meta::CLIENT_CAPABILITIES), (meta::CLIENT_INFO),
        (meta::LOG_LEVEL), (meta::SERVER_INFO), (meta::SUBSCRIPTION_ID), (meta::RELATED_TASK),
        (meta::TRACE_PARENT), (meta::TRACE_STATE),
    }

    // Params.
    EMPTY_PARAMS { "_meta" => META }
    INITIALIZE { "_meta" => META, "protocolVersion", "capabilities", "clientInfo" }
    PAGE { "_meta" => META, "cursor" }
    CALL { "_meta" => META, "name", "arguments", "task" => TASK_WISH, "inputResponses", "requestState" }
    TASK_WISH { "ttl" }
    SUBJECT_URI { "_meta" => META, "uri", "cursor", "inputResponses", "requestState" }
    COMPLETION { "_meta" => META, "ref" => REFERENCE, "argument" => ARGUMENT, "context" => CONTEXT }
    REFERENCE { "type", "name", "uri", "title" }
    ARGUMENT { "name", "value" }
    CONTEXT { "arguments" }
    LEVEL { "_meta" => META, "level" }
    LISTEN { "_meta" => META, "notifications" => WANTED }
    WANTED {
        "toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds",
    }
    TASK { "_meta" => META, "taskId", "inputResponses", "requestState" }

    // Results.
    EMPTY_RESULT { "_meta" => META, "resultType" }
    INTRODUCTION {
        "_meta" => META, "resultType", "protocolVersion", "supportedVersions", "capabilities", "serverInfo",
        "instructions", "ttlMs", "cacheScope",
    }
    CALLED {
        "_meta" => META, "resultType", "content" => BLOCK, "structuredContent", "isError", "task" => TASK_STATE,
        "inputRequests", "requestState", "taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl",
        "ttlMs", "pollInterval", "pollIntervalMs",
    }
    BLOCK {
        "_meta" => META, "type", "text", "data", "mimeType", "uri", "name", "title", "description", "size",
        "icons" => ICON, "annotations" => ANNOTATIONS, "resource" => CONTENTS,
    }
    ICON { "src", "mimeType", "sizes", "theme" }
    ANNOTATIONS { "audience", "priority", "lastModified" }
    CONTENTS { "_meta" => META, "uri", "mimeType", "text", "blob" }
    PROMPT_GOT {
        "_meta" => META, "resultType", "description", "messages" => MESSAGE, "inputRequests", "requestState",
    }
    MESSAGE { "role", "content" => BLOCK }
    READ {
        "_meta" => META, "resultType", "contents" => CONTENTS, "ttlMs", "cacheScope", "inputRequests", "requestState",
    }
    TOOLS { "_meta" => META, "resultType", "nextCursor", "ttlMs", "cacheScope", "tools" => TOOL }
    TOOL {
        "_meta" => META, "name", "title", "description", "inputSchema", "outputSchema",
        "annotations" => TOOL_ANNOTATIONS, "icons" => ICON, "execution" => EXECUTION,
    }
    TOOL_ANNOTATIONS { "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint" }
    EXECUTION { "taskSupport" }
    PROMPTS { "_meta" => META, "resultType", "nextCursor", "ttlMs", "cacheScope", "prompts" => PROMPT }
    PROMPT {
        "_meta" => META, "name", "title", "description", "icons" => ICON, "arguments" => PROMPT_ARGUMENT,
    }
    PROMPT_ARGUMENT { "name", "title", "description", "required" }
    RESOURCES { "_meta" => META, "resultType", "nextCursor", "ttlMs", "cacheScope", "resources" => RESOURCE }
    RESOURCE {
        "_meta" => META, "uri", "name", "title", "description", "mimeType", "size", "icons" => ICON,
        "annotations" => ANNOTATIONS,
    }
    TEMPLATES {
        "_meta" => META, "resultType", "nextCursor", "ttlMs", "cacheScope", "resourceTemplates" => TEMPLATE,
    }
    TEMPLATE {
        "_meta" => META, "uriTemplate", "name", "title", "description", "mimeType", "icons" => ICON,
        "annotations" => ANNOTATIONS,
    }
    COMPLETED { "_meta" => META, "resultType", "completion" => COMPLETION_VALUES }
    COMPLETION_VALUES { "values", "total", "hasMore" }
    TASK_STATE {
        "_meta" => META, "resultType", "taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttl",
        "ttlMs", "pollInterval", "pollIntervalMs", "inputRequests", "requestState", "result" => CALLED, "error",
    }
    TASKS { "_meta" => META, "resultType", "nextCursor", "tasks" => TASK_STATE }
}

impl Method {
    /// The keys of `params` that belong to the protocol.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other method is a notification or has no parameters of its own"
    )]
    pub fn param_keys(self) -> &'static ProtocolKeys {
        match self {
            Self::Initialize => &INITIALIZE,
            Self::ToolsCall | Self::PromptsGet => &CALL,
            Self::ResourcesRead
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::ResourcesDirectoryRead
            | Self::SkillsGet => &SUBJECT_URI,
            Self::CompletionComplete => &COMPLETION,
            Self::LoggingSetLevel => &LEVEL,
            Self::SubscriptionsListen => &LISTEN,
            Self::TasksGet | Self::TasksResult | Self::TasksCancel | Self::TasksUpdate => &TASK,
            method if method.is_paginated() => &PAGE,
            _ => ProtocolKeys::OF_ANY_PARAMS,
        }
    }

    /// The keys of the result that belong to the protocol.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the results of other methods are the gateway's own, or of extensions"
    )]
    pub fn result_keys(self) -> &'static ProtocolKeys {
        match self {
            Self::Initialize | Self::Discover => &INTRODUCTION,
            Self::ToolsCall | Self::TasksResult => &CALLED,
            Self::PromptsGet => &PROMPT_GOT,
            Self::ResourcesRead => &READ,
            Self::ToolsList => &TOOLS,
            Self::PromptsList => &PROMPTS,
            Self::ResourcesList => &RESOURCES,
            Self::ResourceTemplatesList => &TEMPLATES,
            Self::CompletionComplete => &COMPLETED,
            Self::TasksGet | Self::TasksCancel => &TASK_STATE,
            Self::TasksList => &TASKS,
            _ => ProtocolKeys::OF_ANY_RESULT,
        }
    }
}

impl ProtocolKeys {
    /// Keys of the parameters of every method.
    pub const OF_ANY_PARAMS: &'static Self = &EMPTY_PARAMS;
    /// Keys of every result.
    pub const OF_ANY_RESULT: &'static Self = &EMPTY_RESULT;
}
