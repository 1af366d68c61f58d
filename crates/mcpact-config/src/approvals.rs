//! Approvals by the user: commands to start, values to send to a URL, and keys that expose the gateway.
//!
//! An approval covers one exact subject. For a command: the program and the contents of its file, the arguments, the
//! names of the variables, the values of variables that decide which code runs, the working directory, and the
//! variables and files shared with the server. For a URL: the URL and the values sent to it. For a key: its values in
//! this config. Any change needs a new approval; the name of the server does not matter.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mcpact_transport::stdio::child::LaunchProblem;
use sha2::{Digest as _, Sha256};

use super::secret::ExpandedText;
use super::source::Span;
use super::tree::{Node, Table, Value};
use crate::source::PartsDigest;
use crate::{
    CommandLaunch, GatewayConfig, Launch, Problem, ProxyConfig, Severity, SharedIn, SharedValue,
    Source, UrlLaunch, is_writable_by_all, loads_code,
};

/// Maximum size of the approvals file.
const MAX_BYTES: u64 = 4 << 20;

/// Kind of action that needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalKind {
    /// Starts a program.
    Start,
    /// Sends variables or files to a URL.
    Send,
    /// Exposes the gateway to more callers than the default.
    Open,
}

impl ApprovalKind {
    /// Error text when the approval is missing.
    #[must_use]
    pub const fn refused(self) -> &'static str {
        match self {
            Self::Start => {
                "the command is not approved, or it has changed since it was approved; it was not started"
            }
            Self::Send => {
                "sending variables or files to this URL is not approved, or it has changed since it was approved; nothing was sent"
            }
            Self::Open => {
                "is not approved, or has changed since it was approved; the gateway did not start"
            }
        }
    }
}

/// An action that needs approval, as shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalSubject {
    /// Kind of the action.
    pub kind: ApprovalKind,
    /// Details, each with a label.
    pub lines: Vec<(&'static str, String)>,
    /// Digest of everything above, including the contents of the program.
    pub digest: String,
}

impl ApprovalSubject {
    /// Subject of a launch in its current state; `None` if it needs no approval.
    ///
    /// # Errors
    /// The program cannot be read.
    pub fn of(launch: &Launch) -> io::Result<Option<Self>> {
        match launch {
            Launch::Command(command) => Self::of_command(command).map(Some),
            Launch::Url(url) if !url.shared_values.is_empty() => Ok(Some(Self::of_url(url))),
            Launch::Url(_) | Launch::Builtin(_) => Ok(None),
        }
    }

    fn of_command(launch: &CommandLaunch) -> io::Result<Self> {
        let launch = launch.found();
        let program = launch.program.value();
        let folder = launch.cwd.as_ref().map(|cwd| cwd.value().to_owned());
        let mut hash = PartsDigest::default();
        hash.add(&program_contents(Path::new(program))?);
        hash.add(program.as_bytes());
        hash.add(folder.as_deref().unwrap_or_default().as_bytes());
        hash.add(launch.env.len().to_string().as_bytes());
        for (name, value) in &launch.env {
            hash.add(name.as_bytes());
            // Other values may be secrets, and may change.
            if loads_code(name) {
                hash.add(value.reveal_raw().as_encoded_bytes());
            }
        }
        let args = launch.args.iter();
        args.for_each(|arg| hash.add(arg.value().as_bytes()));
        let mut digest = hash.finish();
        if !launch.shared_values.is_empty() {
            // Hashed separately, so that no argument can pass for a shared value.
            let mut hash = PartsDigest::default();
            hash.add(b"told");
            hash.add(digest.as_bytes());
            hash.add_shared(&launch.shared_values);
            digest = hash.finish();
        }
        let mut lines = vec![("program", program.to_owned())];
        let written = launch.args.iter().map(|arg| arg.written().to_owned());
        lines.extend(written.map(|arg| ("argument", arg)));
        let variables = launch.env.iter().map(|(name, value)| {
            let shown = || format!("{name}={}", without_passwords(value.reveal()));
            let shown = loads_code(name).then(shown);
            shown.unwrap_or_else(|| name.clone())
        });
        lines.extend(variables.map(|variable| ("variable", variable)));
        lines.extend(folder.map(|folder| ("in folder", folder)));
        lines.extend(shown(&launch.shared_values));
        Ok(Self {
            kind: ApprovalKind::Start,
            lines,
            digest,
        })
    }

