//! Lists of tools, resources and prompts, and single ones of them.

use std::io::stdout;

use mcpact::model::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use serde_json::{Value, json};

use super::layout::{Layout, cell, in_one_line, widest, width};
use super::style::Tone;
use crate::client::input_schema::{Parameter, parameters, usage};

/// Longer names have a line of their own.
const LONGEST_NAME: usize = 28;

/// Formats a list of tools.
pub(crate) fn tools(tools: &[Tool]) -> String {
    let rows = tools.iter().map(|tool| Row {
        name: &tool.name,
        usage: usage(&tool.input_schema),
        description: tool.description.as_deref().or(tool.title.as_deref()),
    });
    table(rows.collect())
}

/// Formats a list of prompts.
pub(crate) fn prompts(prompts: &[Prompt]) -> String {
    let rows = prompts.iter().map(|prompt| Row {
        name: &prompt.name,
        usage: usage(&prompt_schema(prompt)),
        description: prompt.description.as_deref().or(prompt.title.as_deref()),
    });
    table(rows.collect())
}

/// Formats lists of resources and templates.
pub(crate) fn resources(resources: &[Resource], templates: &[ResourceTemplate]) -> String {
    let resources = resources.iter().map(|one| Row {
        name: &one.uri,
        usage: facts(&one.name, one.mime_type.as_deref(), one.size),
        description: one.description.as_deref(),
    });
    let templates = templates.iter().map(|one| Row {
        name: &one.uri_template,
        usage: facts(&one.name, one.mime_type.as_deref(), None),
        description: one.description.as_deref(),
    });
    table(resources.chain(templates).collect())
}

/// Returns the parameters of a prompt as an input schema. All of them are strings.
pub(crate) fn prompt_schema(prompt: &Prompt) -> Value {
    let arguments = prompt.arguments.iter().flatten();
    let properties = arguments.clone().map(|argument| {
        let description = argument.description.as_deref().unwrap_or_default();
        let property = json!({ "type": "string", "description": description });
        (argument.name.clone(), property)
    });
    let required = arguments.filter(|argument| argument.required == Some(true));
    let required: Vec<&String> = required.map(|PromptArgument { name, .. }| name).collect();
    json!({
        "type": "object",
        "properties": properties.collect::<serde_json::Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

fn facts(name: &str, mime_type: Option<&str>, size: Option<u64>) -> String {
    let size = size.map(|size| format!("{size} bytes"));
    let parts = [Some(name.to_owned()), mime_type.map(str::to_owned), size];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Row of a list.
struct Row<'a> {
    name: &'a str,
    usage: String,
    description: Option<&'a str>,
}

fn table(rows: Vec<Row<'_>>) -> String {
    let mut layout = Layout::new(width());
    let names = widest(rows.iter().map(|row| row.name)).min(LONGEST_NAME) + 2;
    for row in &rows {
        let first = row.description.unwrap_or_default().trim().lines().next();
        let description = in_one_line(first.unwrap_or_default());
        let name = cell(Tone::Name, row.name, names);
        if row.usage.is_empty() {
            layout.entry(0, &[name], Tone::Plain, &description);
            continue;
        }
        layout.entry(0, &[name], Tone::Hint, &row.usage);
        if !description.is_empty() {
            layout.entry(
                0,
                &[cell(Tone::Plain, "", names)],
                Tone::Plain,
                &description,
            );
        }
    }
    layout.finish(&stdout())
}

/// Formats one tool.
pub(crate) fn tool(tool: &Tool) -> String {
    let mut layout = Layout::new(width());
    head(
        &mut layout,
        &tool.name,
        tool.title.as_deref(),
        tool.description.as_deref(),
    );
    let hints = tool.annotations.as_ref();
    let hints = hints.map(|hints| {
        [
            (hints.read_only_hint == Some(true), "read-only"),
            (hints.destructive_hint == Some(true), "destructive"),
            (hints.idempotent_hint == Some(true), "idempotent"),
            (hints.open_world_hint == Some(true), "uses external systems"),
        ]
    });
    let hints = hints.into_iter().flatten().filter(|(is_set, _)| *is_set);
    let hints: Vec<&str> = hints.map(|(_, hint)| hint).collect();
    if !hints.is_empty() {
        layout.heading("Hints", "claimed by the server");
        layout.entry(2, &[], Tone::Plain, &hints.join(", "));
    }
    arguments(&mut layout, &parameters(&tool.input_schema));
    schema(&mut layout, "Input schema", Some(&tool.input_schema));
    schema(&mut layout, "Output schema", tool.output_schema.as_ref());
    layout.finish(&stdout())
}

/// Formats one prompt.
pub(crate) fn prompt(prompt: &Prompt) -> String {
    let mut layout = Layout::new(width());
    head(
        &mut layout,
        &prompt.name,
        prompt.title.as_deref(),
        prompt.description.as_deref(),
    );
    arguments(&mut layout, &parameters(&prompt_schema(prompt)));
    layout.finish(&stdout())
}

/// Formats one resource.
pub(crate) fn resource(resource: &Resource) -> String {
    let mut layout = Layout::new(width());
    head(
        &mut layout,
        &resource.uri,
        resource.title.as_deref(),
        resource.description.as_deref(),
    );
    let facts = facts(&resource.name, resource.mime_type.as_deref(), resource.size);
    layout.entry(2, &[], Tone::Plain, &facts);
    layout.finish(&stdout())
}

/// Formats one resource template.
pub(crate) fn template(template: &ResourceTemplate) -> String {
    let mut layout = Layout::new(width());
    let (uri, title) = (&template.uri_template, template.title.as_deref());
    head(&mut layout, uri, title, template.description.as_deref());
    let facts = facts(&template.name, template.mime_type.as_deref(), None);
    layout.entry(2, &[], Tone::Plain, &facts);
    layout.finish(&stdout())
}

fn head(layout: &mut Layout, name: &str, title: Option<&str>, description: Option<&str>) {
    layout.title(Tone::Name, name);
    for text in title.into_iter().chain(description) {
        for line in text.trim().lines() {
            layout.entry(2, &[], Tone::Plain, line.trim_end());
        }
    }
}

fn arguments(layout: &mut Layout, parameters: &[Parameter]) {
    if parameters.is_empty() {
        return;
    }
    layout.heading("Arguments", "");
    let kind = |one: &Parameter| match one.is_required {
        true => format!("{}, required", one.kind),
        false => one.kind.clone(),
    };
    let kinds: Vec<String> = parameters.iter().map(kind).collect();
    let name_width = widest(parameters.iter().map(|one| &*one.name)).min(LONGEST_NAME) + 2;
    let kind_width = widest(kinds.iter().map(String::as_str)).min(LONGEST_NAME) + 2;
    for (one, kind) in parameters.iter().zip(&kinds) {
        let cells = [
            cell(Tone::Name, &one.name, name_width),
            cell(Tone::Hint, kind, kind_width),
        ];
        layout.entry(2, &cells, Tone::Plain, &in_one_line(&one.description));
    }
}

fn schema(layout: &mut Layout, title: &str, schema: Option<&Value>) {
    let Some(schema) = schema else {
        return;
    };
    layout.heading(title, "");
    for line in super::json(schema).lines() {
        layout.raw(2, line);
    }
}
