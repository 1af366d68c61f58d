//! Names and addresses inside messages.

use std::borrow::Cow;

use mcpact_spec::Method;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};
use mcpact_wire::scan::{push_quoted, text};

/// What a request is about, and so which server it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    Tool(Cow<'a, str>),
    Prompt(Cow<'a, str>),
    Uri(Cow<'a, str>),
    Task(Cow<'a, str>),
    /// Nothing that only one server has.
    Nothing,
}

impl Subject<'_> {
    /// What it is called.
    pub(crate) fn into_name(self) -> Option<String> {
        match self {
            Self::Tool(name) | Self::Prompt(name) | Self::Uri(name) | Self::Task(name) => {
                Some(name.into_owned())
            }
            Self::Nothing => None,
        }
    }
}

/// Where in a request its subject stands.
enum Place {
    Name,
    Uri,
    Task,
    PromptReference,
    UriReference,
}

fn place(method: Method, params: &Object<'_>) -> Option<Place> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some(Place::Name),
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            Some(Place::Uri)
        }
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
            Some(Place::Task)
        }
        Method::CompletionComplete => {
            let reference = Object::parse(params.get("ref")?).ok()?;
            match reference.get_str("type")?.as_ref() {
                "ref/prompt" => Some(Place::PromptReference),
                "ref/resource" => Some(Place::UriReference),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The member of a request that says what it is about, where there has to be one.
pub(crate) const fn subject_key(method: Method) -> Option<&'static str> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some("name"),
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            Some("uri")
        }
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
            Some("taskId")
        }
        _ => None,
    }
}

/// What a request is about.
pub(crate) fn subject(method: Method, params: &str) -> Subject<'_> {
    let Ok(params) = Object::parse(params) else {
        return Subject::Nothing;
    };
    let member = |key: &str| params.get_str(key);
    let reference = |key: &str| Object::parse(params.get("ref")?).ok()?.get_str(key);
    let found = match place(method, &params) {
        Some(Place::Name) if method == Method::ToolsCall => member("name").map(Subject::Tool),
        Some(Place::Name) => member("name").map(Subject::Prompt),
        Some(Place::Uri) => member("uri").map(Subject::Uri),
        Some(Place::Task) => member("taskId").map(Subject::Task),
        Some(Place::PromptReference) => reference("name").map(Subject::Prompt),
        Some(Place::UriReference) => reference("uri").map(Subject::Uri),
        None => None,
    };
    found.unwrap_or(Subject::Nothing)
}

/// The same request about something else.
pub(crate) fn with_subject(method: Method, params: &str, inner: &str) -> Option<String> {
    let quoted = Some(quoted(inner));
    match place(method, &Object::parse(params).ok()?)? {
        Place::Name => edit(params, "name", |_| quoted.clone()),
        Place::Uri => edit(params, "uri", |_| quoted.clone()),
        Place::Task => edit(params, "taskId", |_| quoted.clone()),
        Place::PromptReference => edit(params, "ref", |raw| edit(raw, "name", |_| quoted.clone())),
        Place::UriReference => edit(params, "ref", |raw| edit(raw, "uri", |_| quoted.clone())),
    }
}

/// The object with another value for a member that it has; none if there is nothing to change.
pub(crate) fn edit(
    raw: &str,
    key: &str,
    change: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    let object = Object::parse(raw).ok()?;
    let changed = change(object.get(key)?)?;
    let out = object.iter().fold(ObjectWriter::new(), |out, (name, raw)| {
        out.raw(name, if name == key { &changed } else { raw })
    });
    Some(out.finish())
}

/// A result that asks the client, with every question about something shown as `show` says.
pub(crate) fn edit_questions(
    raw: &str,
    mut show: impl FnMut(Method, &str) -> Option<String>,
) -> Option<String> {
    // Most results ask nothing, and are not looked into.
    if !raw.contains("inputRequests\"") {
        return None;
    }
    edit(raw, "inputRequests", |requests| {
        let requests = Object::parse(requests).ok()?;
        let out = requests
            .iter()
            .fold(ObjectWriter::new(), |out, (key, raw)| {
                let method = Object::parse(raw).ok().and_then(|question| {
                    let method = question.get_str("method")?;
                    Method::parse(&method)
                });
                let shown = method.and_then(|method| edit(raw, "params", |raw| show(method, raw)));
                out.raw(key, shown.as_deref().unwrap_or(raw))
            });
        Some(out.finish())
    })
}

/// The array with other elements; none if there is nothing to change.
pub(crate) fn edit_each(
    raw: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    if JsonKind::of(raw) != JsonKind::Array {
        return None;
    }
    let mut is_changed = false;
    let elements: Vec<Cow<'_, str>> = elements(raw)
        .ok()?
        .into_iter()
        .map(|element| match change(element) {
            Some(changed) => {
                is_changed = true;
                Cow::Owned(changed)
            }
            None => Cow::Borrowed(element),
        })
        .collect();
    is_changed.then(|| format!("[{}]", elements.join(",")))
}

/// A text as JSON.
pub(crate) fn quoted(value: &str) -> String {
    let mut out = String::new();
    push_quoted(&mut out, value);
    out
}

/// Shows the addresses in a result in another form.
#[derive(Debug)]
pub(crate) struct UriMap<F>(pub(crate) F);

impl<F: FnMut(&str) -> Option<String>> UriMap<F> {
    /// The result of a method with its addresses shown; text in it is never touched.
    pub(crate) fn result<'a>(&mut self, method: Method, raw: &'a str) -> Cow<'a, str> {
        // Most results have no address, and are not looked into.
        if !raw.contains("uri\"") && !raw.contains("uri\\") {
            return Cow::Borrowed(raw);
        }
        let changed = match method {
            Method::ResourcesRead => edit(raw, "contents", |raw| {
                edit_each(raw, |raw| self.member(raw))
            }),
            Method::ToolsCall | Method::TasksResult => {
                edit(raw, "content", |raw| edit_each(raw, |raw| self.block(raw)))
            }
            Method::PromptsGet => edit(raw, "messages", |raw| {
                edit_each(raw, |raw| edit(raw, "content", |raw| self.content(raw)))
            }),
            _ => None,
        };
        changed.map_or(Cow::Borrowed(raw), Cow::Owned)
    }

    /// One block or several.
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

    /// An object with an address of its own.
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
    fn a_request_is_about_one_thing_and_can_be_about_another() {
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

    /// Addresses in results are shown as in lists; text and unknown data stay as they are.
    #[test]
    fn addresses_in_results_are_shown() {
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
                r#"{"structuredContent":{"uri":"x"},"content":[]}"#,
                r#"{"structuredContent":{"uri":"x"},"content":[]}"#,
            ),
        ];
        for (method, raw, expected) in cells {
            assert_eq!(map.result(method, raw), expected);
        }
    }
}
