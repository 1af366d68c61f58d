//! What the tools of a server looked like when they were first seen.
//!
//! A server can say something else about a tool after a person has come to trust it. Whoever calls a tool
//! goes by what is said about it, so a change is told, or the tool is not served any more.

mod definition;
mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpact_config::ChangedTools;
use mcpact_wire::raw::{Object, elements};

use self::definition::{digest, hidden_letter};
use crate::stable::LogEvent;

/// How many tools are remembered; nothing is said about those beyond.
const TOOLS: usize = 4096;

/// How the tools of a server are remembered.
#[derive(Clone, Debug, Default)]
pub struct PinSettings {
    /// What happens to a tool that is not what it was.
    pub changed: ChangedTools,
    /// Where they are remembered from one run to the next.
    pub file: Option<PathBuf>,
}

/// The tools of one server.
#[derive(Debug)]
pub(crate) struct Pins {
    /// The server, as people know it.
    server: String,
    /// Where they are remembered from one run to the next.
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What happens to a tool that is not what it was.
    changed: ChangedTools,
    is_read: bool,
    tools: BTreeMap<Box<str>, Pin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pin {
    first: Box<str>,
    /// What it is, if that is something else.
    other: Option<Box<str>>,
}

impl Pins {
    pub(crate) fn new(server: String, settings: PinSettings) -> Self {
        let PinSettings { changed, file } = settings;
        Self {
            server,
            file,
            known: Mutex::new(Known {
                changed,
                ..Known::default()
            }),
        }
    }

    /// From here on this happens to tools that are not what they were. Whether others are served than before.
    pub(crate) fn treat_changed(&self, changed: ChangedTools) -> bool {
        let before = self.hidden();
        self.known().changed = changed;
        self.hidden() != before
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a tool is kept back, because it is not what it was.
    pub(crate) fn hide(&self, tool: &str) -> bool {
        let known = self.known();
        let pin = known.tools.get(tool);
        known.changed == ChangedTools::Hide && pin.is_some_and(|pin| pin.other.is_some())
    }

    /// Whether any tool can be kept back.
    pub(crate) fn hide_any(&self) -> bool {
        self.known().changed == ChangedTools::Hide
    }

    /// The tools that are kept back.
    pub(crate) fn hidden(&self) -> Vec<String> {
        if !self.hide_any() {
            return Vec::new();
        }
        let known = self.known();
        let hidden = known.tools.iter().filter(|(_, pin)| pin.other.is_some());
        hidden.map(|(tool, _)| tool.to_string()).collect()
    }

    /// What is kept back, and until when; none if nothing is.
    pub(crate) fn withheld(&self) -> Option<String> {
        let (tools, them) = match self.hidden().len() {
            0 => return None,
            1 => (String::from("1 tool is hidden"), "it"),
            count => (format!("{count} tools are hidden"), "them"),
        };
        let server = &self.server;
        Some(format!(
            "{tools} until `mcpact approve --tools {server}`, because the server says something else about {them} than before"
        ))
    }

    /// Agrees to what the server says about its tools now. The tools that are not what they were.
    pub(crate) fn agree(&self) -> Vec<String> {
        let mut known = self.known();
        let mut agreed = Vec::new();
        for (tool, pin) in &mut known.tools {
            if let Some(now) = pin.other.take() {
                pin.first = now;
                agreed.push(tool.to_string());
            }
        }
        if !agreed.is_empty() {
            self.write_down(&known);
        }
        agreed
    }

    fn write_down(&self, known: &Known) {
        let Some(file) = &self.file else {
            return;
        };
        let firsts = known.tools.iter().map(|(tool, pin)| (&**tool, &*pin.first));
        if let Err(error) = store::write(file, firsts) {
            let server = self.server.as_str();
            tracing::warn!(server, %error, "failed to save tool pins");
        }
    }

    /// Takes note of a page of the server's tools.
    pub(crate) fn learn(&self, page: &str) {
        let mut known = self.known();
        if known.changed == ChangedTools::Serve {
            return;
        }
        let server = self.server.as_str();
        let page = Object::parse(page).unwrap_or_default();
        let tools = page.get("tools").and_then(|raw| elements(raw).ok());
        if self.was_forgotten(&mut known) {
            tracing::info!(server, "tool pins reset");
        }
        let mut is_news = false;
        for tool in tools.unwrap_or_default() {
            is_news |= known.note(server, tool);
        }
        if is_news {
            self.write_down(&known);
        }
    }

    /// Reads what was written down once, and forgets it when somebody has taken that away.
    fn was_forgotten(&self, known: &mut Known) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        if !known.is_read {
            known.is_read = true;
            let kept = store::read(file).into_iter().take(TOOLS);
            known.tools = kept
                .map(|(tool, first)| (tool, Pin { first, other: None }))
                .collect();
            return false;
        }
        let is_gone = !known.tools.is_empty() && !file.exists();
        if is_gone {
            known.tools.clear();
        }
        is_gone
    }
}

impl Known {
    /// Whether this tool was not known before.
    fn note(&mut self, server: &str, raw: &str) -> bool {
        let tool = Object::parse(raw).unwrap_or_default();
        let Some(name) = tool.get_str("name") else {
            return false;
        };
        let now: Box<str> = digest(raw).into();
        match self.tools.get_mut(&*name) {
            Some(pin) if pin.first == now => pin.other = None,
            Some(pin) if pin.other.as_deref() == Some(&*now) => {}
            Some(pin) => {
                tracing::warn!(
                    event = LogEvent::ToolChanged.as_str(),
                    server,
                    tool = &*name,
                    "tool definition changed; run `mcpact approve --tools` to approve it"
                );
                pin.other = Some(now);
            }
            None => {
                if let Some(letter) = hidden_letter(raw) {
                    tracing::warn!(
                        event = LogEvent::ToolHiddenText.as_str(),
                        server,
                        tool = &*name,
                        letter = format!("U+{:04X}", u32::from(letter)),
                        "tool definition contains invisible characters"
                    );
                }
                if self.tools.len() >= TOOLS {
                    return false;
                }
                let pin = Pin {
                    first: now,
                    other: None,
                };
                self.tools.insert(Box::from(&*name), pin);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
