//! The walk through all features.

use serde_json::{Value, json};

use crate::peer::Peer;
use crate::report::{Trouble, check, equal, fails, feature};

const WATCHED: &str = "test://watched-resource";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

pub(crate) struct Walk {
    peer: Peer,
    wanted: String,
}

impl Walk {
    pub(crate) fn new(peer: Peer, wanted: String) -> Self {
        Self { peer, wanted }
    }

    pub(crate) async fn all(self) -> Result<(), Trouble> {
        feature("negotiate", self.negotiate()).await?;
        feature("list", self.list()).await?;
        feature("call", self.call()).await?;
        feature("read", self.read()).await?;
        feature("prompt", self.prompt()).await?;
        feature("complete", self.complete()).await?;
        feature("progress", self.progress()).await?;
        feature("cancel", self.cancel()).await?;
        feature("elicit", self.elicit()).await?;
        feature("sample", self.sample()).await?;
        feature("roots", self.roots()).await?;
        feature("log", self.log()).await?;
        feature("subscribe", self.subscribe()).await?;
        self.peer.close().await
    }

    fn is_modern(&self) -> bool {
        self.wanted == "2026-07-28"
    }

    /// Calls a tool that must succeed, for its text.
    async fn text(&self, name: &str, arguments: Value) -> Result<String, Trouble> {
        let result = self
            .peer
            .call(json!({"name": name, "arguments": arguments}))
            .await?;
        check(
            result["isError"] != true,
            &format!("`{name}` failed: {result}"),
        )?;
        let text = result["content"][0]["text"].as_str();
        Ok(text.ok_or_else(|| fails("there is no text"))?.to_owned())
    }

    async fn negotiate(&self) -> Result<String, Trouble> {
        let server = self.peer.server()?;
        equal(&server["protocolVersion"], &json!(self.wanted), "revision")?;
        equal(
            &server["serverInfo"]["name"],
            &json!("mcpact-everything"),
            "name of the server",
        )?;
        for capability in ["tools", "resources", "prompts"] {
            let is_declared = server["capabilities"][capability].is_object();
            check(is_declared, &format!("`{capability}` is not declared"))?;
        }
        Ok(self.wanted.clone())
    }

    async fn list(&self) -> Result<String, Trouble> {
        let tools = self.peer.tools().await?;
        for name in ["echo", "test_simple_text", "test_cancellation"] {
            check(has(&tools, "name", name), &format!("no tool `{name}`"))?;
        }
        let prompts = self.peer.prompts().await?;
        check(
            has(&prompts, "name", "test_prompt_with_arguments"),
            "a prompt is missing",
        )?;
        let resources = self.peer.resources().await?;
        check(
            has(&resources, "uri", WATCHED),
            "the watched resource is missing",
        )?;
        let templates = self.peer.templates().await?;
        check(count(&templates) > 0, "no templates")?;
        Ok(format!(
            "{} tools, {} prompts, {} resources, {} templates",
            count(&tools),
            count(&prompts),
            count(&resources),
            count(&templates)
        ))
    }

    async fn call(&self) -> Result<String, Trouble> {
        let simple = self.peer.call(json!({"name": "test_simple_text"})).await?;
        let expected = json!("This is a simple text response for testing.");
        equal(&simple["content"][0]["text"], &expected, "text")?;
        let sum = self
            .peer
            .call(json!({"name": "add", "arguments": {"a": 2, "b": 3}}))
            .await?;
        equal(&sum["content"][0]["text"], &json!("5"), "sum")?;
        // Older revisions get it as one more text.
        let structured = if self.wanted.as_str() >= "2025-06-18" {
            sum["structuredContent"].clone()
        } else {
            check(
                sum.get("structuredContent").is_none(),
                "structured content is too early",
            )?;
            serde_json::from_str(sum["content"][1]["text"].as_str().unwrap_or_default())?
        };
        equal(&structured, &json!({"sum": 5.0}), "structured content")?;
        let image = self
            .peer
            .call(json!({"name": "test_image_content"}))
            .await?;
        equal(
            &image["content"][0]["mimeType"],
            &json!("image/png"),
            "picture",
        )?;
        let failed = self
            .peer
            .call(json!({"name": "test_error_handling"}))
            .await?;
        equal(
            &failed["isError"],
            &json!(true),
            "`isError` of a failing tool",
        )?;
        let unknown = self.peer.call(json!({"name": "no_such_tool"})).await;
        refused(unknown, "-32602")?;
        Ok("text, structured content, picture, failure, unknown tool".to_owned())
    }

