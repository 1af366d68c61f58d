//! What a listen request asks for, what it is granted, and what it is then sent.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Extension, Method};
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};
use mcpact_wire::scan::{push_quoted, text};

use crate::pact::Pact;

/// The change notifications that a client wants on a stream of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenFilter {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource list.
    pub resources: bool,
    /// Updates of these resources.
    pub uris: Vec<Box<str>>,
    /// Changes of these tasks.
    pub tasks: Vec<Box<str>>,
}

impl ListenFilter {
    /// Reads `params.notifications`; none when it is not an object.
    #[must_use]
    pub fn parse(params: Option<&str>) -> Option<Self> {
        let params = Object::parse(params?).ok()?;
        let wanted = Object::parse(params.get("notifications")?).ok()?;
        let flag = |key: &str| wanted.get(key) == Some("true");
        let list = |key: &str| -> Vec<Box<str>> {
            wanted
                .get(key)
                .filter(|raw| JsonKind::of(raw) == JsonKind::Array)
                .and_then(|raw| elements(raw).ok())
                .unwrap_or_default()
                .into_iter()
                .filter_map(|raw| text(raw).map(|t| Box::from(t.as_ref())))
                .collect()
        };
        Some(Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            uris: list("resourceSubscriptions"),
            tasks: list("taskIds"),
        })
    }

    /// The part that the server declared.
    ///
    /// `2026-07-28 basic/patterns/subscriptions`: what is not supported is left out of the
    /// acknowledgement; the stream opens all the same.
    #[must_use]
    pub fn granted(self, pact: &Pact) -> Self {
        let keep =
            |list: Vec<Box<str>>, is_granted: bool| if is_granted { list } else { Vec::new() };
        Self {
            tools: self.tools && pact.declares(Capability::ToolsListChanged),
            prompts: self.prompts && pact.declares(Capability::PromptsListChanged),
            resources: self.resources && pact.declares(Capability::ResourcesListChanged),
            uris: keep(self.uris, pact.declares(Capability::ResourcesSubscribe)),
            tasks: keep(self.tasks, pact.lacking(Extension::Tasks).is_none()),
        }
    }

    /// Whether the stream asked for this kind of notification.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "nothing else may go on a listen stream"
    )]
    pub fn wants(&self, method: Method) -> bool {
        match method {
            Method::ToolsListChanged => self.tools,
            Method::PromptsListChanged => self.prompts,
            Method::ResourcesListChanged => self.resources,
            // A sub-resource of a subscribed one may be reported, so the URI is not compared.
            Method::ResourcesUpdated => !self.uris.is_empty(),
            Method::TasksChanged => !self.tasks.is_empty(),
            _ => false,
        }
    }

    /// The filter as it stands in the acknowledgement: only what is granted.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = ObjectWriter::new();
        for (key, is_granted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if is_granted {
                out = out.raw(key, "true");
            }
        }
        for (key, list) in [
            ("resourceSubscriptions", &self.uris),
            ("taskIds", &self.tasks),
        ] {
            if !list.is_empty() {
                out = out.raw(key, &array(list));
            }
        }
        out.finish()
    }
}

fn array(list: &[Box<str>]) -> String {
    let mut out = String::from("[");
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_quoted(&mut out, item);
    }
    out.push(']');
    out
}
