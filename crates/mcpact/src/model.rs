//! Protocol types.
//!
//! Every struct keeps unknown members in `extra`, so that data of newer peers is not lost. A value is written with
//! all its members; what a revision does not define is removed at the transport, not here.

mod content;
mod elicitation;
mod form;
mod list_result;
mod notifications;
mod prompt;
mod resource;
mod sampling;
mod task;
mod tool;
mod url_safety;

pub use content::{Annotations, Icon, Role};
pub use content::{
    Content, EmbeddedResource, MediaContent, TextContent, ToolResultContent, ToolUseContent,
};
pub use elicitation::{ElicitAction, ElicitRequest, ElicitResult, FormRequest, UrlRequest};
pub use form::FormError;
pub use list_result::ListResult;
pub use mcpact_spec::LogLevel;
pub use mcpact_wire::model::implementation::Implementation;
pub use notifications::{LogMessage, Progress, ProgressToken};
pub use prompt::{Completion, CompletionRef};
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resource::{ReadResult, Resource, ResourceContents, ResourceTemplate, Root};
pub use sampling::ToolMessageError;
pub use sampling::{
    Blocks, CreateMessageRequest, CreateMessageResult, IncludeContext, SamplingMessage,
};
pub use task::{Task, TaskStatus};
pub use tool::{TaskSupport, Tool, ToolAnnotations, ToolExecution, ToolResult};
pub use url_safety::{IconError, UrlWarning};
