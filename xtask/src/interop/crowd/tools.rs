//! Programs for servers and clients: packages, environments, our program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, Server};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::interop::manifest::{Kind, Transport};
use crate::interop::setup::{self, CLIENTS, FOLDER, OUR_PROGRAM, SAY_ORIGIN, SERVERS};
use crate::node::{self, Pin};
use crate::process::build;
use crate::python;

pub(super) struct Tools {
    npm: PathBuf,
    scripts: PathBuf,
    pythons: BTreeMap<Vec<String>, PathBuf>,
    pub(super) node: PathBuf,
    pub(super) our_program: PathBuf,
}

impl Tools {
    /// Installs and builds what is missing.
    pub(super) fn prepare(checkout: &Checkout, manifest: &Manifest) -> Result<Self, Failure> {
        let folder = checkout.path(FOLDER);
        let npm = folder.join("npm");
        let servers = manifest.servers();
        let of_node = servers.iter().filter(|server| server.kind == Kind::Node);
        let packages = of_node.flat_map(|server| server.packages.iter().map(String::as_str));
        let packages = packages.chain([manifest.visitor.as_str()]);
        let mut pins: Vec<Pin> = packages.filter_map(Pin::parse).collect();
        pins.sort();
        pins.dedup();
        node::install(checkout, &npm, &pins)?;
        for scripts in [SERVERS, CLIENTS] {
            setup::copy_modules(&checkout.path(scripts), &npm.join(scripts))?;
        }
        let mut pythons = BTreeMap::new();
        for server in servers.iter().filter(|server| server.kind == Kind::Python) {
            let python = python::environment(checkout, &folder.join("python"), &server.packages)?;
            pythons.insert(server.packages.clone(), python);
        }
        Ok(Self {
            npm,
            scripts: checkout.path(SERVERS),
            pythons,
            node: node::program(checkout)?,
            our_program: build(checkout, OUR_PROGRAM)?,
        })
    }

    /// A client program.
    pub(super) fn client(&self, file: &str) -> PathBuf {
        self.npm.join(CLIENTS).join(file)
    }

    /// Command line of a server without its own arguments.
    pub(super) fn start(&self, server: &Server) -> Vec<String> {
        let file = server.file.as_deref().unwrap_or_default();
        let words = match (server.kind, &server.program) {
            (Kind::Node, Some(program)) => {
                let program = self.npm.join("node_modules").join(program);
                let mut words = vec![self.node.clone()];
                if server.reached != Transport::Stdio {
                    words.extend(["--import".into(), self.npm.join(SERVERS).join(SAY_ORIGIN)]);
                }
                words.push(program);
                words
            }
            (Kind::Node, None) => vec![self.node.clone(), self.npm.join(SERVERS).join(file)],
            (Kind::Python, Some(program)) => vec![self.python(server).with_file_name(program)],
            (Kind::Python, None) => {
                // Without `-B` it would leave compiled files in the checkout.
                let script = self.scripts.join(file);
                vec![self.python(server).to_owned(), "-B".into(), script]
            }
            (Kind::Cargo, _) => Vec::new(),
        };
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        words.collect()
    }

    fn python(&self, server: &Server) -> &Path {
        self.pythons
            .get(&server.packages)
            .map_or(Path::new("python3"), PathBuf::as_path)
    }
}
