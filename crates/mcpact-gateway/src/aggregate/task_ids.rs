//! Task ids inside messages, qualified by server or session.

use mcpact_spec::Method;
use mcpact_spec::tables::meta::RELATED_TASK;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;

use super::rewrite::{edit, edit_each, quoted};

/// Returns the id qualified by its owner, which contains no colon.
pub(crate) fn qualified_id(owner: &str, id: &str) -> String {
    format!("{owner}:{id}")
}

/// Splits a qualified id into owner and id.
pub(crate) fn split_id(shown: &str) -> Option<(&str, &str)> {
    shown.split_once(':')
}

/// Rewrites the task ids in a message.
#[derive(Debug)]
pub(crate) struct TaskMap<F>(pub(crate) F);

impl<F: Fn(&str) -> String> TaskMap<F> {
    /// Returns the result of a method with rewritten ids; none if nothing changes.
    pub(crate) fn result(&self, method: Method, raw: &str) -> Option<String> {
        let shown = match method {
            Method::TasksGet | Method::TasksCancel | Method::TasksUpdate => self.member(raw),
            Method::TasksList => edit(raw, "tasks", |all| edit_each(all, |task| self.member(task))),
            Method::ToolsCall => self.created(raw),
            _ => None,
        };
        let related = self.related(shown.as_deref().unwrap_or(raw));
        related.or(shown)
    }

    /// Returns the parameters of a notification or question with rewritten ids; none if nothing changes.
    pub(crate) fn params(&self, method: Method, raw: &str) -> Option<String> {
        // Most messages name no task.
        if !raw.contains("taskId\"") {
            return None;
        }
        match method {
            Method::TasksStatus | Method::TasksChanged => self.member(raw),
            _ => self.related(raw),
        }
    }

    /// Rewrites the result of a call that became a task, in either era.
    fn created(&self, raw: &str) -> Option<String> {
        let result = Object::parse(raw).ok()?;
        if result.get_str("resultType").as_deref() == Some("task") {
            return self.member(raw);
        }
        // The result of a finished call may have a member `task` of its own.
        result.get("content").is_none().then_some(())?;
        edit(raw, "task", |task| self.member(task))
    }

    /// Rewrites a task object.
    fn member(&self, raw: &str) -> Option<String> {
        edit(raw, "taskId", |raw| Some(quoted(&(self.0)(&text(raw)?))))
    }

    /// Rewrites the related task of a message.
    fn related(&self, raw: &str) -> Option<String> {
        edit(raw, "_meta", |meta| {
            edit(meta, RELATED_TASK, |task| self.member(task))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Task ids are rewritten wherever the protocol has them, and nowhere else.
    #[test]
    fn task_ids_are_rewritten() {
        let map = TaskMap(|task: &str| qualified_id("a", task));
        let cells = [
            (
                Method::ToolsCall,
                r#"{"task":{"taskId":"1","ttl":5}}"#,
                Some(r#"{"task":{"taskId":"a:1","ttl":5}}"#),
            ),
            (
                Method::ToolsCall,
                r#"{"resultType":"task","taskId":"1"}"#,
                Some(r#"{"resultType":"task","taskId":"a:1"}"#),
            ),
            (
                Method::ToolsCall,
                r#"{"content":[],"task":{"taskId":"1"}}"#,
                None,
            ),
            (
                Method::TasksGet,
                r#"{"taskId":"1"}"#,
                Some(r#"{"taskId":"a:1"}"#),
            ),
            (
                Method::TasksList,
                r#"{"tasks":[{"taskId":"1"},{"taskId":"2"}]}"#,
                Some(r#"{"tasks":[{"taskId":"a:1"},{"taskId":"a:2"}]}"#),
            ),
            (
                Method::TasksResult,
                r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}"#,
                Some(
                    r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a:1"}}}"#,
                ),
            ),
            (Method::ResourcesRead, r#"{"taskId":"1"}"#, None),
        ];
        for (method, raw, expected) in cells {
            assert_eq!(map.result(method, raw).as_deref(), expected, "{raw}");
        }
        let told = map.params(Method::TasksStatus, r#"{"taskId":"1"}"#);
        assert_eq!(told.as_deref(), Some(r#"{"taskId":"a:1"}"#));
        assert_eq!(map.params(Method::Progress, r#"{"taskId":"1"}"#), None);
        assert_eq!(split_id("a:b:c"), Some(("a", "b:c")));
        assert_eq!(split_id("abc"), None);
    }
}
