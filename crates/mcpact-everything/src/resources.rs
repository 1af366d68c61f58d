//! Resources and templates.

use mcpact::model::{Completion, Resource, ResourceContents, ResourceTemplate};
use mcpact::server::Server;
use serde_json::Value;

use crate::media::PIXEL;

/// Resource for subscription tests; a tool updates it.
pub(crate) const WATCHED: &str = "test://watched-resource";

pub(crate) fn register(server: Server) -> Server {
    server
        .resource(
            Resource::new("test://static-text", "Static Text Resource")
                .description("A text that never changes")
                .mime_type("text/plain"),
            |uri, _| async move {
                let text = "This is the content of the static text resource.";
                Ok(vec![
                    ResourceContents::text(uri, text).mime_type("text/plain"),
                ])
            },
        )
        .resource(
            Resource::new("test://static-binary", "Static Binary Resource")
                .description("A picture that never changes")
                .mime_type("image/png"),
            |uri, _| async move {
                Ok(vec![
                    ResourceContents::blob(uri, PIXEL).mime_type("image/png"),
                ])
            },
        )
        .resource(
            Resource::new(WATCHED, "Watched Resource")
                .description("A resource to subscribe to")
                .mime_type("text/plain"),
            |uri, _| async move {
                Ok(vec![
                    ResourceContents::text(uri, "Watched resource content").mime_type("text/plain"),
                ])
            },
        )
        .template(
            ResourceTemplate::new("test://template/{id}/data", "Resource Template")
                .description("A resource for every id")
                .mime_type("application/json"),
            |(uri, variables), _| async move {
                let id = variables
                    .get("id")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let text = serde_json::json!({
                    "id": id,
                    "templateTest": true,
                    "data": format!("Data for ID: {id}"),
                });
                Ok(vec![
                    ResourceContents::text(uri, text.to_string()).mime_type("application/json"),
                ])
            },
        )
        .completion(|request, _| async move {
            let words = ["alpha", "beta", "gamma", "test1", "test2"];
            Ok(Completion::new(
                words
                    .into_iter()
                    .filter(|word| word.starts_with(&request.value)),
            ))
        })
}
