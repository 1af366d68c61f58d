//! `mcpact tools`, `resources` and `prompts`: lists what a server offers.

use serde_json::json;

use super::block_on_this_thread;
use crate::args::ListArgs;
use crate::client::{self, Session};
use crate::error::{CliError, Exit};
use crate::report::{self, items};
use crate::target;

/// Lists tools, or shows one.
pub(super) fn tools(args: &ListArgs) -> Result<Exit, CliError> {
    listed(args, async |session, name| {
        let tools = session.tools().await?;
        let Some(name) = name else {
            return Ok(match args.client.json {
                true => report::json(&json!({ "tools": tools })),
                false => items::tools(&tools),
            });
        };
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            let known = tools.into_iter().map(|tool| tool.name).collect();
            return Err(session.not_found("tool", name, known).into());
        };
        Ok(match args.client.json {
            true => report::json(tool),
            false => items::tool(tool),
        })
    })
}

/// Lists resources and templates, or shows one.
pub(super) fn resources(args: &ListArgs) -> Result<Exit, CliError> {
    listed(args, async |session, name| {
        let client = &session.client;
        let resources = session.wait(client.list_resources()).await?.items;
        let templates = session.wait(client.list_resource_templates()).await?.items;
        let is_json = args.client.json;
        let Some(name) = name else {
            return Ok(match is_json {
                true => {
                    report::json(&json!({ "resources": resources, "resourceTemplates": templates }))
                }
                false => items::resources(&resources, &templates),
            });
        };
        if let Some(one) = resources
            .iter()
            .find(|one| one.uri == name || one.name == name)
        {
            return Ok(match is_json {
                true => report::json(one),
                false => items::resource(one),
            });
        }
        let is_named = |template: &_| is_template(template, name);
        if let Some(one) = templates.iter().find(|one| is_named(one)) {
            return Ok(match is_json {
                true => report::json(one),
                false => items::template(one),
            });
        }
        let uris = resources.into_iter().map(|one| one.uri);
        let known = uris.chain(templates.into_iter().map(|one| one.uri_template));
        Err(session.not_found("resource", name, known.collect()).into())
    })
}

fn is_template(template: &mcpact::model::ResourceTemplate, name: &str) -> bool {
    template.uri_template == name || template.name == name
}

/// Lists prompts, or shows one.
pub(super) fn prompts(args: &ListArgs) -> Result<Exit, CliError> {
    listed(args, async |session, name| {
        let prompts = session.wait(session.client.list_prompts()).await?.items;
        let Some(name) = name else {
            return Ok(match args.client.json {
                true => report::json(&json!({ "prompts": prompts })),
                false => items::prompts(&prompts),
            });
        };
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
            let known = prompts.into_iter().map(|prompt| prompt.name).collect();
            return Err(session.not_found("prompt", name, known).into());
        };
        Ok(match args.client.json {
            true => report::json(prompt),
            false => items::prompt(prompt),
        })
    })
}

/// Connects, and prints a list or one item of it.
fn listed(
    args: &ListArgs,
    text: impl AsyncFnOnce(&Session, Option<&str>) -> Result<String, CliError>,
) -> Result<Exit, CliError> {
    let (given, rest) = target::split(&args.words, &args.client.connect);
    let (name, rest) = match rest {
        [name, rest @ ..] => (Some(name.as_str()), rest),
        [] => (None, rest),
    };
    target::no_more(rest)?;
    block_on_this_thread(client::run(
        &args.client,
        given,
        client::Tasks::Undeclared,
        async |session| {
            let text = text(session, name).await?;
            report::print(&text)
        },
    ))?;
    Ok(Exit::Ok)
}