    /// Covers the destination and the sources of the values, not the values.
    fn of_url(launch: &UrlLaunch) -> Self {
        let mut hash = PartsDigest::default();
        let mut lines = vec![("address", launch.url.written().to_owned())];
        hash.add(b"url");
        hash.add(launch.url.written().as_bytes());
        if let ProxyConfig::Custom { url, .. } = &launch.proxy {
            // The proxy sees what is sent to an `http` URL.
            hash.add(b"proxy");
            hash.add(url.reveal().as_bytes());
            lines.push(("through", without_passwords(url.reveal())));
        }
        hash.add_shared(&launch.shared_values);
        lines.extend(shown(&launch.shared_values));
        Self {
            kind: ApprovalKind::Send,
            lines,
            digest: hash.finish(),
        }
    }

    /// Subject of an exposing key. The approval holds for this config file only, because other files serve other
    /// servers.
    #[must_use]
    pub fn of_exposing_key(
        exposing_key: &ExposingKey,
        gateway: &GatewayConfig,
        file: &Path,
    ) -> Self {
        let file = file.display().to_string();
        // A literal token is known to the author of the config.
        let token = gateway.token.as_ref().map(|_| {
            let written = gateway.token_written.as_deref();
            written.unwrap_or("as written in the config").to_owned()
        });
        let mut hash = PartsDigest::default();
        hash.add(b"open");
        hash.add(file.as_bytes());
        hash.add(exposing_key.key.as_bytes());
        hash.add(token.as_deref().unwrap_or_default().as_bytes());
        let values = exposing_key.values.iter();
        values.for_each(|value| hash.add(value.value().as_bytes()));
        let mut lines = vec![("config", file)];
        let values = exposing_key.values.iter();
        lines.extend(values.map(|value| ("value", value.written().to_owned())));
        lines.push(("means", exposing_key.effect.to_owned()));
        lines.push(("token", token.unwrap_or_else(|| String::from("none"))));
        Self {
            kind: ApprovalKind::Open,
            lines,
            digest: hash.finish(),
        }
    }
}

impl ExposingKey {
    /// Error for a key that is not approved.
    #[must_use]
    pub fn refused(&self, source: &Source) -> Problem {
        let Self { key, effect, .. } = self;
        let message = format!("`{key}` {effect} and {}", ApprovalKind::Open.refused());
        let remedy = format!(
            "run `mcpact approve --config {}` to review it, or remove `{key}`",
            source.name
        );
        Problem::new(Severity::Error, self.span, message, Some(remedy))
    }
}

fn shown(all: &[SharedValue]) -> impl Iterator<Item = (&'static str, String)> {
    let locations = all
        .iter()
        .map(|shared_values| shared_values.location.shown(&shared_values.source));
    locations.map(|location| ("is sent", location))
}

impl PartsDigest {
    fn add_shared(&mut self, all: &[SharedValue]) {
        for SharedValue { location, source } in all {
            match location {
                SharedIn::Header(header) => self.add(header.as_bytes()),
                SharedIn::Url => self.add(b""),
                // Header names contain no spaces.
                SharedIn::Key(key) => self.add(format!("key {key}").as_bytes()),
            }
            self.add(source.as_bytes());
        }
    }
}