    async fn read(&self) -> Result<String, Trouble> {
        let text = self.peer.read("test://static-text").await?;
        let expected = json!("This is the content of the static text resource.");
        equal(&text["contents"][0]["text"], &expected, "text")?;
        let binary = self.peer.read("test://static-binary").await?;
        let blob = binary["contents"][0]["blob"].as_str().unwrap_or_default();
        check(blob.starts_with("iVBORw0KGgo"), "the blob is no picture")?;
        let made = self.peer.read("test://template/123/data").await?;
        let made = made["contents"][0]["text"].as_str().unwrap_or_default();
        let made: Value = serde_json::from_str(made)?;
        equal(&made["id"], &json!("123"), "id in the template")?;
        let code = if self.is_modern() { "-32602" } else { "-32002" };
        refused(self.peer.read("test://nowhere").await, code)?;
        Ok("text, blob, template, unknown resource".to_owned())
    }

    async fn prompt(&self) -> Result<String, Trouble> {
        let arguments = json!({"arg1": "one", "arg2": "two"});
        let params = json!({"name": "test_prompt_with_arguments", "arguments": arguments});
        let filled = self.peer.prompt(params).await?;
        let expected = json!("Prompt with arguments: arg1='one', arg2='two'");
        equal(&filled["messages"][0]["content"]["text"], &expected, "text")?;
        let pictured = self
            .peer
            .prompt(json!({"name": "test_prompt_with_image"}))
            .await?;
        equal(
            &pictured["messages"][0]["content"]["type"],
            &json!("image"),
            "content",
        )?;
        Ok("arguments, picture".to_owned())
    }

