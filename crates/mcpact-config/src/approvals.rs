//! Approvals by the user: commands to start, values to send to a URL, and keys that expose the gateway.
//!
//! An approval covers one exact subject. For a command: the program and its script with the contents of their files, the
//! arguments, the variables, the working directory, and the variables and files shared with the server. Values that come
//! from references, inherited variables and files count by name, unless they decide which code runs. For a URL: the URL
//! and the values sent to it. For a key: its values in this config. Any change needs a new approval; the name of the
//! server does not matter.

mod code;
mod file;
mod key;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpact_transport::address::ListenAddress;
use mcpact_transport::private_file;
use mcpact_transport::stdio::child::{Sandbox, SandboxLevel, StartCheck};

use self::code::{Code, MissingCode, Unpinned};
use self::key::DigestKey;
use super::secret::{EnvOrigin, EnvValue, ExpandedText};
use super::source::Span;
use super::tree::{Table, Value};
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
    /// Digest of everything above, including the contents of the program and its script.
    pub digest: String,
    /// Sentences about what the approval does not cover.
    pub notes: Vec<String>,
    /// Package that is started without a version.
    pub unpinned: Option<UnpinnedPackage>,
}

/// A package that a runner starts in its newest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpinnedPackage {
    /// Position of its argument.
    pub position: usize,
    /// Name of the runner, such as `npx`.
    pub runner: String,
    /// Argument as written in the config: the package, which may be joined to an option.
    pub written: String,
    /// Package as written in the config.
    pub package: String,
    /// Place of a version; `None` if no version can follow the package.
    pub pin: Option<PackagePin>,
}

/// Place of a version in the argument that names a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagePin {
    /// Name of the package, without tag and range.
    pub name: String,
    /// Argument up to the version.
    pub before_version: String,
}

impl UnpinnedPackage {
    fn of(found: &Unpinned, arg: &ExpandedText) -> Self {
        let (written, value) = (arg.written(), arg.value());
        // Of an argument with references, only the whole is known.
        let package = written.get(found.option..).filter(|_| written == value);
        let name = package.and_then(|package| package.get(..found.missing.name?));
        let pin = name.map(|name| PackagePin {
            name: name.to_owned(),
            before_version: written[..found.option].to_owned() + name + found.missing.pin.mark(),
        });
        Self {
            position: found.at,
            runner: found.runner.clone(),
            written: written.to_owned(),
            package: package.unwrap_or(written).to_owned(),
            pin,
        }
    }
}

/// What an approval of a command never covers.
const NOT_COVERED: &str = "imported modules and the contents of packages are not covered";

impl ApprovalSubject {
    /// Subject of a launch in its current state; `None` if it needs no approval. Its digest holds for this user.
    ///
    /// # Errors
    /// The program, its script or the key of the user cannot be read.
    pub fn of(launch: &Launch, approvals: &Approvals) -> io::Result<Option<Self>> {
        match launch {
            Launch::Command(command) => {
                let launch = command.found();
                let code = Code::of(&launch)?;
                Self::of_command(&launch, &code, approvals).map(Some)
            }
            Launch::Url(url) if !url.shared_values.is_empty() => Ok(Some(Self::of_url(url))),
            Launch::Url(_) | Launch::Builtin(_) => Ok(None),
        }
    }

