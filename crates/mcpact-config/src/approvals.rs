//! What a person has agreed to: commands that are started, addresses that values of this machine go to, and keys that let
//! more callers in.
//!
//! An approval is for one exact command: the program with what is in its file, the arguments, the names of
//! the variables, the values of those that decide which code runs, the folder, and the variables and files whose
//! values it is told; or for one address, and the variables and files whose values are sent there; or for what a key of one config says. A config that says something
//! else needs another approval, whatever it calls the server.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::{
    CommandLaunch, GatewayConfig, Launch, Opening, Problem, Sent, SentIn, Severity, Source,
    UrlLaunch, is_writable_by_all, loads_code,
};

/// No list of approvals is longer.
const MOST_BYTES: u64 = 4 << 20;

/// What a deed does that nobody does unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeedKind {
    /// Starts a program.
    Start,
    /// Sends values of this machine to an address.
    Send,
    /// Lets more callers in than the gateway does by default.
    Open,
}

impl DeedKind {
    /// Text of the refusal when the approval is missing.
    #[must_use]
    pub const fn refused(self) -> &'static str {
        match self {
            Self::Start => {
                "the command is not approved, or it has changed since it was; nothing was started"
            }
            Self::Send => {
                "values of this machine would go to the address, which is not approved, or what goes where has \
                 changed since it was; nothing was sent"
            }
            Self::Open => {
                "more callers would be let in, which is not approved, or has changed since it was; nothing is served"
            }
        }
    }
}

/// What a server does, exactly, as a person has to see it before agreeing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// What it does.
    pub kind: DeedKind,
    /// Everything about it, each with a word for what it is.
    pub lines: Vec<(&'static str, String)>,
    /// What stands for all of this, the contents of a program included.
    pub mark: String,
}

impl Deed {
    /// What starting or reaching this means, as of now; `None` if nobody has to agree to it.
    ///
    /// # Errors
    /// The program cannot be read.
    pub fn of(launch: &Launch) -> io::Result<Option<Self>> {
        match launch {
            Launch::Command(command) => Self::of_command(command).map(Some),
            Launch::Url(url) if !url.sent.is_empty() => Ok(Some(Self::of_url(url))),
            Launch::Url(_) | Launch::Builtin(_) => Ok(None),
        }
    }

