//! The members of shared objects that not every revision has, and the kinds of content blocks.

use crate::Revision;
use crate::revision::{columns, pretending};

/// Members of an object that came, or went, together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRow {
    /// The names on the wire.
    pub fields: &'static [&'static str],
    /// Revisions that have them.
    pub column: [bool; Revision::COUNT],
}

macro_rules! objects {
    ($($name:ident = $text:literal { $($($field:literal)+ [$($cell:ident)+ $(; $pretend:ident)?];)+ })+) => {
        /// An object of the protocol with members that differ between revisions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Object { $(#[doc = concat!("`", $text, "`")] $name,)+ }

        impl Object {
            /// All objects, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The name of its definition in the newest schema that has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The members that not all revisions have; the others need no row.
            #[must_use]
            pub const fn rows(self) -> &'static [FieldRow] {
                match self {
                    $(Self::$name => const { &[
                        $(FieldRow {
                            fields: &[$($field),+],
                            column: {
                                let row = columns([$($cell),+]);
                                $(let row = pretending(row, $pretend);)?
                                row
                            },
                        },)+
                    ] },)+
                }
            }
        }
    };
}

/// The revision has it.
const Y: bool = true;
/// The revision does not have it.
const N: bool = false;

objects! {
    Tool = "Tool" {
        "annotations" [N Y Y Y Y];
        "title" "outputSchema" "_meta" [N N Y Y Y];
        "icons" [N N N Y Y; N];
        "execution" [N N N Y N];
    }
    ToolAnnotations = "ToolAnnotations" {
        "title" "readOnlyHint" "destructiveHint" "idempotentHint" "openWorldHint" [N Y Y Y Y];
    }
    Resource = "Resource" { "title" "_meta" [N N Y Y Y]; "icons" [N N N Y Y]; }
    ResourceTemplate = "ResourceTemplate" { "title" "_meta" [N N Y Y Y]; "icons" [N N N Y Y]; }
    ResourceLink = "ResourceLink" {
        "type" "uri" "name" "title" "description" "mimeType" "size" "annotations" "_meta"
            [N N Y Y Y];
        "icons" [N N N Y Y];
    }
    TextResourceContents = "TextResourceContents" { "_meta" [N N Y Y Y]; }
    BlobResourceContents = "BlobResourceContents" { "_meta" [N N Y Y Y]; }
    Prompt = "Prompt" { "title" "_meta" [N N Y Y Y]; "icons" [N N N Y Y]; }
    PromptArgument = "PromptArgument" { "title" [N N Y Y Y]; }
    PromptReference = "PromptReference" { "title" [N N Y Y Y]; }
    TextContent = "TextContent" { "_meta" [N N Y Y Y]; }
    ImageContent = "ImageContent" { "_meta" [N N Y Y Y]; }
    AudioContent = "AudioContent" {
        "type" "data" "mimeType" "annotations" [N Y Y Y Y];
        "_meta" [N N Y Y Y];
    }
    EmbeddedResource = "EmbeddedResource" { "_meta" [N N Y Y Y]; }
    ToolUseContent = "ToolUseContent" { "type" "id" "name" "input" "_meta" [N N N Y Y]; }
    ToolResultContent = "ToolResultContent" {
        "type" "toolUseId" "content" "structuredContent" "isError" "_meta" [N N N Y Y];
    }
    Annotations = "Annotations" { "lastModified" [N N Y Y Y]; }
    Implementation = "Implementation" {
        "title" [N N Y Y Y];
        "description" "icons" "websiteUrl" [N N N Y Y];
    }
    Icon = "Icon" { "src" "mimeType" "sizes" "theme" [N N N Y Y]; }
    Root = "Root" { "_meta" [N N Y Y Y]; }
    SamplingMessage = "SamplingMessage" { "_meta" [N N N Y Y]; }

    ListToolsResult = "ListToolsResult" { "resultType" "ttlMs" "cacheScope" [N N N N Y]; }
    CallToolResult = "CallToolResult" {
        "structuredContent" [N N Y Y Y];
        "resultType" [N N N N Y];
    }
    ListPromptsResult = "ListPromptsResult" { "resultType" "ttlMs" "cacheScope" [N N N N Y]; }
    GetPromptResult = "GetPromptResult" { "resultType" [N N N N Y]; }
    ListResourcesResult = "ListResourcesResult" { "resultType" "ttlMs" "cacheScope" [N N N N Y]; }
    ListResourceTemplatesResult = "ListResourceTemplatesResult" {
        "resultType" "ttlMs" "cacheScope" [N N N N Y];
    }
    ReadResourceResult = "ReadResourceResult" { "resultType" "ttlMs" "cacheScope" [N N N N Y]; }
    CompleteResult = "CompleteResult" { "resultType" [N N N N Y]; }
    ListRootsResult = "ListRootsResult" { "_meta" [Y Y Y Y N]; }
    ElicitResult = "ElicitResult" { "action" "content" [N N Y Y Y]; "_meta" [N N Y Y N]; }

    CompleteRequestParams = "CompleteRequestParams" { "context" [N N Y Y Y]; }
    ProgressNotificationParams = "ProgressNotificationParams" { "message" [N Y Y Y Y]; }
    CreateMessageRequestParams = "CreateMessageRequestParams" {
        "tools" "toolChoice" [N N N Y Y];
        "task" [N N N Y N];
    }
    ElicitRequestFormParams = "ElicitRequestFormParams" {
        "message" "requestedSchema" [N N Y Y Y];
        "mode" [N N N Y Y];
        "task" [N N N Y N];
    }
    ElicitRequestUrlParams = "ElicitRequestURLParams" {
        "mode" "message" "url" [N N N Y Y];
        "elicitationId" "task" [N N N Y N];
    }
    RequestedSchema = "RequestedSchema" {
        "type" "properties" "required" [N N Y Y Y];
        "$schema" [N N N Y Y];
    }
    StringSchema = "StringSchema" {
        "type" "title" "description" "minLength" "maxLength" "format" [N N Y Y Y];
        "default" [N N N Y Y];
    }
    NumberSchema = "NumberSchema" {
        "type" "title" "description" "minimum" "maximum" [N N Y Y Y];
        "default" [N N N Y Y];
    }
    BooleanSchema = "BooleanSchema" { "type" "title" "description" "default" [N N Y Y Y]; }
    LegacyTitledEnumSchema = "LegacyTitledEnumSchema" {
        "type" "title" "description" "enum" "enumNames" [N N Y Y Y];
        "default" [N N N Y Y];
    }
    TitledSingleSelectEnumSchema = "TitledSingleSelectEnumSchema" {
        "type" "title" "description" "oneOf" "default" [N N N Y Y];
    }
    TitledMultiSelectEnumSchema = "TitledMultiSelectEnumSchema" {
        "type" "title" "description" "items" "minItems" "maxItems" "default" [N N N Y Y];
    }
    UntitledMultiSelectEnumSchema = "UntitledMultiSelectEnumSchema" {
        "type" "title" "description" "items" "minItems" "maxItems" "default" [N N N Y Y];
    }
}