    fn of_command(launch: &CommandLaunch, code: &Code, approvals: &Approvals) -> io::Result<Self> {
        let folder = launch.cwd.as_ref().map(|cwd| cwd.value().to_owned());
        let mut hash = PartsDigest::default();
        hash.add(b"command 2");
        hash.add_code(code);
        hash.add(folder.as_deref().unwrap_or_default().as_bytes());
        let mut keyed = KeyedValues::new(approvals);
        hash.add(launch.env.len().to_string().as_bytes());
        for (name, value) in &launch.env {
            hash.add(name.as_bytes());
            keyed.add_variable(&mut hash, name, value)?;
        }
        hash.add(launch.args.len().to_string().as_bytes());
        for (at, arg) in launch.args.iter().enumerate() {
            let is_by_value = at < code.selecting && !is_plain_assignment(arg.value());
            if is_by_value && arg.has_variables() {
                hash.add(b"value");
                keyed.add(&mut hash, arg.value().as_bytes())?;
            } else {
                hash.add(arg.reference().as_bytes());
            }
        }
        let sandbox = &launch.confinement.sandbox;
        for arg in sandbox.args() {
            hash.add(arg.as_encoded_bytes());
        }
        let mut digest = hash.finish();
        if !launch.shared_values.is_empty() {
            // Hashed separately, so that no argument can pass for a shared value.
            let mut hash = PartsDigest::default();
            hash.add(b"told");
            hash.add(digest.as_bytes());
            hash.add_shared(&launch.shared_values);
            digest = hash.finish();
        }
        let files = code.files.iter();
        let files = files.map(|file| (file.role, file.path.display().to_string()));
        let mut lines: Vec<(&'static str, String)> = files.collect();
        let written = |at: usize| launch.args[at].written().to_owned();
        lines.extend((0..launch.args.len()).map(|at| ("argument", written(at))));
        let variables = launch.env.iter().map(|(name, value)| {
            let shown = || format!("{name}={}", without_passwords(value.reveal()));
            let shown = loads_code(name).then(shown);
            shown.unwrap_or_else(|| name.clone())
        });
        lines.extend(variables.map(|variable| ("variable", variable)));
        lines.extend(folder.map(|folder| ("in folder", folder)));
        lines.extend(sandbox_lines(sandbox));
        lines.extend(shown(&launch.shared_values));
        let unpinned = code.unpinned.as_ref();
        let unpinned = unpinned.map(|found| UnpinnedPackage::of(found, &launch.args[found.at]));
        let missing = code.missing.as_ref().map(|missing| match missing {
            MissingCode::Argument(at) => format!("`{}`", written(*at)),
            MissingCode::Program(name) => format!("what `{name}` runs"),
        });
        let missing =
            missing.map(|code| format!("no file found for {code}: its code is not covered"));
        let mut notes: Vec<String> = missing.into_iter().collect();
        notes.push(NOT_COVERED.to_owned());
        Ok(Self {
            kind: ApprovalKind::Start,
            lines,
            digest,
            notes,
            unpinned,
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
            notes: Vec::new(),
            unpinned: None,
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
        let token = tokens_as_written(gateway);
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
            notes: Vec::new(),
            unpinned: None,
        }
    }
}

/// Returns what a sandbox allows; nothing without one.
fn sandbox_lines(sandbox: &Sandbox) -> Vec<(&'static str, String)> {
    if sandbox.level == SandboxLevel::Off {
        return Vec::new();
    }
    let paths = |label, paths: &[PathBuf]| {
        let paths: Vec<_> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        paths.into_iter().map(move |path| (label, path))
    };
    let mut lines = vec![("sandbox", sandbox.level.as_str().to_owned())];
    lines.extend(paths("may read", &sandbox.read));
    lines.extend(paths("may write", &sandbox.write));
    let ports = sandbox.ports.iter();
    lines.extend(ports.map(|port| ("may connect to port", port.to_string())));
    lines
}

/// Returns where the tokens come from. A literal token is known to the author of the config.
fn tokens_as_written(gateway: &GatewayConfig) -> Option<String> {
    let shown = |written: Option<&str>| written.unwrap_or("as written in the config").to_owned();
    let single = gateway.token.as_ref();
    let single = single.map(|_| shown(gateway.token_written.as_deref()));
    let named = gateway.tokens.iter();
    let named = named.map(|(name, token)| format!("{name}: {}", shown(token.written.as_deref())));
    let all: Vec<String> = single.into_iter().chain(named).collect();
    (!all.is_empty()).then(|| all.join(", "))
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

/// Returns true for `NAME=VALUE`, as `env` takes it, of a variable that selects no code.
fn is_plain_assignment(arg: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = arg.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_part) && !loads_code(name))
}

/// Values that may be secrets, hashed with the key of the user. The key is created with the first value, so that other
/// digests are the same for every user.
struct KeyedValues<'a> {
    approvals: &'a Approvals,
    key: Option<DigestKey>,
}

impl<'a> KeyedValues<'a> {
    const fn new(approvals: &'a Approvals) -> Self {
        Self {
            approvals,
            key: None,
        }
    }

    fn add(&mut self, hash: &mut PartsDigest, value: &[u8]) -> io::Result<()> {
        let key = match &self.key {
            Some(key) => key,
            None => self.key.insert(self.approvals.key()?),
        };
        hash.add(&key.digest(value));
        Ok(())
    }

    fn add_variable(
        &mut self,
        hash: &mut PartsDigest,
        name: &str,
        value: &EnvValue,
    ) -> io::Result<()> {
        let is_by_value = loads_code(name);
        match &value.origin {
            EnvOrigin::Named(origin) if !is_by_value => {
                hash.add(b"origin");
                hash.add(origin.as_bytes());
                Ok(())
            }
            EnvOrigin::Mixed(text) if !is_by_value => {
                hash.add(b"mixed");
                self.add(hash, text.reveal().as_bytes())
            }
            _ => {
                hash.add(b"value");
                self.add(hash, value.reveal_raw().as_encoded_bytes())
            }
        }
    }
}