/// Digest of a program; the error is a [`LaunchProblem`] if it cannot be started either.
fn program_contents(path: &Path) -> io::Result<[u8; 32]> {
    contents(path).map_err(|error| {
        let launch_problem = LaunchProblem::at(&[path.to_owned()]);
        launch_problem.map_or(error, io::Error::other)
    })
}

/// Digest of a file; cached until the file changes.
fn contents(path: &Path) -> io::Result<[u8; 32]> {
    /// Maximum number of cached digests.
    const PROGRAMS: usize = 256;
    static KNOWN: Mutex<BTreeMap<FileStamp, [u8; 32]>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut file = File::open(path)?;
    let file_stamp = file_stamp(&file.metadata()?);
    if let Some(digest) = file_stamp.and_then(|file_stamp| known().get(&file_stamp).copied()) {
        return Ok(digest);
    }
    let digest = digest(&mut file)?;
    if let Some(file_stamp) = file_stamp {
        let mut known = known();
        if known.len() >= PROGRAMS {
            known.clear();
        }
        known.insert(file_stamp, digest);
    }
    Ok(digest)
}

/// Identity, size and change time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileStamp {
    device: u64,
    node: u64,
    size: u64,
    when: (i64, i64),
}

/// `None` where the system does not provide it.
#[cfg(unix)]
fn file_stamp(file: &fs::Metadata) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt as _;
    Some(FileStamp {
        device: file.dev(),
        node: file.ino(),
        size: file.size(),
        when: (file.ctime(), file.ctime_nsec()),
    })
}

#[cfg(not(unix))]
fn file_stamp(_: &fs::Metadata) -> Option<FileStamp> {
    None
}

fn digest(file: &mut File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(&chunk[..read]),
        }
    }
}

/// Approvals of the user, in a file that others cannot write.
#[derive(Clone, Debug)]
pub struct Approvals {
    path: PathBuf,
}

impl Approvals {
    /// Approvals in a file, which may not exist yet.
    #[must_use]
    pub const fn in_file(path: PathBuf) -> Self {
        Self { path }
    }

    fn text(&self) -> io::Result<String> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        if is_writable_by_all(&self.path) {
            let why = format!("`{}` is world-writable", self.path.display());
            return Err(io::Error::other(why));
        }
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns whether this digest is approved.
    ///
    /// # Errors
    /// The file cannot be read or is world-writable.
    pub fn contains(&self, digest: &str) -> io::Result<bool> {
        let text = self.text()?;
        let mut digests = text.lines().filter_map(|line| line.split(' ').next());
        Ok(digests.any(|line| line == digest))
    }

    /// Records an approval, with a description for the user.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, digest: &str, about: &str) -> io::Result<()> {
        if self.contains(digest)? {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let about: String = about.chars().filter(|c| !c.is_control()).collect();
        // A single write keeps lines of concurrent approvals intact.
        let mut file = options.open(&self.path)?;
        file.write_all(format!("{digest} {about}\n").as_bytes())?;
        file.sync_all()
    }
}

/// A launch that needs approval, with the approvals to check.
#[derive(Clone, Debug)]
pub struct Approval {
    /// The launch.
    pub launch: Launch,
    /// Approvals of the user.
    pub approvals: Approvals,
}

impl Approval {
    /// Subject of the launch if it is not approved. Reads the program from disk.
    ///
    /// # Errors
    /// The program or the approvals cannot be read.
    pub fn missing(&self) -> io::Result<Option<ApprovalSubject>> {
        let Some(subject) = ApprovalSubject::of(&self.launch)? else {
            return Ok(None);
        };
        let is_approved = self.approvals.contains(&subject.digest)?;
        Ok((!is_approved).then_some(subject))
    }
}

/// Hides credentials in URLs, for example of a package index.
fn without_passwords(value: &str) -> String {
    let mut parts = value.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Everything after the host is shown.
        let end = part.find(|c: char| "/\\?#".contains(c) || c.is_whitespace());
        let (host, rest) = part.split_at(end.unwrap_or(part.len()));
        shown.push_str("://");
        match host.rsplit_once('@') {
            Some((_, host)) => shown.extend(["…@", host]),
            None => shown.push_str(host),
        }
        shown.push_str(rest);
    }
    shown
}

