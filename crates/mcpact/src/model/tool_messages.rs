//! Order of tool calls and results in sampling: each result directly follows its call.
//!
//! `2025-11-25 client/sampling#message-content-constraints`

use std::collections::BTreeSet;

use super::common::Role;
use super::content::Content;
use super::sampling::{CreateMessageRequest, SamplingMessage};

/// Reason why the messages are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolMessageError {
    /// A tool call has no result in the next message.
    #[error("Tool result missing in request")]
    Missing,
    /// Results are mixed with other content.
    #[error("Tool results mixed with other content")]
    Mixed,
    /// A result has no call, or its call has several.
    #[error("Tool result without its tool use")]
    Unmatched,
    /// The assistant sends results, or the user sends calls.
    #[error("Tool use and tool result in the wrong role")]
    Role,
}

impl CreateMessageRequest {
    /// Checks that tool results follow their calls.
    ///
    /// # Errors
    /// The messages are invalid.
    pub fn check(&self) -> Result<(), ToolMessageError> {
        let mut open = BTreeSet::new();
        for message in &self.messages {
            let results = results(message)?;
            if results != open {
                let is_missing = open.iter().any(|id| !results.contains(id));
                return Err(if is_missing {
                    ToolMessageError::Missing
                } else {
                    ToolMessageError::Unmatched
                });
            }
            open = calls(message)?;
        }
        if open.is_empty() {
            Ok(())
        } else {
            Err(ToolMessageError::Missing)
        }
    }
}

/// Returns the ids of the results in a message.
fn results(message: &SamplingMessage) -> Result<BTreeSet<&str>, ToolMessageError> {
    let mut found = BTreeSet::new();
    let blocks = &message.content.0;
    for block in blocks {
        if let Content::ToolResult(outcome) = block
            && !found.insert(outcome.tool_use_id.as_str())
        {
            return Err(ToolMessageError::Unmatched);
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    if message.role != Role::User {
        return Err(ToolMessageError::Role);
    }
    let is_pure = blocks
        .iter()
        .all(|block| matches!(block, Content::ToolResult(_)));
    if is_pure {
        Ok(found)
    } else {
        Err(ToolMessageError::Mixed)
    }
}

/// Returns the ids of the calls in a message.
fn calls(message: &SamplingMessage) -> Result<BTreeSet<&str>, ToolMessageError> {
    let mut found = BTreeSet::new();
    for block in &message.content.0 {
        if let Content::ToolUse(call) = block {
            if message.role != Role::Assistant {
                return Err(ToolMessageError::Role);
            }
            if !found.insert(call.id.as_str()) {
                return Err(ToolMessageError::Unmatched);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(messages: Value) -> Result<(), ToolMessageError> {
        let request = json!({"messages": messages, "maxTokens": 1});
        let request: CreateMessageRequest = serde_json::from_value(request).unwrap();
        request.check()
    }

    /// F9: results directly follow their calls: all of them, alone and once; calls may be parallel.
    #[test]
    fn tool_results_must_follow_their_calls() {
        let ask = json!({"role": "user", "content": {"type": "text", "text": "?"}});
        let call = |ids: &[&str]| {
            let calls: Vec<Value> = ids
                .iter()
                .map(|id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}}))
                .collect();
            json!({"role": "assistant", "content": calls})
        };
        let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
        let give = |ids: &[&str]| {
            let results: Vec<Value> = ids.iter().map(|id| result(id)).collect();
            json!({"role": "user", "content": results})
        };
        assert_eq!(check(json!([ask])), Ok(()));
        assert_eq!(check(json!([ask, call(&["1"]), give(&["1"])])), Ok(()));
        let parallel = json!([
            ask,
            call(&["1", "2"]),
            give(&["2", "1"]),
            call(&["3"]),
            give(&["3"])
        ]);
        assert_eq!(check(parallel), Ok(()));
        let mixed =
            json!({"role": "user", "content": [result("1"), {"type": "text", "text": "x"}]});
        for (bad, fault) in [
            (json!([ask, call(&["1"])]), ToolMessageError::Missing),
            (json!([ask, call(&["1"]), ask]), ToolMessageError::Missing),
            (
                json!([ask, call(&["1", "2"]), give(&["1"])]),
                ToolMessageError::Missing,
            ),
            (
                json!([ask, call(&["1"]), give(&["1", "2"])]),
                ToolMessageError::Unmatched,
            ),
            (json!([ask, give(&["1"])]), ToolMessageError::Unmatched),
            (
                json!([ask, call(&["1"]), give(&["1", "1"])]),
                ToolMessageError::Unmatched,
            ),
            (json!([ask, call(&["1"]), mixed]), ToolMessageError::Mixed),
            (
                json!([{"role": "assistant", "content": result("1")}]),
                ToolMessageError::Role,
            ),
        ] {
            assert_eq!(check(bad.clone()), Err(fault), "{bad}");
        }
    }
}