    fn of_command(launch: &CommandLaunch) -> io::Result<Self> {
        let launch = launch.found();
        let program = launch.program.value();
        let folder = launch.cwd.as_ref().map(|cwd| cwd.value().to_owned());
        let mut seal = Seal::default();
        seal.add(&contents(Path::new(program))?);
        seal.add(program.as_bytes());
        seal.add(folder.as_deref().unwrap_or_default().as_bytes());
        seal.add(launch.env.len().to_string().as_bytes());
        for (name, value) in &launch.env {
            seal.add(name.as_bytes());
            // Other values may be secrets, and change.
            if loads_code(name) {
                seal.add(value.reveal_raw().as_encoded_bytes());
            }
        }
        let args = launch.args.iter();
        args.for_each(|arg| seal.add(arg.value().as_bytes()));
        let mut mark = seal.mark();
        if !launch.sent.is_empty() {
            // What is told is sealed apart, so that no argument can be taken for it.
            let mut seal = Seal::default();
            seal.add(b"told");
            seal.add(mark.as_bytes());
            seal.add_sent(&launch.sent);
            mark = seal.mark();
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
        lines.extend(shown(&launch.sent));
        Ok(Self {
            kind: DeedKind::Start,
            lines,
            mark,
        })
    }

    /// The values themselves do not count: who gets them does, and where they come from.
    fn of_url(launch: &UrlLaunch) -> Self {
        let mut seal = Seal::default();
        let mut lines = vec![("address", launch.url.written().to_owned())];
        seal.add(b"url");
        seal.add(launch.url.written().as_bytes());
        seal.add_sent(&launch.sent);
        lines.extend(shown(&launch.sent));
        Self {
            kind: DeedKind::Send,
            lines,
            mark: seal.mark(),
        }
    }

    /// What it means to serve a key that lets more callers in. The yes is for this file alone: what stands behind the
    /// gateway is not the same elsewhere.
    #[must_use]
    pub fn of_opening(opening: &Opening, gateway: &GatewayConfig, file: &Path) -> Self {
        let file = file.display().to_string();
        // Whoever wrote the config knows a token that stands in it.
        let token = gateway.token.as_ref().map(|_| {
            let written = gateway.token_written.as_deref();
            written.unwrap_or("as written in the config").to_owned()
        });
        let mut seal = Seal::default();
        seal.add(b"open");
        seal.add(file.as_bytes());
        seal.add(opening.key.as_bytes());
        seal.add(token.as_deref().unwrap_or_default().as_bytes());
        let values = opening.values.iter();
        values.for_each(|value| seal.add(value.value().as_bytes()));
        let mut lines = vec![("config", file)];
        let values = opening.values.iter();
        lines.extend(values.map(|value| ("value", value.written().to_owned())));
        lines.push(("means", opening.lets_in.to_owned()));
        lines.push(("token", token.unwrap_or_else(|| String::from("none"))));
        Self {
            kind: DeedKind::Open,
            lines,
            mark: seal.mark(),
        }
    }
}

impl Opening {
    /// How it is told, with its place and the remedy, that nobody has agreed to it.
    #[must_use]
    pub fn refused(&self, source: &Source) -> Problem {
        let Self { key, lets_in, .. } = self;
        Problem {
            severity: Severity::Error,
            span: self.span,
            message: format!("`{key}`: {} ({lets_in})", DeedKind::Open.refused()),
            remedy: Some(format!(
                "`mcpact approve --config {}` shows it and asks; or leave `{key}` out",
                source.name
            )),
        }
    }
}

fn shown(all: &[Sent]) -> impl Iterator<Item = (&'static str, String)> {
    let places = all.iter().map(|sent| sent.place.shown(&sent.source));
    places.map(|place| ("is sent", place))
}

/// What stands for a list of parts.
#[derive(Default)]
struct Seal(Sha256);

impl Seal {
    fn add(&mut self, part: &[u8]) {
        // The length keeps two parts from becoming one.
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    fn add_sent(&mut self, all: &[Sent]) {
        for Sent { place, source } in all {
            match place {
                SentIn::Header(header) => self.add(header.as_bytes()),
                SentIn::Address => self.add(b""),
                // No header has a space in its name.
                SentIn::Key(key) => self.add(format!("key {key}").as_bytes()),
            }
            self.add(source.as_bytes());
        }
    }

    fn mark(self) -> String {
        let digest = self.0.finalize();
        let mark = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        mark.collect()
    }
}

/// What stands for the contents of a file; one that was not touched since is not read again.
fn contents(path: &Path) -> io::Result<[u8; 32]> {
    /// How many programs are known.
    const PROGRAMS: usize = 256;
    static KNOWN: Mutex<BTreeMap<Touched, [u8; 32]>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut file = File::open(path)?;
    let touched = touched(&file.metadata()?);
    if let Some(digest) = touched.and_then(|touched| known().get(&touched).copied()) {
        return Ok(digest);
    }
    let digest = digest(&mut file)?;
    if let Some(touched) = touched {
        let mut known = known();
        if known.len() >= PROGRAMS {
            known.clear();
        }
        known.insert(touched, digest);
    }
    Ok(digest)
}

/// Which file it is, how long, and when it was last changed in any way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touched {
    device: u64,
    node: u64,
    size: u64,
    when: (i64, i64),
}

/// None where nobody can tell.
#[cfg(unix)]
fn touched(file: &fs::Metadata) -> Option<Touched> {
    use std::os::unix::fs::MetadataExt as _;
    Some(Touched {
        device: file.dev(),
        node: file.ino(),
        size: file.size(),
        when: (file.ctime(), file.ctime_nsec()),
    })
}

#[cfg(not(unix))]
fn touched(_: &fs::Metadata) -> Option<Touched> {
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

/// The approvals that a person has given, in a file that nobody else can write.
#[derive(Clone, Debug)]
pub struct Approvals {
    path: PathBuf,
}

impl Approvals {
    /// Those in a file, which need not be there yet.
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
            let why = format!("everybody may change `{}`", self.path.display());
            return Err(io::Error::other(why));
        }
        let mut text = String::new();
        file.take(MOST_BYTES).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Whether what this mark stands for was approved.
    ///
    /// # Errors
    /// The file cannot be read, or others could have written it.
    pub fn hold(&self, mark: &str) -> io::Result<bool> {
        let text = self.text()?;
        let mut marks = text.lines().filter_map(|line| line.split(' ').next());
        Ok(marks.any(|held| held == mark))
    }

    /// Writes an approval down, with a word about it for people.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, mark: &str, about: &str) -> io::Result<()> {
        if self.hold(mark)? {
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
        // One write: two who approve at once do not tear each other's lines.
        let mut file = options.open(&self.path)?;
        file.write_all(format!("{mark} {about}\n").as_bytes())?;
        file.sync_all()
    }
}

/// What is started or reached only if it was approved.
#[derive(Clone, Debug)]
pub struct Approval {
    /// What is to be started or reached.
    pub launch: Launch,
    /// What was approved.
    pub approvals: Approvals,
}

impl Approval {
    /// The launch as of now if it needs an approval and has none. Reads the program from disk.
    ///
    /// # Errors
    /// The program or the list of approvals cannot be read.
    pub fn missing(&self) -> io::Result<Option<Deed>> {
        let Some(deed) = Deed::of(&self.launch)? else {
            return Ok(None);
        };
        let holds = self.approvals.hold(&deed.mark)?;
        Ok((!holds).then_some(deed))
    }
}

/// A value of which everything is shown but who one is at an address: an index of packages may want a password.
fn without_passwords(value: &str) -> String {
    let mut parts = value.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Where some reader ends the host: behind it nothing is hidden.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mcpact_transport::stdio::child::Confinement;

    use super::*;
    use crate::{Filled, Secret};

    fn launch(program: &Path) -> CommandLaunch {
        let program = program.to_string_lossy().into_owned();
        CommandLaunch {
            program: Filled::new(program.clone(), program),
            args: vec![Filled::new("a b", "a b")],
            env: [(String::from("TOKEN"), Secret::new("hunter2"))].into(),
            cwd: None,
            confinement: Confinement::default(),
            sent: Vec::new(),
        }
    }

    fn told(key: &str, source: &str) -> Sent {
        Sent {
            place: SentIn::Key(key.to_owned()),
            source: source.to_owned(),
        }
    }

    /// Whatever changes in a command changes what stands for it; the value of a variable does only if it decides
    /// which code runs.
    #[test]
    fn an_approval_is_for_one_exact_command() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        fs::write(&program, "one").unwrap();
        let usual = launch(&program);
        let mark = |launch: &CommandLaunch| Deed::of_command(launch).unwrap().mark;
        let first = mark(&usual);
        let mut other_value = usual.clone();
        other_value.env.insert("TOKEN".into(), Secret::new("x"));
        assert_eq!(first, mark(&other_value));
        let mut loading = usual.clone();
        loading
            .env
            .insert("NODE_OPTIONS".into(), Secret::new("--require=/a.js"));
        let mut loading_other = loading.clone();
        loading_other
            .env
            .insert("NODE_OPTIONS".into(), Secret::new("--require=/b.js"));
        assert_ne!(
            mark(&loading),
            mark(&loading_other),
            "other code is another deed"
        );
        let shown = Deed::of_command(&loading).unwrap().lines;
        let variable = ("variable", String::from("NODE_OPTIONS=--require=/a.js"));
        assert!(shown.contains(&variable), "{shown:?}");
        let indexed = |addresses: &str| {
            let mut launch = usual.clone();
            let addresses = Secret::new(addresses);
            launch.env.insert("UV_EXTRA_INDEX_URL".into(), addresses);
            Deed::of_command(&launch).unwrap()
        };
        let index = indexed("https://a.example/@x https://ada:hunter3@b.example/simple");
        let variable = "UV_EXTRA_INDEX_URL=https://a.example/@x https://…@b.example/simple";
        let shown = &index.lines;
        assert!(
            shown.contains(&("variable", variable.to_owned())),
            "{shown:?}"
        );
        assert_ne!(index.mark, indexed("https://evil.example/simple").mark);
        let mut others = vec![usual.clone(); 6];
        others[0].args = vec![Filled::new("a", "a"), Filled::new("b", "b")];
        others[1].env.insert("MORE".into(), Secret::new("x"));
        others[2].cwd = Some(Filled::new("/", "/"));
        others[3].args.clear();
        others[4].sent = vec![told("answers.sampling", "${TOKEN}")];
        others[5].sent = vec![told("answers.sampling", "${OTHER}")];
        let marks: BTreeSet<String> = others.iter().chain([&usual]).map(mark).collect();
        assert_eq!(marks.len(), 7, "{marks:?}");
        fs::write(&program, "two").unwrap();
        assert_ne!(first, mark(&usual), "another program at the same place");
    }

