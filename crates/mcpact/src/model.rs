//! The nouns of the protocol, as light structs.
//!
//! Every struct keeps the members that it does not know in `extra`, so that what a newer peer says is
//! not lost. A value is written with the members that it has; what a revision does not define is
//! cut at the door, not here.

mod address;
mod completion;
mod content;
mod elicitation;
mod form;
mod listed;
mod log;
mod prompt;
mod resource;
mod sampling;
mod shared;
mod task;
mod tool;
mod turns;

pub use address::{IconFault, UrlWarning};
pub use completion::{Completion, CompletionRef};
pub use content::{Content, EmbeddedResource, MediaContent, TextContent, ToolOutcome, ToolUse};
pub use elicitation::{ElicitAction, ElicitRequest, ElicitResult, FormRequest, UrlRequest};
pub use form::FormFault;
pub(crate) use listed::Hints;
pub use listed::Listed;
pub use log::{LogMessage, Progress, ProgressToken};
pub use mcpact_spec::LogLevel;
pub use mcpact_wire::model::implementation::Implementation;
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resource::{ReadResult, Resource, ResourceContents, ResourceTemplate, Root};
pub use sampling::{
    Blocks, CreateMessageRequest, CreateMessageResult, IncludeContext, SamplingMessage,
};
pub use shared::{Annotations, Icon, Role};
pub use task::{Task, TaskStatus};
pub use tool::{TaskSupport, Tool, ToolAnnotations, ToolExecution, ToolResult};
pub use turns::TurnFault;
