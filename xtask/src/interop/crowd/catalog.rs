//! Config of the gateway.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::manifest::{Manifest, Server};
use super::processes::MARK;
use super::tools::Tools;

/// Level without a sandbox.
pub(super) const UNCONFINED: &str = "off";

/// Idle timeout of a server: longer than the pauses of a client, and still short.
const IDLE_SECONDS: u32 = 5;

#[derive(Serialize)]
struct Catalog<'a> {
    gateway: Gateway,
    servers: BTreeMap<&'a str, Entry<'a>>,
}

#[derive(Serialize)]
struct Gateway {
    sandbox: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Url {
        url: &'a str,
    },
    Command {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        idle_seconds: u32,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        allow_read: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        allow_write: Vec<String>,
    },
}

/// Writes all servers, in sandboxes of this level; HTTP servers have these URLs.
pub(super) fn write(
    manifest: &Manifest,
    tools: &Tools,
    folder: &Path,
    urls: &BTreeMap<String, String>,
    mark: &str,
    sandbox: &'static str,
) -> Result<String, toml::ser::Error> {
    // Git ends if it cannot read its settings.
    let readable = [String::from("${HOME}/.gitconfig")];
    let writable = [folder.to_string_lossy().into_owned()];
    let unless_off = |paths: &[String]| match sandbox {
        UNCONFINED => Vec::new(),
        _ => paths.to_vec(),
    };
    let entry = |server: &Server| -> Entry<'_> {
        if let Some(url) = urls.get(&server.name) {
            return Entry::Url { url };
        }
        let mut words = server.words(tools, folder).into_iter();
        let mut env = server.env(folder);
        env.insert(MARK.to_owned(), mark.to_owned());
        Entry::Command {
            command: words.next().unwrap_or_default(),
            args: words.collect(),
            env,
            idle_seconds: IDLE_SECONDS,
            allow_read: unless_off(&readable),
            allow_write: unless_off(&writable),
        }
    };
    let servers = manifest.servers().iter();
    let servers = servers.map(|server| (server.name.as_str(), entry(server)));
    toml::to_string(&Catalog {
        gateway: Gateway { sandbox },
        servers: servers.collect(),
    })
}