impl Object {
    /// Returns whether the revision has the member; none when no row tells, because every revision has it
    /// or no schema names it. Such a member is kept.
    #[must_use]
    pub fn has(self, field: &str, revision: Revision) -> Option<bool> {
        self.rows()
            .iter()
            .find(|row| row.fields.contains(&field))
            .map(|row| row.column[revision.index()])
    }

    /// The members that the revision does not have.
    pub fn absent_in(self, revision: Revision) -> impl Iterator<Item = &'static str> {
        self.rows()
            .iter()
            .filter(move |row| !row.column[revision.index()])
            .flat_map(|row| row.fields.iter().copied())
    }
}

macro_rules! content_kinds {
    ($($name:ident = $text:literal $object:ident
        blocks [$($block:ident)+] sampling [$($sampling:ident)+];)+) => {
        /// The `type` of a content block.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ContentKind { $(#[doc = concat!("`", $text, "`")] $name,)+ }

        impl ContentKind {
            /// All kinds, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The object that describes its members.
            #[must_use]
            pub const fn object(self) -> Object {
                match self { $(Self::$name => Object::$object,)+ }
            }

            /// Returns whether a tool result or a prompt message of the revision may hold it.
            #[must_use]
            pub const fn in_blocks(self, revision: Revision) -> bool {
                let row = match self { $(Self::$name => const { columns([$($block),+]) },)+ };
                row[revision.index()]
            }

            /// Returns whether a sampling message of the revision may hold it.
            #[must_use]
            pub const fn in_sampling(self, revision: Revision) -> bool {
                let row = match self { $(Self::$name => const { columns([$($sampling),+]) },)+ };
                row[revision.index()]
            }
        }
    };
}

content_kinds! {
    Text = "text" TextContent blocks [Y Y Y Y Y] sampling [Y Y Y Y Y];
    Image = "image" ImageContent blocks [Y Y Y Y Y] sampling [Y Y Y Y Y];
    Audio = "audio" AudioContent blocks [N Y Y Y Y] sampling [N Y Y Y Y];
    Resource = "resource" EmbeddedResource blocks [Y Y Y Y Y] sampling [N N N N N];
    ResourceLink = "resource_link" ResourceLink blocks [N N Y Y Y] sampling [N N N N N];
    ToolUse = "tool_use" ToolUseContent blocks [N N N N N] sampling [N N N Y Y];
    ToolResult = "tool_result" ToolResultContent blocks [N N N N N] sampling [N N N Y Y];
}

impl ContentKind {
    /// The kind with exactly this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}
