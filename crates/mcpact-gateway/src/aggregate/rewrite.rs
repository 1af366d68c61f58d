//! Names and URIs inside messages.

use std::borrow::Cow;

use mcpact_spec::Method;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};
use mcpact_wire::scan::{push_quoted, text};

/// Subject of a request, which determines the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    Tool(Cow<'a, str>),
    Prompt(Cow<'a, str>),
    Uri(Cow<'a, str>),
    Task(Cow<'a, str>),
    /// No subject: the request concerns all servers.
    Nothing,
}

impl Subject<'_> {
    /// Returns the name, URI or task id.
    pub(crate) fn into_name(self) -> Option<String> {
        match self {
            Self::Tool(name) | Self::Prompt(name) | Self::Uri(name) | Self::Task(name) => {
                Some(name.into_owned())
            }
            Self::Nothing => None,
        }
    }
}

/// Returns the member that identifies the subject, for methods that require one.
pub(crate) const fn subject_key(method: Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead
        | Method::ResourcesSubscribe
        | Method::ResourcesUnsubscribe
        | Method::SkillsGet
        | Method::ResourcesDirectoryRead => Some("uri"),
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
            Some("taskId")
        }
        _ => None,
    }
}

/// Returns the reference of `completion/complete` and the member that identifies its subject.
fn reference(method: Method, params: &str) -> Option<(&str, &'static str)> {
    if method != Method::CompletionComplete {
        return None;
    }
    let raw = Object::parse(params).ok()?.get("ref")?;
    match Object::parse(raw).ok()?.get_str("type")?.as_ref() {
        "ref/prompt" => Some((raw, "name")),
        "ref/resource" => Some((raw, "uri")),
        _ => None,
    }
}

/// Returns the subject of a request.
pub(crate) fn subject(method: Method, params: &str) -> Subject<'_> {
    find_subject(method, params).unwrap_or(Subject::Nothing)
}

fn find_subject(method: Method, params: &str) -> Option<Subject<'_>> {
    let (raw, key) = match subject_key(method) {
        Some(key) => (params, key),
        None => reference(method, params)?,
    };
    let name = Object::parse(raw).ok()?.get_str(key)?;
    Some(match key {
        "taskId" => Subject::Task(name),
        "uri" => Subject::Uri(name),
        _ if method == Method::ToolsCall => Subject::Tool(name),
        _ => Subject::Prompt(name),
    })
}

/// Returns the request with another subject.
pub(crate) fn with_subject(method: Method, params: &str, inner: &str) -> Option<String> {
    let replace = |raw: &str, key| edit(raw, key, |_| Some(quoted(inner)));
    if let Some(key) = subject_key(method) {
        return replace(params, key);
    }
    let (_, key) = reference(method, params)?;
    edit(params, "ref", |raw| replace(raw, key))
}

/// Returns a tool or the result of a call with changed URIs of its view, in both keys; none if nothing changes.
pub(crate) fn edit_views(
    raw: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut change = |raw: &str| Some(quoted(&change(&text(raw)?)?));
    edit(raw, "_meta", |meta| {
        let nested = edit(meta, "ui", |ui| edit(ui, "resourceUri", &mut change));
        let flat = edit(
            nested.as_deref().unwrap_or(meta),
            "ui/resourceUri",
            &mut change,
        );
        flat.or(nested)
    })
}

/// Returns the entry of a skill with changed URIs of its files; none if nothing changes.
pub(crate) fn edit_skill(
    raw: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut member = |raw: &str| edit(raw, "uri", |raw| Some(quoted(&change(&text(raw)?)?)));
    let own = member(raw);
    let files = edit(own.as_deref().unwrap_or(raw), "resources", |files| {
        edit_each(files, member)
    });
    files.or(own)
}

/// Returns the object with another value of a member; none if nothing changes.
pub(crate) fn edit(
    raw: &str,
    key: &str,
    change: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    let object = Object::parse(raw).ok()?;
    let changed = change(object.get(key)?)?;
    let members = object.iter();
    let members = members.map(|(name, raw)| (name, if name == key { &changed } else { raw }));
    Some(ObjectWriter::new().members(members).finish())
}

/// Returns an input-required result with every question changed by `change`; none if nothing changes.
pub(crate) fn edit_questions(
    raw: &str,
    mut change: impl FnMut(Method, &str) -> Option<String>,
) -> Option<String> {
    edit(raw, "inputRequests", |requests| {
        let requests = Object::parse(requests).ok()?;
        let mut out = ObjectWriter::new();
        for (key, raw) in requests.iter() {
            let question = Object::parse(raw).unwrap_or_default();
            let method = question.get_str("method");
            let method = method.and_then(|method| Method::parse(&method));
            let changed = method.and_then(|method| edit(raw, "params", |raw| change(method, raw)));
            out = out.raw(key, changed.as_deref().unwrap_or(raw));
        }
        Some(out.finish())
    })
}

/// Returns the array with changed elements; none if nothing changes.
pub(crate) fn edit_each(
    raw: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut is_changed = false;
    let elements = elements(raw).ok()?.into_iter().map(|element| {
        let changed = change(element);
        is_changed |= changed.is_some();
        changed.map_or(Cow::Borrowed(element), Cow::Owned)
    });
    let elements: Vec<Cow<'_, str>> = elements.collect();
    is_changed.then(|| format!("[{}]", elements.join(",")))
}

/// Returns the text as a JSON string.
pub(crate) fn quoted(value: &str) -> String {
    let mut out = String::new();
    push_quoted(&mut out, value);
    out
}

/// Rewrites the URIs in a result.
#[derive(Debug)]
pub(crate) struct UriMap<F>(pub(crate) F);

