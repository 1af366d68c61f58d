//! Which commands a person has agreed to start.
//!
//! An approval is for one exact command: the program with what is in its file, the arguments, the names of
//! the variables, and the folder. A config that says something else needs another approval, whatever it
//! calls the server.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::catalog::{CommandLaunch, is_writable_by_all};
use crate::error::Trouble;

/// No list of approvals is longer.
const MOST_BYTES: u64 = 4 << 20;

/// One exact command, as a person has to see it before agreeing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The program and its arguments, each as it was written.
    pub command: Vec<String>,
    /// The names of the variables that it is given.
    pub variables: Vec<String>,
    /// Where it runs, if that is said.
    pub folder: Option<String>,
    /// What stands for all of this, the contents of the program included.
    pub mark: String,
}

impl Deed {
    /// What starting this means, as of now.
    ///
    /// # Errors
    /// The program cannot be read.
    pub fn of(launch: &CommandLaunch) -> io::Result<Self> {
        let launch = launch.found();
        let program = launch.program.value();
        // The values of variables may be secrets.
        let written = launch.args.iter().map(|arg| arg.written());
        let command = std::iter::once(program).chain(written);
        let command: Vec<String> = command.map(str::to_owned).collect();
        let variables: Vec<String> = launch.env.keys().cloned().collect();
        let folder = launch.cwd.as_ref().map(|cwd| cwd.value().to_owned());
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            // The length keeps two parts from becoming one.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(&contents(Path::new(program))?);
        add(program.as_bytes());
        add(folder.as_deref().unwrap_or_default().as_bytes());
        add(variables.len().to_string().as_bytes());
        variables.iter().for_each(|name| add(name.as_bytes()));
        let args = launch.args.iter();
        args.for_each(|arg| add(arg.value().as_bytes()));
        let digest = hash.finalize();
        let mark = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        Ok(Self {
            mark: mark.collect(),
            command,
            variables,
            folder,
        })
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

/// A command that is started only if it was approved.
#[derive(Clone, Debug)]
pub struct Approval {
    /// What is to be started.
    pub command: CommandLaunch,
    /// What was approved.
    pub approvals: Approvals,
}

impl Approval {
    /// Refuses what was not approved, as of now.
    pub(crate) async fn check(&self) -> Result<(), Trouble> {
        let this = self.clone();
        let checking = tokio::task::spawn_blocking(move || {
            let deed = Deed::of(&this.command)?;
            let holds = this.approvals.hold(&deed.mark)?;
            Ok((deed.mark, holds))
        });
        let checked: io::Result<(String, bool)> = match checking.await {
            Ok(checked) => checked,
            Err(_) => return Err(Trouble::Closed),
        };
        match checked {
            Ok((_, true)) => Ok(()),
            Ok((mark, false)) => Err(Trouble::Unapproved { mark }),
            Err(source) => Err(Trouble::Unapprovable(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_transport::stdio::child::Confinement;

    use super::*;
    use crate::catalog::{Filled, Secret};

    fn launch(program: &Path) -> CommandLaunch {
        let program = program.to_string_lossy().into_owned();
        CommandLaunch {
            program: Filled::new(program.clone(), program),
            args: vec![Filled::new("a b", "a b")],
            env: [(String::from("TOKEN"), Secret::new("hunter2"))].into(),
            cwd: None,
            confinement: Confinement::default(),
        }
    }

    /// SL5: whatever changes in a command changes what stands for it; the value of a variable does not.
    #[test]
    fn an_approval_is_for_one_exact_command() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        fs::write(&program, "one").unwrap();
        let usual = launch(&program);
        let mark = |launch: &CommandLaunch| Deed::of(launch).unwrap().mark;
        let first = mark(&usual);
        let mut other_value = usual.clone();
        other_value.env.insert("TOKEN".into(), Secret::new("x"));
        assert_eq!(first, mark(&other_value));
        let mut others = vec![usual.clone(), usual.clone(), usual.clone(), usual.clone()];
        others[0].args = vec![Filled::new("a", "a"), Filled::new("b", "b")];
        others[1].env.insert("MORE".into(), Secret::new("x"));
        others[2].cwd = Some(Filled::new("/", "/"));
        others[3].args.clear();
        for other in &others {
            assert_ne!(first, mark(other), "{other:?}");
        }
        fs::write(&program, "two").unwrap();
        assert_ne!(first, mark(&usual), "another program at the same place");
    }

    /// SL5: approvals are kept for their owner alone, and not believed if others could have given them.
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
