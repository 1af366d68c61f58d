//! Tool pins: digests of the tool definitions of a server when they were first listed.
//!
//! A server could change the definition of a tool after the user has come to trust it. Depending on the settings a changed
//! tool is reported or hidden.

mod definition;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::{fs, io};

use mcpact_config::ChangedTools;
use mcpact_transport::private_file;
use mcpact_wire::raw::{elements, visit};
use mcpact_wire::scan::text;

use self::definition::{digest, invisible_char};
use crate::reason::LogEvent;
use crate::sync::lock;

/// Maximum number of pinned tools per server.
const MAX_TOOLS: usize = 4096;

/// Maximum size of a pin file.
const MAX_BYTES: u64 = 1 << 20;

/// Settings of the tool pins of a server.
#[derive(Clone, Debug, Default)]
pub struct PinSettings {
    /// Configured treatment of changed tools.
    pub changed: Option<ChangedTools>,
    /// Treatment without a configured one.
    pub default: ChangedTools,
    /// File in which pins are stored.
    pub file: Option<PathBuf>,
}

/// Tool pins of one server.
#[derive(Debug)]
pub(crate) struct Pins {
    /// Name of the server.
    server: String,
    file: Option<PathBuf>,
    /// Treatment of changed tools, unless another is configured.
    default: ChangedTools,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    changed: ChangedTools,
    is_loaded: bool,
    tools: BTreeMap<Box<str>, Pin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pin {
    /// Digest of the approved definition.
    approved: Box<str>,
    /// Digest of the current definition, if it differs.
    changed: Option<Box<str>>,
}

impl Pin {
    const fn approved(digest: Box<str>) -> Self {
        Self {
            approved: digest,
            changed: None,
        }
    }
}

impl Pins {
    pub(crate) fn new(server: String, settings: PinSettings) -> Self {
        let state = State {
            changed: settings.changed.unwrap_or(settings.default),
            ..State::default()
        };
        Self {
            server,
            file: settings.file,
            default: settings.default,
            state: Mutex::new(state),
        }
    }

    /// Sets the treatment of changed tools. Returns true if other tools are hidden than before.
    pub(crate) fn treat_changed(&self, changed: Option<ChangedTools>) -> bool {
        let before = self.hidden();
        self.state().changed = changed.unwrap_or(self.default);
        self.hidden() != before
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns true if a tool is hidden because it has changed.
    pub(crate) fn is_hidden(&self, tool: &str) -> bool {
        let state = self.state();
        let pin = state.tools.get(tool);
        state.changed == ChangedTools::Hide && pin.is_some_and(|pin| pin.changed.is_some())
    }

    /// Returns true if changed tools are hidden.
    pub(crate) fn hides_changed(&self) -> bool {
        self.state().changed == ChangedTools::Hide
    }

    /// Returns the hidden tools.
    pub(crate) fn hidden(&self) -> Vec<String> {
        let state = self.state();
        if state.changed != ChangedTools::Hide {
            return Vec::new();
        }
        let changed = state.tools.iter().filter(|(_, pin)| pin.changed.is_some());
        changed.map(|(tool, _)| tool.to_string()).collect()
    }

    /// Returns a text about the hidden tools and how to approve them.
    pub(crate) fn hidden_text(&self) -> Option<String> {
        let (tools, definitions) = match self.hidden().len() {
            0 => return None,
            1 => (String::from("1 tool is hidden"), "its definition has"),
            count => (
                format!("{count} tools are hidden"),
                "their definitions have",
            ),
        };
        let server = &self.server;
        Some(format!(
            "{tools} until `mcpact approve --tools {server}`, because {definitions} changed"
        ))
    }

    /// Approves the current definitions. Returns the tools that had changed.
    pub(crate) fn approve(&self) -> Vec<String> {
        let mut state = self.state();
        let mut approved = Vec::new();
        for (tool, pin) in &mut state.tools {
            if let Some(digest) = pin.changed.take() {
                pin.approved = digest;
                approved.push(tool.to_string());
            }
        }
        if !approved.is_empty() {
            self.save(&state);
        }
        approved
    }

    fn save(&self, state: &State) {
        if let Some(file) = &self.file
            && let Err(error) = write(file, &state.tools)
        {
            let server = self.server.as_str();
            tracing::warn!(server, %error, "failed to save tool pins");
        }
    }

    /// Compares a page of the tool list with the pins, and pins new tools.
    pub(crate) fn check(&self, page: &str) {
        let mut state = self.state();
        if state.changed == ChangedTools::Serve {
            return;
        }
        let server = self.server.as_str();
        // Not as an `Object`: a page with a duplicate key has tools as well.
        let mut tools = Vec::new();
        let _ = visit(page, |key, raw| {
            if key == "tools" {
                tools.extend(elements(raw).unwrap_or_default());
            }
        });
        if let Some(file) = &self.file {
            if !state.is_loaded {
                state.is_loaded = true;
                state.tools = read(file);
            } else if !state.tools.is_empty() && !file.exists() {
                // The user has deleted the file.
                state.tools.clear();
                tracing::info!(server, "tool pins reset");
            }
        }
        let mut is_any_new = false;
        for tool in tools {
            // Of duplicate names any may be the one that a client reads.
            let _ = visit(tool, |key, raw| {
                if key == "name"
                    && let Some(name) = text(raw)
                {
                    is_any_new |= state.check(server, &name, tool);
                }
            });
        }
        if is_any_new {
            self.save(&state);
        }
    }
}

impl State {
    /// Compares a tool with its pin. Returns true if the tool is new and was pinned.
    fn check(&mut self, server: &str, name: &str, raw: &str) -> bool {
        let current: Box<str> = digest(raw).into();
        match self.tools.get_mut(name) {
            Some(pin) if pin.approved == current => pin.changed = None,
            Some(pin) if pin.changed.as_deref() == Some(&*current) => {}
            Some(pin) => {
                tracing::warn!(
                    event = LogEvent::ToolChanged.as_str(),
                    server,
                    tool = name,
                    "tool definition changed; run `mcpact approve --tools` to approve it"
                );
                pin.changed = Some(current);
            }
            None => {
                if let Some(found) = invisible_char(raw) {
                    tracing::warn!(
                        event = LogEvent::ToolHiddenText.as_str(),
                        server,
                        tool = name,
                        letter = format!("U+{:04X}", u32::from(found)),
                        "tool definition contains invisible characters"
                    );
                }
                if self.tools.len() >= MAX_TOOLS {
                    return false;
                }
                self.tools.insert(Box::from(name), Pin::approved(current));
                return true;
            }
        }
        false
    }
}

/// Reads a pin file: a digest and a tool name per line. A missing or unreadable file holds no pins.
fn read(path: &Path) -> BTreeMap<Box<str>, Pin> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.len() <= MAX_BYTES);
    let text = is_small.then(|| fs::read_to_string(path).ok()).flatten();
    let text = text.unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .take(MAX_TOOLS)
        .map(|(digest, tool)| (Box::from(tool), Pin::approved(Box::from(digest))))
        .collect()
}

/// Replaces a pin file atomically.
fn write(path: &Path, tools: &BTreeMap<Box<str>, Pin>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_file::create_folder(folder)?;
    }
    // A name with a line break would become two lines.
    let tools = tools.iter();
    let tools = tools.filter(|(tool, _)| !tool.contains(['\n', '\r']));
    let lines = tools.map(|(tool, pin)| format!("{} {tool}\n", pin.approved));
    let text: String = lines.collect();
    private_file::replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests;