impl<F: FnMut(&str) -> Option<String>> UriMap<F> {
    /// Returns the result of a method with rewritten URIs; none if nothing changes. Text content is never changed.
    pub(crate) fn result(&mut self, method: Method, raw: &str) -> Option<String> {
        match method {
            Method::ResourcesRead => edit(raw, "contents", |raw| {
                edit_each(raw, |raw| self.member(raw))
            }),
            Method::ResourcesDirectoryRead => edit(raw, "resources", |raw| {
                edit_each(raw, |raw| self.member(raw))
            }),
            Method::SkillsGet => edit(raw, "skill", |raw| edit_skill(raw, &mut self.0)),
            Method::ToolsCall | Method::TasksResult => {
                let content = edit(raw, "content", |raw| edit_each(raw, |raw| self.block(raw)));
                let views = edit_views(content.as_deref().unwrap_or(raw), &mut self.0);
                views.or(content)
            }
            Method::TasksGet => edit(raw, "result", |raw| self.result(Method::ToolsCall, raw)),
            Method::PromptsGet => edit(raw, "messages", |raw| {
                edit_each(raw, |raw| edit(raw, "content", |raw| self.content(raw)))
            }),
            _ => None,
        }
    }

    /// Rewrites one content block or an array of them.
    fn content(&mut self, raw: &str) -> Option<String> {
        match JsonKind::of(raw) {
            JsonKind::Array => edit_each(raw, |raw| self.block(raw)),
            _ => self.block(raw),
        }
    }

    fn block(&mut self, raw: &str) -> Option<String> {
        match Object::parse(raw).ok()?.get_str("type")?.as_ref() {
            "resource_link" => self.member(raw),
            "resource" => edit(raw, "resource", |raw| self.member(raw)),
            _ => None,
        }
    }

    /// Rewrites the `uri` of an object.
    pub(crate) fn member(&mut self, raw: &str) -> Option<String> {
        edit(raw, "uri", |raw| {
            Some(quoted(&(self.0)(text(raw)?.as_ref())?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_is_read_and_replaced() {
        let cells = [
            (
                Method::ToolsCall,
                r#"{"name":"a","x":{ }}"#,
                r#"{"name":"b","x":{ }}"#,
            ),
            (Method::PromptsGet, r#"{"name":"a"}"#, r#"{"name":"b"}"#),
            (Method::ResourcesRead, r#"{"uri":"a"}"#, r#"{"uri":"b"}"#),
            (Method::TasksGet, r#"{"taskId":"a"}"#, r#"{"taskId":"b"}"#),
            (
                Method::ResourcesSubscribe,
                r#"{"uri":"a"}"#,
                r#"{"uri":"b"}"#,
            ),
            (
                Method::CompletionComplete,
                r#"{"ref":{"type":"ref/prompt","name":"a"},"argument":{}}"#,
                r#"{"ref":{"type":"ref/prompt","name":"b"},"argument":{}}"#,
            ),
            (
                Method::CompletionComplete,
                r#"{"ref":{"type":"ref/resource","uri":"a"}}"#,
                r#"{"ref":{"type":"ref/resource","uri":"b"}}"#,
            ),
        ];
        for (method, params, expected) in cells {
            let about = match subject(method, params) {
                Subject::Tool(name)
                | Subject::Prompt(name)
                | Subject::Uri(name)
                | Subject::Task(name) => name,
                Subject::Nothing => Cow::Borrowed(""),
            };
            assert_eq!(about, "a", "{params}");
            let other = with_subject(method, params, "b");
            assert_eq!(other.as_deref(), Some(expected));
        }
        assert_eq!(subject(Method::ToolsList, "{}"), Subject::Nothing);
        assert_eq!(subject(Method::ToolsCall, "{}"), Subject::Nothing);
    }

    /// URIs in results are rewritten; text and unknown data are not.
    #[test]
    fn uris_in_results_are_rewritten() {
        let mut map = UriMap(|uri: &str| Some(format!("g:{uri}")));
        let cells = [
            (
                Method::ResourcesRead,
                r#"{"contents":[{"uri":"x://1","text":"uri\" x://1"}],"_meta":{ }}"#,
                r#"{"contents":[{"uri":"g:x://1","text":"uri\" x://1"}],"_meta":{ }}"#,
            ),
            (
                Method::ToolsCall,
                r#"{"content":[{"type":"text","text":"uri\""},{"type":"resource_link","uri":"x"},{"type":"resource","resource":{"uri":"y"}}]}"#,
                r#"{"content":[{"type":"text","text":"uri\""},{"type":"resource_link","uri":"g:x"},{"type":"resource","resource":{"uri":"g:y"}}]}"#,
            ),
            (
                Method::PromptsGet,
                r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"y"}}}]}"#,
                r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"g:y"}}}]}"#,
            ),
            (
                Method::ToolsCall,
                r#"{"content":[],"_meta":{"ui":{"resourceUri":"x","a":1},"ui/resourceUri":"y"}}"#,
                r#"{"content":[],"_meta":{"ui":{"resourceUri":"g:x","a":1},"ui/resourceUri":"g:y"}}"#,
            ),
            (
                Method::TasksGet,
                r#"{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"x"}]}}"#,
                r#"{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"g:x"}]}}"#,
            ),
            (
                Method::ToolsCall,
                r#"{"structuredContent":{"uri":"x"},"content":[]}"#,
                r#"{"structuredContent":{"uri":"x"},"content":[]}"#,
            ),
        ];
        for (method, raw, expected) in cells {
            let result = map.result(method, raw);
            assert_eq!(result.as_deref().unwrap_or(raw), expected);
        }
    }
}
