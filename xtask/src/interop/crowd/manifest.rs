//! Servers of `interop/crowd.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use super::tools::Tools;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::interop::manifest::{Kind, Transport, file};

const FILE: &str = "interop/crowd.toml";
/// Separator of server and tool in a public tool name.
const SEPARATOR: &str = "__";

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) visitor: String,
    server: Vec<Server>,
}

/// One server and the call that it must answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) packages: Vec<String>,
    pub(super) program: Option<String>,
    pub(super) file: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default = "on_pipes")]
    pub(super) reached: Transport,
    /// Runs in sandboxes as well.
    #[serde(default)]
    sandboxed: bool,
    call: Call,
}

const fn on_pipes() -> Transport {
    Transport::Stdio
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    arguments: Value,
    expect: String,
}

impl Manifest {
    pub(super) fn read(checkout: &Checkout) -> Result<Self, Failure> {
        file(checkout, FILE)
    }

    /// The servers that run in sandboxes as well.
    pub(super) fn sandboxed(checkout: &Checkout) -> Result<Self, Failure> {
        let mut manifest = Self::read(checkout)?;
        manifest.server.retain(|server| server.sandboxed);
        Ok(manifest)
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.server
    }

    /// Calls of a client, as JSON.
    pub(super) fn calls(&self, folder: &Path, url: &str) -> String {
        let origin = url.strip_suffix("/mcp").unwrap_or(url);
        let calls = self.server.iter().map(|server| {
            let call = &server.call;
            let tool = format!("{}{SEPARATOR}{}", server.name, call.tool);
            json!({ "tool": tool, "arguments": call.arguments, "expect": call.expect })
        });
        let calls = Value::from_iter(calls).to_string();
        placed(&calls, folder).replace("{origin}", origin)
    }
}

impl Server {
    /// Command line.
    pub(super) fn words(&self, tools: &Tools, folder: &Path) -> Vec<String> {
        let mut words = tools.start(self);
        words.extend(self.args.iter().map(|word| placed(word, folder)));
        words
    }

    /// Environment variables.
    pub(super) fn env(&self, folder: &Path) -> BTreeMap<String, String> {
        let env = self.env.iter();
        env.map(|(name, value)| (name.clone(), placed(value, folder)))
            .collect()
    }

    /// Command that starts the server.
    pub(super) fn command(&self, tools: &Tools, folder: &Path) -> Command {
        let mut words = self.words(tools, folder).into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).envs(self.env(folder));
        command
    }
}

fn placed(text: &str, folder: &Path) -> String {
    text.replace("{folder}", &folder.to_string_lossy())
}