/// A key that exposes the gateway to more callers. It needs approval unless the config is named explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposingKey {
    /// Name of the key.
    pub key: &'static str,
    /// Source position.
    pub span: Span,
    /// Its values.
    pub values: Vec<ExpandedText>,
    /// Consequence, for messages.
    pub effect: &'static str,
}

pub(super) const LISTEN: &str = "listen";

/// Keys that can expose the gateway, and their effect. `token` is not listed: any token reduces the set of callers.
const ROWS: [(&str, &str); 4] = [
    (LISTEN, "lets other machines connect"),
    (
        "allow_remote",
        "lets other machines connect without a token",
    ),
    (
        "allow_hosts",
        "lets the owner of the name make browsers call the gateway",
    ),
    (
        "allow_origins",
        "lets web pages of this origin call the gateway",
    ),
];

/// Values that expose the gateway: an address beyond loopback, `true`, or every item of a list.
fn exposing_values(value: &Value) -> Vec<ExpandedText> {
    match value {
        Value::Text(text) => {
            // Invalid addresses are reported elsewhere.
            let address = text.value().parse::<SocketAddr>();
            let is_open = address.is_ok_and(|address| !address.ip().is_loopback());
            is_open.then(|| text.clone()).into_iter().collect()
        }
        Value::Flag(true) => vec![ExpandedText::from("true")],
        Value::List(items) => {
            let texts = items.iter().filter_map(Node::text);
            texts.cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Keys of `[gateway]` that expose it to more callers than their defaults.
pub(super) fn exposing_keys(gateway: &Table) -> Vec<ExposingKey> {
    let found = ROWS.into_iter().filter_map(|(key, effect)| {
        let node = &gateway.member(key)?.node;
        let values = exposing_values(&node.value);
        (!values.is_empty()).then_some(ExposingKey {
            key,
            span: node.span,
            values,
            effect,
        })
    });
    found.collect()
}

impl ExposingKey {
    /// Note shown by `mcpact check`.
    pub(super) fn note(&self) -> String {
        format!(
            "`{}` {}; needs `mcpact approve`, unless the config is passed with `--config`",
            self.key, self.effect
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mcpact_transport::stdio::child::Confinement;

    use super::*;
    use crate::{ExpandedText, Secret};

    fn launch(program: &Path) -> CommandLaunch {
        let program = program.to_string_lossy().into_owned();
        CommandLaunch {
            program: ExpandedText::new(program.clone(), program),
            args: vec![ExpandedText::new("a b", "a b")],
            env: [(String::from("TOKEN"), Secret::new("hunter2"))].into(),
            cwd: None,
            confinement: Confinement::default(),
            shared_values: Vec::new(),
        }
    }

    fn told(key: &str, source: &str) -> SharedValue {
        SharedValue {
            location: SharedIn::Key(key.to_owned()),
            source: source.to_owned(),
        }
    }

    /// Any change of the command changes the digest; the value of a variable only if it decides which code runs.
    #[test]
    fn approval_covers_one_exact_command() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        fs::write(&program, "one").unwrap();
        let usual = launch(&program);
        let digest = |launch: &CommandLaunch| ApprovalSubject::of_command(launch).unwrap().digest;
        let first = digest(&usual);
        let mut other_value = usual.clone();
        other_value.env.insert("TOKEN".into(), Secret::new("x"));
        assert_eq!(first, digest(&other_value));
        let mut loading = usual.clone();
        loading
            .env
            .insert("NODE_OPTIONS".into(), Secret::new("--require=/a.js"));
        let mut loading_other = loading.clone();
        loading_other
            .env
            .insert("NODE_OPTIONS".into(), Secret::new("--require=/b.js"));
        assert_ne!(
            digest(&loading),
            digest(&loading_other),
            "changed code needs a new approval"
        );
        let shown = ApprovalSubject::of_command(&loading).unwrap().lines;
        let variable = ("variable", String::from("NODE_OPTIONS=--require=/a.js"));
        assert!(shown.contains(&variable), "{shown:?}");
        let indexed = |addresses: &str| {
            let mut launch = usual.clone();
            let addresses = Secret::new(addresses);
            launch.env.insert("UV_EXTRA_INDEX_URL".into(), addresses);
            ApprovalSubject::of_command(&launch).unwrap()
        };
        let index = indexed("https://a.example/@x https://ada:hunter3@b.example/simple");
        let variable = "UV_EXTRA_INDEX_URL=https://a.example/@x https://…@b.example/simple";
        let shown = &index.lines;
        assert!(
            shown.contains(&("variable", variable.to_owned())),
            "{shown:?}"
        );
        assert_ne!(index.digest, indexed("https://evil.example/simple").digest);
        let mut others = vec![usual.clone(); 6];
        others[0].args = vec![ExpandedText::new("a", "a"), ExpandedText::new("b", "b")];
        others[1].env.insert("MORE".into(), Secret::new("x"));
        others[2].cwd = Some(ExpandedText::new("/", "/"));
        others[3].args.clear();
        others[4].shared_values = vec![told("answers.sampling", "${TOKEN}")];
        others[5].shared_values = vec![told("answers.sampling", "${OTHER}")];
        let digests: BTreeSet<String> = others.iter().chain([&usual]).map(digest).collect();
        assert_eq!(digests.len(), 7, "{digests:?}");
        fs::write(&program, "two").unwrap();
        assert_ne!(first, digest(&usual), "another program at the same path");
    }

    /// The digest covers the URL, the headers and the sources of the values, but not the values.
    #[test]
    fn approval_covers_one_url_and_the_values_sent_to_it() {
        let header = |name: &str| SharedIn::Header(name.to_owned());
        let shared_values = |url: &str, location: SharedIn, source: &str| {
            Launch::Url(UrlLaunch {
                url: ExpandedText::from(url),
                headers: [(String::from("X"), Secret::new("hunter2"))].into(),
                proxy: ProxyConfig::System,
                shared_values: vec![SharedValue {
                    location,
                    source: source.to_owned(),
                }],
            })
        };
        let url = "https://a.example/";
        let subject = ApprovalSubject::of(&shared_values(url, header("X"), "${TOKEN}"))
            .unwrap()
            .unwrap();
        assert_eq!(subject.kind, ApprovalKind::Send);
        assert!(!format!("{subject:?}").contains("hunter2"), "{subject:?}");
        assert_eq!(
            subject.lines,
            [
                ("address", String::from(url)),
                ("is sent", String::from("${TOKEN} as `X`")),
            ]
        );
        for other in [
            shared_values("https://b.example/", header("X"), "${TOKEN}"),
            shared_values(url, header("Y"), "${TOKEN}"),
            shared_values(url, SharedIn::Url, "${TOKEN}"),
            shared_values(url, SharedIn::Key(String::from("X")), "${TOKEN}"),
            shared_values(url, header("X"), "${OTHER}"),
        ] {
            let other = ApprovalSubject::of(&other).unwrap().unwrap();
            assert_ne!(subject.digest, other.digest, "{other:?}");
        }
        let plain = UrlLaunch {
            url: ExpandedText::from(url),
            headers: BTreeMap::new(),
            proxy: ProxyConfig::System,
            shared_values: Vec::new(),
        };
        assert_eq!(ApprovalSubject::of(&Launch::Url(plain)).unwrap(), None);
    }

    /// The file is private, and rejected if it is world-writable.
    #[cfg(unix)]
    #[test]
    fn approvals_are_stored_privately() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/approvals");
        let approvals = Approvals::in_file(path.clone());
        assert!(!approvals.contains("a").unwrap());
        approvals.add("a", "server\nb x").unwrap();
        approvals.add("a", "again").unwrap();
        assert!(approvals.contains("a").unwrap());
        assert!(
            !approvals.contains("b").unwrap(),
            "a newline cannot add an approval"
        );
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(approvals.contains("a").is_err());
    }
}

#[cfg(test)]
mod exposing_keys_tests {
    use super::*;
    use crate::keys::GATEWAY;
    use crate::read::tests::{found_in, taken_from};

    /// Keys that never expose the gateway to more callers.
    const NOT_EXPOSING: [&str; 29] = [
        "token",
        "tls_cert",
        "tls_key",
        "sse",
        "websocket",
        "control",
        "names",
        "separator",
        "watch",
        "drain_seconds",
        "list_seconds",
        "revisions",
        "version_range",
        "unsupported_version",
        "missing_version",
        "early_requests",
        "unknown_methods",
        "require_client_capability",
        "profile",
        "strict",
        "lenient",
        "undeclared",
        "announce_extras",
        "max_batch_size",
        "require",
        "missing_variables",
        "answers",
        "tools",
        "commands",
    ];

    /// Every key of `[gateway]` is classified.
    #[test]
    fn every_key_is_classified() {
        for key in GATEWAY {
            let opens = ROWS.iter().any(|(name, _)| *name == key.name);
            assert_ne!(opens, NOT_EXPOSING.contains(&key.name), "{}", key.name);
        }
        assert_eq!(GATEWAY.len(), ROWS.len() + NOT_EXPOSING.len());
    }

    /// Only values that expose the gateway need approval.
    #[test]
    fn only_exposing_values_need_approval() {
        const TOKEN: &str = "token = \"0123456789abcdef\"\n";
        for (text, expected) in [
            ("", &[][..]),
            ("listen = \"127.0.0.1:1\"", &[]),
            ("listen = \"[::1]:0\"", &[]),
            (
                "allow_remote = false\nallow_hosts = []\nallow_origins = []",
                &[],
            ),
            (TOKEN, &[]),
            ("websocket = true\nsse = true", &[]),
            (&format!("{TOKEN}listen = \"0.0.0.0:1\""), &["listen"]),
            (&format!("{TOKEN}listen = \"[::]:1\""), &["listen"]),
            (
                "listen = \"192.0.2.1:1\"\nallow_remote = true",
                &["listen", "allow_remote"],
            ),
            ("allow_remote = true", &["allow_remote"]),
            ("allow_hosts = [\"a.example\"]", &["allow_hosts"]),
            (
                "allow_origins = [\"https://a.example\"]",
                &["allow_origins"],
            ),
        ] {
            let text = format!("[gateway]\n{text}\n");
            let catalog = taken_from("mcpact.toml", &text);
            let keys: Vec<&str> = catalog
                .gateway
                .exposing_keys
                .iter()
                .map(|o| o.key)
                .collect();
            assert_eq!(keys, expected, "{text}");
            let notes = found_in("mcpact.toml", &text);
            let noted = notes.iter().filter(|note| note.contains("mcpact approve"));
            assert_eq!(noted.count(), expected.len(), "{notes:?}");
        }
    }

    /// An overridden listen address needs no approval.
    #[test]
    fn overridden_listen_address_needs_no_approval() {
        let text = "[gateway]\nlisten = \"0.0.0.0:1\"\nallow_remote = true\n";
        let mut gateway = taken_from("mcpact.toml", text).gateway;
        gateway.override_listen("127.0.0.1:0".parse().unwrap());
        let keys: Vec<&str> = gateway.exposing_keys.iter().map(|o| o.key).collect();
        assert_eq!(keys, ["allow_remote"]);
    }
}
