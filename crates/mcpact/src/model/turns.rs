//! Tools inside of sampling: every call has its result, in the turn right after it.
//!
//! `2025-11-25 client/sampling#message-content-constraints`

use std::collections::BTreeSet;

use super::content::Content;
use super::sampling::{CreateMessageRequest, SamplingMessage};
use super::shared::Role;

/// Why a conversation cannot be given to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnFault {
    /// A call of a tool is not answered by the next turn.
    #[error("Tool result missing in request")]
    Missing,
    /// Results stand beside something else.
    #[error("Tool results mixed with other content")]
    Mixed,
    /// A result of a call that was not made, or made twice.
    #[error("Tool result without its tool use")]
    Stray,
    /// The model answers its own calls, or the person makes them.
    #[error("Tool use and tool result in the wrong role")]
    Role,
}

impl CreateMessageRequest {
    /// Checks that calls and results of tools follow each other as they must.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), TurnFault> {
        let mut open = BTreeSet::new();
        for message in &self.messages {
            let results = results(message)?;
            if results != open {
                let is_missing = open.iter().any(|id| !results.contains(id));
                return Err(if is_missing {
                    TurnFault::Missing
                } else {
                    TurnFault::Stray
                });
            }
            open = calls(message)?;
        }
        if open.is_empty() {
            Ok(())
        } else {
            Err(TurnFault::Missing)
        }
    }
}

/// The calls that a turn answers.
fn results(message: &SamplingMessage) -> Result<BTreeSet<&str>, TurnFault> {
    let mut found = BTreeSet::new();
    let blocks = &message.content.0;
    for block in blocks {
        if let Content::ToolResult(outcome) = block
            && !found.insert(outcome.tool_use_id.as_str())
        {
            return Err(TurnFault::Stray);
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    if message.role != Role::User {
        return Err(TurnFault::Role);
    }
    let is_pure = blocks
        .iter()
        .all(|block| matches!(block, Content::ToolResult(_)));
    if is_pure {
        Ok(found)
    } else {
        Err(TurnFault::Mixed)
    }
}

/// The calls that a turn makes.
fn calls(message: &SamplingMessage) -> Result<BTreeSet<&str>, TurnFault> {
    let mut found = BTreeSet::new();
    for block in &message.content.0 {
        if let Content::ToolUse(call) = block {
            if message.role != Role::Assistant {
                return Err(TurnFault::Role);
            }
            if !found.insert(call.id.as_str()) {
                return Err(TurnFault::Stray);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(messages: Value) -> Result<(), TurnFault> {
        let request = json!({"messages": messages, "maxTokens": 1});
        let request: CreateMessageRequest = serde_json::from_value(request).unwrap();
        request.check()
    }

    /// F9: results follow their calls at once, all of them, alone and only once; calls may be parallel.
    #[test]
    fn results_follow_their_calls() {
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
            (json!([ask, call(&["1"])]), TurnFault::Missing),
            (json!([ask, call(&["1"]), ask]), TurnFault::Missing),
            (
                json!([ask, call(&["1", "2"]), give(&["1"])]),
                TurnFault::Missing,
            ),
            (
                json!([ask, call(&["1"]), give(&["1", "2"])]),
                TurnFault::Stray,
            ),
            (json!([ask, give(&["1"])]), TurnFault::Stray),
            (
                json!([ask, call(&["1"]), give(&["1", "1"])]),
                TurnFault::Stray,
            ),
            (json!([ask, call(&["1"]), mixed]), TurnFault::Mixed),
            (
                json!([{"role": "assistant", "content": result("1")}]),
                TurnFault::Role,
            ),
        ] {
            assert_eq!(check(bad.clone()), Err(fault), "{bad}");
        }
    }
}
