//! A tool with a view (MCP Apps).

use mcpact::model::{Resource, ResourceContents, Tool};
use mcpact::server::Server;
use serde_json::json;

const VIEW: &str = "ui://mcpact-everything/time";
const HTML: &str = "text/html;profile=mcp-app";
const PAGE: &str = "<!doctype html><title>Time</title><p>Shows the time";

pub(crate) fn register(server: Server) -> Server {
    let mut tool = Tool::new("test_app", json!({"type": "object"}))
        .description("Gives a text and names a view");
    tool.meta = json!({"ui": {"resourceUri": VIEW}}).as_object().cloned();
    server
        .tool_with(tool, |_, _| async { Ok("It is noon.") })
        .resource(
            Resource::new(VIEW, "Time").mime_type(HTML),
            |uri, _| async move { Ok(vec![ResourceContents::text(uri, PAGE).mime_type(HTML)]) },
        )
}