    /// What is sent where is approved with the address, the headers and the places of the values, whatever the
    /// values are.
    #[test]
    fn an_approval_is_for_one_address_and_what_goes_there() {
        let header = |name: &str| SentIn::Header(name.to_owned());
        let sent = |url: &str, place: SentIn, source: &str| {
            Launch::Url(UrlLaunch {
                url: Filled::from(url),
                headers: [(String::from("X"), Secret::new("hunter2"))].into(),
                sent: vec![Sent {
                    place,
                    source: source.to_owned(),
                }],
            })
        };
        let url = "https://a.example/";
        let deed = Deed::of(&sent(url, header("X"), "${TOKEN}"))
            .unwrap()
            .unwrap();
        assert_eq!(deed.kind, DeedKind::Send);
        assert!(!format!("{deed:?}").contains("hunter2"), "{deed:?}");
        assert_eq!(
            deed.lines,
            [
                ("address", String::from(url)),
                ("is sent", String::from("${TOKEN} as `X`")),
            ]
        );
        for other in [
            sent("https://b.example/", header("X"), "${TOKEN}"),
            sent(url, header("Y"), "${TOKEN}"),
            sent(url, SentIn::Address, "${TOKEN}"),
            sent(url, SentIn::Key(String::from("X")), "${TOKEN}"),
            sent(url, header("X"), "${OTHER}"),
        ] {
            let other = Deed::of(&other).unwrap().unwrap();
            assert_ne!(deed.mark, other.mark, "{other:?}");
        }
        let plain = UrlLaunch {
            url: Filled::from(url),
            headers: BTreeMap::new(),
            sent: Vec::new(),
        };
        assert_eq!(Deed::of(&Launch::Url(plain)).unwrap(), None);
    }

    /// Approvals are kept for their owner alone, and not believed if others could have given them.
    #[cfg(unix)]
    #[test]
    fn approvals_are_kept() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/approvals");
        let approvals = Approvals::in_file(path.clone());
        assert!(!approvals.hold("a").unwrap());
        approvals.add("a", "server\nb x").unwrap();
        approvals.add("a", "again").unwrap();
        assert!(approvals.hold("a").unwrap());
        assert!(!approvals.hold("b").unwrap(), "nothing is smuggled in");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(approvals.hold("a").is_err());
    }
}