impl PartsDigest {
    fn add_code(&mut self, code: &Code) {
        self.add(code.files.len().to_string().as_bytes());
        for file in &code.files {
            self.add(file.role.as_bytes());
            self.add(file.path.as_os_str().as_encoded_bytes());
            if let Some(contents) = &file.contents {
                self.add(contents);
                self.add(file.state.real.as_os_str().as_encoded_bytes());
            } else {
                self.add(b"by path");
            }
        }
    }

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

    /// Key of the user, in a file beside the approvals.
    fn key(&self) -> io::Result<DigestKey> {
        DigestKey::in_file(&self.path.with_extension("key"))
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
            private_file::create_folder(folder)?;
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
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
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

/// Result of checking an approval.
#[derive(Clone, Debug)]
pub enum ApprovalState {
    /// The launch is approved, or needs no approval. The check finds files of a command that were exchanged since then.
    Approved(Option<StartCheck>),
    /// The subject is not approved.
    Missing(Box<ApprovalSubject>),
}

impl Approval {
    /// Checks the launch in its current state. Reads the program and its script from disk.
    ///
    /// # Errors
    /// The program, its script or the approvals cannot be read.
    pub fn check(&self) -> io::Result<ApprovalState> {
        let Launch::Command(command) = &self.launch else {
            return match ApprovalSubject::of(&self.launch, &self.approvals)? {
                Some(subject) => self.state(subject, None),
                None => Ok(ApprovalState::Approved(None)),
            };
        };
        let launch = command.found();
        let code = Code::of(&launch)?;
        let subject = ApprovalSubject::of_command(&launch, &code, &self.approvals)?;
        let check = StartCheck(Arc::new(move || code.verify(&launch)));
        self.state(subject, Some(check))
    }

    fn state(
        &self,
        subject: ApprovalSubject,
        check: Option<StartCheck>,
    ) -> io::Result<ApprovalState> {
        Ok(match self.approvals.contains(&subject.digest)? {
            true => ApprovalState::Approved(check),
            false => ApprovalState::Missing(Box::new(subject)),
        })
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
const ROWS: [(&str, &str); 5] = [
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
    (
        "allow_users",
        "lets other users of this machine call the gateway without a token",
    ),
];

/// Values that expose the gateway: an address beyond loopback, `true`, or every item of a list.
fn exposing_values(value: &Value) -> Vec<ExpandedText> {
    match value {
        Value::Text(text) => {
            // Invalid addresses are reported elsewhere.
            let address = text.value().parse::<ListenAddress>();
            let is_open = address.is_ok_and(|address| !address.is_local());
            is_open.then(|| text.clone()).into_iter().collect()
        }
        Value::Flag(true) => vec![ExpandedText::from("true")],
        Value::List(items) => {
            let values = items.iter().filter_map(|item| match &item.value {
                Value::Text(text) => Some(text.clone()),
                // A user id.
                Value::Whole(id) => Some(ExpandedText::from(id.to_string().as_str())),
                Value::Fraction(id) => Some(ExpandedText::from(id.to_string().as_str())),
                _ => None,
            });
            values.collect()
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

#[cfg(unix)]
#[cfg(test)]
mod command_tests;
#[cfg(unix)]
#[cfg(test)]
mod coverage_tests;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{ExpandedText, Secret};

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
        let of = |launch: &Launch| {
            let approvals = Approvals::in_file("unused".into());
            ApprovalSubject::of(launch, &approvals).unwrap()
        };
        let subject = of(&shared_values(url, header("X"), "${TOKEN}")).unwrap();
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
            let other = of(&other).unwrap();
            assert_ne!(subject.digest, other.digest, "{other:?}");
        }
        let plain = UrlLaunch {
            url: ExpandedText::from(url),
            headers: BTreeMap::new(),
            proxy: ProxyConfig::System,
            shared_values: Vec::new(),
        };
        assert_eq!(of(&Launch::Url(plain)), None);
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
    const NOT_EXPOSING: [&str; 32] = [
        "token",
        "tokens",
        "tls_cert",
        "tls_key",
        "sse",
        "websocket",
        "control",
        "names",
        "separator",
        "sandbox",
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
        "limits",
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
            ("allow_users = []", &[]),
            ("allow_users = [1001]", &["allow_users"]),
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
