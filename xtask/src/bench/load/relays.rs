//! The relays of others: installed, and written down for the load.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::node::{self, Pin};
use crate::python;

/// Directory of their packages.
const FOLDER: &str = "target/relays";

/// Directory of our own scripts.
const SCRIPTS: &str = "interop/relays";

/// Origin of a relay.
enum Source {
    /// A program of a package of npm.
    Npm {
        package: &'static str,
        version: &'static str,
        program: &'static str,
    },
    /// A program that a package of PyPI installs.
    Program {
        pin: &'static str,
        name: &'static str,
    },
    /// A program of ours on a package of PyPI.
    Script {
        pin: &'static str,
        name: &'static str,
    },
}

/// One configuration of a relay; the names are those of `mcpact-load`'s recipes.
struct Row {
    name: &'static str,
    source: Source,
    behind: &'static str,
    words: &'static [&'static str],
    path: &'static str,
}

const FASTMCP: Source = Source::Script {
    pin: python::FASTMCP,
    name: "fastmcp_relay.py",
};

const ROWS: &[Row] = &[
    Row {
        name: "npm mcp-proxy",
        source: Source::Npm {
            package: "mcp-proxy",
            version: "6.7.19",
            program: "dist/bin/mcp-proxy.mjs",
        },
        behind: "stdio",
        words: &[
            "--host",
            "127.0.0.1",
            "--port",
            "{port}",
            "--server",
            "stream",
            "--upstreamProtocol",
            "auto",
            "--",
            "{server}",
        ],
        path: "/mcp",
    },
    Row {
        name: "supergateway",
        source: Source::Npm {
            package: "supergateway",
            version: "4.0.0",
            program: "dist/index.js",
        },
        behind: "stdio",
        words: &[
            "--stdio",
            "{server line}",
            "--outputTransport",
            "streamableHttp",
            "--stateful",
            "--logLevel",
            "none",
            "--port",
            "{port}",
        ],
        path: "/mcp",
    },
    Row {
        name: "PyPI mcp-proxy",
        source: Source::Program {
            pin: "mcp-proxy==0.13.0",
            name: "mcp-proxy",
        },
        behind: "stdio",
        words: &[
            "--log-level",
            "CRITICAL",
            "--port",
            "{port}",
            "--",
            "{server}",
        ],
        path: "/mcp",
    },
    Row {
        name: "fastmcp",
        source: FASTMCP,
        behind: "stdio",
        words: &["{port}", "{server}"],
        path: "/mcp",
    },
    Row {
        name: "fastmcp",
        source: FASTMCP,
        behind: "http",
        words: &["{port}", "{url}"],
        path: "/mcp",
    },
    Row {
        name: "fastmcp",
        source: FASTMCP,
        behind: "many",
        words: &["{port}", "{config}"],
        path: "/mcp",
    },
    // It serves each server under a path of its own, so that it has no list of all.
    Row {
        name: "PyPI mcp-proxy",
        source: Source::Program {
            pin: "mcp-proxy==0.13.0",
            name: "mcp-proxy",
        },
        behind: "many",
        words: &[
            "--log-level",
            "CRITICAL",
            "--port",
            "{port}",
            "--named-server-config",
            "{config}",
        ],
        path: "/servers/s00/mcp",
    },
];

/// As `mcpact-load` reads it.
#[derive(Serialize)]
struct Recipe {
    name: &'static str,
    behind: &'static str,
    words: Vec<String>,
    path: &'static str,
}

/// Installs what is missing, and gives the file that names everything.
pub(super) fn install(checkout: &Checkout) -> Result<PathBuf, Failure> {
    let folder = checkout.path(FOLDER);
    let pins: Vec<Pin> = ROWS.iter().filter_map(|row| row.source.pin()).collect();
    node::install(checkout, &folder.join("npm"), &pins)?;
    let recipes: Result<Vec<Recipe>, Failure> = ROWS
        .iter()
        .map(|row| row.recipe(checkout, &folder))
        .collect();
    let file = folder.join("relays.json");
    let text = serde_json::to_string_pretty(&recipes?).map_err(|source| Failure::Json {
        path: file.clone(),
        source,
    })?;
    fs::write(&file, text).map_err(Failure::file(&file))?;
    Ok(file)
}

impl Source {
    fn pin(&self) -> Option<Pin> {
        match self {
            Self::Npm {
                package, version, ..
            } => Some(Pin::new(package, version)),
            Self::Program { .. } | Self::Script { .. } => None,
        }
    }

    /// Command line of the relay.
    fn program(&self, checkout: &Checkout, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let environment = |pin: &str| {
            let home = checkout.path(python::RELAYS);
            python::environment(checkout, &home, &[pin.to_owned()])
        };
        match self {
            Self::Npm {
                package, program, ..
            } => {
                let package = folder.join("npm/node_modules").join(package);
                Ok(vec![node::program(checkout)?, package.join(program)])
            }
            Self::Program { pin, name } => Ok(vec![environment(pin)?.with_file_name(name)]),
            Self::Script { pin, name } => {
                let script = checkout.path(SCRIPTS).join(name);
                // Without `-B` it would leave compiled files in the checkout.
                Ok(vec![environment(pin)?, PathBuf::from("-B"), script])
            }
        }
    }
}

impl Row {
    fn recipe(&self, checkout: &Checkout, folder: &Path) -> Result<Recipe, Failure> {
        let program = self.source.program(checkout, folder)?;
        let program = program.iter().map(|word| word.display().to_string());
        let words = self.words.iter().map(|word| (*word).to_owned());
        Ok(Recipe {
            name: self.name,
            behind: self.behind,
            words: program.chain(words).collect(),
            path: self.path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relay_gets_its_listen_address_and_its_target() {
        for row in ROWS {
            let has = |word: &str| row.words.iter().any(|one| one.contains(word));
            assert!(has("{port}"), "{}", row.name);
            let behind = match row.behind {
                "http" => "{url}",
                "many" => "{config}",
                _ => "{server",
            };
            assert!(has(behind), "{}", row.name);
        }
    }
}