    async fn complete(&self) -> Result<String, Trouble> {
        let params = json!({
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "te"},
        });
        let completed = self.peer.complete(params).await?;
        let values = &completed["completion"]["values"];
        equal(values, &json!(["test1", "test2"]), "values")?;
        Ok("test1, test2".to_owned())
    }

    async fn progress(&self) -> Result<String, Trouble> {
        self.text("test_tool_with_progress", json!({})).await?;
        let told = self.peer.heard.progress.at_least(3).await;
        let steps: Vec<_> = told
            .iter()
            .map(|step| json!([step["progress"], step["total"]]))
            .collect();
        equal(
            &json!(steps),
            &json!([[0.0, 100.0], [50.0, 100.0], [100.0, 100.0]]),
            "progress",
        )?;
        let is_told = self.wanted.as_str() >= "2025-03-26";
        let message = if is_told {
            json!("Completed step 0 of 100")
        } else {
            Value::Null
        };
        equal(&told[0]["message"], &message, "message")?;
        Ok("0, 50, 100 of 100".to_owned())
    }

    async fn cancel(&self) -> Result<String, Trouble> {
        let key = format!("cancel-{}", std::process::id());
        let before = self.peer.heard.progress.items().len();
        tokio::select! {
            answer = self.text("test_cancellation", json!({"key": key})) => {
                return Err(fails(format!("the call was answered: {answer:?}")));
            }
            _ = self.peer.heard.progress.at_least(before + 1) => {}
        }
        let seen = self
            .text("test_cancellation_seen", json!({"key": key}))
            .await?;
        equal(
            &json!(seen),
            &json!(format!("{key} was cancelled.")),
            "what the server saw",
        )?;
        Ok("the call was dropped here and ended at the server".to_owned())
    }

    async fn elicit(&self) -> Result<String, Trouble> {
        let told = self
            .text("test_elicitation", json!({"message": "Who are you?"}))
            .await;
        if self.wanted.as_str() < "2025-06-18" {
            refused(told, "-32602")?;
            return Err(Trouble::Absent(format!(
                "{} has no elicitation",
                self.wanted
            )));
        }
        let told = told?;
        let content = told.strip_prefix("User response: action=accept, content=");
        let content: Value =
            serde_json::from_str(content.ok_or_else(|| fails("the answer did not arrive"))?)?;
        let person = json!({"username": "ada", "email": "ada@example.org"});
        equal(&content, &person, "what the tool heard")?;
        let asked = self.peer.heard.elicit.items();
        let messages: Vec<_> = asked.iter().map(|params| &params["message"]).collect();
        equal(&json!(messages), &json!(["Who are you?"]), "questions")?;
        Ok("asked once, the answer reached the tool".to_owned())
    }

    async fn sample(&self) -> Result<String, Trouble> {
        let told = self
            .text("test_sampling", json!({"prompt": "Capital of France?"}))
            .await?;
        equal(
            &json!(told),
            &json!("LLM response: Paris"),
            "what the tool heard",
        )?;
        let asked = self.peer.heard.sample.items();
        check(asked.len() == 1, "not asked once")?;
        let content = &asked[0]["messages"][0]["content"];
        let text = content.get(0).unwrap_or(content);
        equal(&text["text"], &json!("Capital of France?"), "question")?;
        equal(&asked[0]["maxTokens"], &json!(100), "length")?;
        Ok("asked once, the answer reached the tool".to_owned())
    }

    async fn roots(&self) -> Result<String, Trouble> {
        let told = self
            .text("test_input_required_result_list_roots", json!({}))
            .await?;
        equal(
            &json!(told),
            &json!("1 roots: file:///srv/interop"),
            "what the tool heard",
        )?;
        check(self.peer.heard.roots.items().len() == 1, "not asked once")?;
        Ok("asked once, the answer reached the tool".to_owned())
    }

    async fn log(&self) -> Result<String, Trouble> {
        for level in ["warning", "info"] {
            let mut params = json!({"name": "test_tool_with_logging", "arguments": {}});
            if self.is_modern() {
                params["_meta"] = json!({ LOG_LEVEL: level });
            } else {
                self.peer.set_level(level).await?;
            }
            self.peer.call(params).await?;
        }
        let messages = self.peer.heard.log.at_least(3).await;
        let told: Vec<_> = messages
            .iter()
            .map(|m| json!([m["level"], m["data"]]))
            .collect();
        let expected = json!([
            ["info", "Tool execution started"],
            ["info", "Tool processing data"],
            ["info", "Tool execution completed"],
        ]);
        equal(&json!(told), &expected, "messages")?;
        Ok("nothing at warning, three messages at info".to_owned())
    }

    async fn subscribe(&self) -> Result<String, Trouble> {
        if self.is_modern() {
            return self.listening().await;
        }
        let heard = &self.peer.heard;
        self.peer.subscribe(WATCHED).await?;
        self.text("test_trigger_resource_update", json!({})).await?;
        heard.updated.at_least(1).await;
        self.peer.unsubscribe(WATCHED).await?;
        self.text("test_trigger_resource_update", json!({})).await?;
        // The change of the tools shows that nothing is still on its way.
        self.text("test_trigger_tool_change", json!({})).await?;
        heard.tools.at_least(1).await;
        let updates: Vec<_> = heard
            .updated
            .items()
            .iter()
            .map(|u| u["uri"].clone())
            .collect();
        equal(&json!(updates), &json!([WATCHED]), "updates")?;
        Ok("one update while subscribed, none afterwards".to_owned())
    }

    async fn listening(&self) -> Result<String, Trouble> {
        let mut updates = self
            .peer
            .listen(json!({"resourceSubscriptions": [WATCHED]}))
            .await?;
        self.text("test_trigger_resource_update", json!({})).await?;
        let update = serde_json::to_value(updates.next().await?)?;
        equal(
            &update["params"]["uri"],
            &json!(WATCHED),
            "what was updated",
        )?;
        updates.cancel().await?;
        let mut changes = self.peer.listen(json!({"toolsListChanged": true})).await?;
        self.text("test_trigger_resource_update", json!({})).await?;
        self.text("test_trigger_tool_change", json!({})).await?;
        let change = serde_json::to_value(changes.next().await?)?;
        equal(
            &change["method"],
            &json!("notifications/tools/list_changed"),
            "what changed",
        )?;
        changes.cancel().await?;
        Ok("one update while listening for it, none afterwards".to_owned())
    }
}

/// The code stands in the text of the error.
fn refused<T>(outcome: Result<T, Trouble>, code: &str) -> Result<(), Trouble> {
    match outcome {
        Ok(_) => Err(fails("nothing was refused")),
        Err(trouble) => {
            let text = format!("{trouble:?}");
            check(text.contains(code), &format!("`{text}` instead of {code}"))
        }
    }
}

fn has(list: &Value, key: &str, wanted: &str) -> bool {
    list.as_array()
        .is_some_and(|all| all.iter().any(|one| one[key] == wanted))
}

fn count(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}
