//! Everything that must be there before pairs can run: packages, environments, built programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::manifest::{Kind, Peer, Transport};
use super::pair::{End, Pair, Role};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::node::{self, Pin};
use crate::process::{build, remove};
use crate::python;

/// Packages, logs and working directories.
pub(super) const FOLDER: &str = "target/interop";
pub(super) const SERVERS: &str = "interop/servers";
pub(super) const CLIENTS: &str = "interop/clients";
pub(super) const OUR_PROGRAM: &[&str] = &["-p", "mcpact-cli", "--bin", "mcpact"];
const OUR_CLIENT: &[&str] = &["-p", "mcpact", "--example", "interop_client"];
/// Makes a packaged server print its URL.
pub(super) const SAY_ORIGIN: &str = "say_origin.mjs";
/// File in the working directory of a pair.
const GREETING: (&str, &str) = ("greeting.txt", "Good morning\n");

/// Programs and directories of a run.
pub(super) struct Setup {
    folder: PathBuf,
    scripts: [PathBuf; 2],
    node: PathBuf,
    pythons: BTreeMap<Vec<String>, PathBuf>,
    built: BTreeMap<String, PathBuf>,
    pub(super) our_program: PathBuf,
    pub(super) our_client: PathBuf,
}

impl Setup {
    /// Installs and builds what these pairs need.
    pub(super) fn prepare(checkout: &Checkout, pairs: &[Pair<'_>]) -> Result<Self, Failure> {
        let folder = checkout.path(FOLDER);
        let npm = folder.join("npm");
        let mut peers: Vec<&Peer> = Vec::new();
        for (_, end) in pairs.iter().flat_map(Pair::ends) {
            if !peers.iter().any(|peer| std::ptr::eq(*peer, end.peer)) {
                peers.push(end.peer);
            }
        }
        node::install(checkout, &npm, &pins(&peers)?)?;
        for scripts in [SERVERS, CLIENTS] {
            copy_modules(&checkout.path(scripts), &npm.join(scripts))?;
        }
        let mut pythons = BTreeMap::new();
        let mut built = BTreeMap::new();
        for peer in peers {
            match peer.kind {
                Kind::Node => {}
                Kind::Python => {
                    let home = folder.join("python");
                    let python = python::environment(checkout, &home, &peer.packages)?;
                    pythons.insert(peer.packages.clone(), python);
                }
                Kind::Cargo => {
                    let name = peer.file.clone().unwrap_or_default();
                    let binary = build(checkout, &["-p", &name, "--bin", &name])?;
                    built.insert(name, binary);
                }
            }
        }
        for part in ["logs", "work"] {
            remove(&folder.join(part))?;
        }
        let logs = folder.join("logs");
        fs::create_dir_all(&logs).map_err(Failure::file(&logs))?;
        Ok(Self {
            scripts: [checkout.path(SERVERS), checkout.path(CLIENTS)],
            node: node::program(checkout)?,
            our_program: build(checkout, OUR_PROGRAM)?,
            our_client: build(checkout, OUR_CLIENT)?,
            folder,
            pythons,
            built,
        })
    }

    /// Log file of a program of a pair.
    pub(super) fn log(&self, pair: &Pair<'_>, what: &str) -> PathBuf {
        let name = pair.name().replace(' ', "_");
        self.folder.join("logs").join(format!("{name}.{what}"))
    }

    /// Creates the working directory of a pair.
    pub(super) fn work(&self, pair: &Pair<'_>) -> Result<PathBuf, Failure> {
        let folder = self.folder.join("work").join(pair.name().replace(' ', "_"));
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        write_greeting(&folder)?;
        Ok(folder)
    }

    /// Command line of a peer.
    pub(super) fn start(&self, role: Role, end: &End<'_>) -> Vec<String> {
        let peer = end.peer;
        let mut words = Vec::new();
        if !peer.environment.is_empty() {
            words.push("env".to_owned());
            let variables = peer.environment.iter();
            words.extend(variables.map(|(name, value)| format!("{name}={value}")));
        }
        let file = peer.file.as_deref().unwrap_or_default();
        match peer.kind {
            Kind::Node => words.extend(self.node_words(role, end, file)),
            Kind::Python => {
                let python = self.pythons.get(&peer.packages);
                let [servers, clients] = &self.scripts;
                let scripts = match role {
                    Role::Server => servers,
                    Role::Client => clients,
                };
                // Without `-B` it would leave compiled files in the checkout.
                words.extend([
                    python.map_or_else(String::new, |path| spelled(path)),
                    "-B".to_owned(),
                ]);
                words.push(spelled(&scripts.join(file)));
            }
            Kind::Cargo => words.extend(self.built.get(file).map(|path| spelled(path))),
        }
        words.extend(
            peer.arguments
                .get(&end.transport)
                .into_iter()
                .flatten()
                .cloned(),
        );
        words
    }

    fn node_words(&self, role: Role, end: &End<'_>, file: &str) -> Vec<String> {
        let npm = self.folder.join("npm");
        let servers = npm.join(SERVERS);
        let mut words = vec![spelled(&self.node)];
        match (&end.peer.program, role) {
            (Some(program), _) => {
                if end.transport != Transport::Stdio {
                    words.extend(["--import".to_owned(), spelled(&servers.join(SAY_ORIGIN))]);
                }
                words.push(spelled(&npm.join("node_modules").join(program)));
            }
            (None, Role::Server) => words.push(spelled(&servers.join(file))),
            (None, Role::Client) => words.push(spelled(&npm.join(CLIENTS).join(file))),
        }
        words
    }
}

/// Writes a file for clients to read.
pub(super) fn write_greeting(folder: &Path) -> Result<(), Failure> {
    let (name, text) = GREETING;
    fs::write(folder.join(name), text).map_err(Failure::file(folder))
}

fn spelled(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Packages of all peers on Node. They share one directory, so each package has one version.
fn pins(peers: &[&Peer]) -> Result<Vec<Pin>, Failure> {
    let mut pins = BTreeSet::new();
    let mut findings = Vec::new();
    for peer in peers.iter().filter(|peer| peer.kind == Kind::Node) {
        for text in &peer.packages {
            match Pin::parse(text) {
                Some(pin) => drop(pins.insert(pin)),
                None => findings.push(format!("{}: `{text}` is not an exact version", peer.name)),
            }
        }
    }
    let pins = Vec::from_iter(pins);
    for two in pins.windows(2) {
        if let [one, other] = two
            && one.name() == other.name()
        {
            findings.push(format!("`{}` is wanted in two versions", one.name()));
        }
    }
    Failure::unless_clean("interop", findings, "pin one version of each package")?;
    Ok(pins)
}

/// Node looks for packages beside the program, so the programs are put beside the packages.
pub(super) fn copy_modules(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to).map_err(Failure::file(to))?;
    for entry in fs::read_dir(from).map_err(Failure::file(from))? {
        let path = entry.map_err(Failure::file(from))?.path();
        if let Some(name) = path
            .file_name()
            .filter(|_| path.extension().is_some_and(|e| e == "mjs"))
        {
            fs::copy(&path, to.join(name)).map_err(Failure::file(&path))?;
        }
    }
    Ok(())
}
