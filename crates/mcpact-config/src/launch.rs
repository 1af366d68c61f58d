//! Conversion of a configured launch into the child process or HTTP client of a transport.

use std::ffi::OsString;
use std::path::PathBuf;

use mcpact_transport::error::DoorError;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::stdio::child::{ChildCommand, secret_args, url_password};
use sha2::{Digest as _, Sha256};

use super::config::{CommandLaunch, Launch, ServerConfig, UrlLaunch};
use super::machine::program;
use super::name::ServerName;
use super::secret::{Filled, Secret, query_values, with_words};
use super::surroundings::Sought;

impl Launch {
    /// Secret values and values of variables, for masking.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        match self {
            Self::Command(command) => command.secrets(),
            Self::Url(url) => url.secrets(),
            Self::Builtin(_) => Vec::new(),
        }
    }
}

impl CommandLaunch {
    /// The same with the whole path of the program, as a child with its `PATH` and folder finds it now: what is
    /// looked at is what is started.
    #[must_use]
    pub fn found(&self) -> Self {
        let program = program(&Sought {
            program: self.program.value(),
            path: self.env.get("PATH").map(Secret::reveal),
            folder: self.cwd.as_ref().map(Filled::value),
        });
        let program =
            program.map(|path| Filled::new(path.to_string_lossy(), self.program.written()));
        Self {
            program: program.unwrap_or_else(|| self.program.clone()),
            ..self.clone()
        }
    }

    /// What stands in the place of variables in the program and its arguments.
    pub(crate) fn filled(&self) -> impl Iterator<Item = String> {
        let texts = self.args.iter().chain([&self.program]);
        let fillings = texts.flat_map(Filled::fillings);
        fillings.map(str::to_owned)
    }

    /// Secret values and values of variables, for masking.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let values = || self.env.values().map(Secret::reveal);
        let mut found: Vec<String> = values().map(str::to_owned).collect();
        found.extend(values().filter_map(url_password).map(str::to_owned));
        found.extend(self.filled());
        let args = secret_args(self.args.iter().map(Filled::value));
        found.extend(args.into_iter().map(str::to_owned));
        with_words(found)
    }

    /// The child process to start.
    #[must_use]
    pub fn child(&self, name: &ServerName) -> ChildCommand {
        let args = self.args.iter().map(|arg| OsString::from(arg.value()));
        let mut child = ChildCommand::new(self.program.value()).with_args(args);
        child.name = name.to_string();
        child.secrets = self.filled().collect();
        child.cwd = self.cwd.as_ref().map(|cwd| PathBuf::from(cwd.value()));
        for (name, value) in &self.env {
            child = child.with_env(name, value.reveal_raw());
        }
        child
    }
}

impl UrlLaunch {
    fn secrets(&self) -> Vec<String> {
        let headers = self.headers.values().map(Secret::reveal);
        let found = headers.chain(self.url.fillings());
        let found = found.chain(query_values(self.url.value()));
        with_words(found.map(str::to_owned).collect())
    }

    /// Settings of the HTTP client, with the configured headers.
    ///
    /// # Errors
    /// A header cannot be sent, which reading the config has excluded.
    pub fn settings(&self) -> Result<HttpSettings, DoorError> {
        let mut settings = HttpSettings::default();
        for (name, value) in &self.headers {
            settings = settings.header(name, value.reveal())?;
        }
        Ok(settings)
    }
}

impl ServerConfig {
    /// What a file is called that remembers something about the server.
    #[must_use]
    pub fn remembered_as(&self, name: &ServerName) -> String {
        format!("{name}-{}", self.fingerprint())
    }

    /// A short text that differs whenever the server is started or reached in another way. Values of
    /// variables and headers are not part of it, their names are.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            // The length keeps two parts from becoming one.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        match &self.launch {
            Launch::Command(command) => {
                add("command");
                add(command.program.value());
                add(command.cwd.as_ref().map_or("", |cwd| cwd.value()));
                command.env.keys().for_each(|name| add(name));
                add("args");
                command.args.iter().for_each(|arg| add(arg.value()));
            }
            Launch::Url(url) => {
                add("url");
                add(url.url.value());
                url.headers.keys().for_each(|name| add(name));
            }
            Launch::Builtin(name) => {
                add("builtin");
                add(name);
            }
        }
        add(&format!("{:?}", self.era));
        let digest = hash.finalize();
        digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::taken_from;

    fn server(text: &str) -> ServerConfig {
        let catalog = taken_from("mcpact.toml", &format!("[servers.a]\n{text}"));
        catalog.servers["a"].clone()
    }

    /// The environment of a child is what the config names, and its arguments are as they were written.
    #[test]
    fn a_command_becomes_an_argument_vector() {
        let server = server(
            "command = \"npx\"\nargs = [\"a b\", \"$HOME\"]\nenv = { A = \"${TOKEN}\" }\ncwd = \"x\"",
        );
        let Launch::Command(command) = server.launch else {
            panic!("no command");
        };
        let child = command.child(&ServerName::near("a"));
        assert_eq!(child.args, ["a b", "$HOME"]);
        assert_eq!(child.env.len(), 1);
        assert_eq!(child.env[&OsString::from("A")], "hunter2");
        assert_eq!(child.cwd, Some(PathBuf::from("/work/shop/x")));
    }

    /// The program that is looked at is the one that the child's own `PATH` and folder lead to.
    #[cfg(unix)]
    #[test]
    fn a_program_is_found_as_the_child_finds_it() {
        use crate::Machine;
        use crate::surroundings::Surroundings as _;
        let folder = tempfile::tempdir().unwrap();
        let shell = folder.path().join("true");
        std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
        let here = folder.path().to_string_lossy();
        let found = |text: &str| match server(text).launch {
            Launch::Command(command) => command.found().program.value().to_owned(),
            Launch::Url(_) | Launch::Builtin(_) => panic!("no command"),
        };
        let shell = shell.to_string_lossy();
        let by_path = format!("command = \"true\"\nenv = {{ PATH = \"{here}\" }}");
        assert_eq!(found(&by_path), shell);
        assert_eq!(
            found(&format!("command = \"./true\"\ncwd = \"{here}\"")),
            shell
        );
        assert_ne!(found("command = \"true\""), shell);
        let facts = Machine::at(folder.path().to_owned()).program(&Sought {
            program: "true",
            path: Some(&here),
            folder: None,
        });
        assert_eq!(facts.path.as_deref(), Some(&*shell));
    }

    #[test]
    fn fingerprints_tell_launches_apart_without_their_secrets() {
        let print = |text: &str| server(text).fingerprint();
        let one = print("command = \"a\"\nargs = [\"b\", \"c\"]\nenv = { K = \"1\" }");
        assert_eq!(one.len(), 32);
        assert_eq!(
            one,
            print("command = \"a\"\nargs = [\"b\", \"c\"]\nenv = { K = \"2\" }")
        );
        for other in [
            "command = \"a\"\nargs = [\"bc\"]\nenv = { K = \"1\" }",
            "command = \"a\"\nargs = [\"b\", \"c\"]\nenv = { L = \"1\" }",
            "command = \"a\"\nargs = [\"b\", \"c\"]\nenv = { K = \"1\" }\nera = \"legacy\"",
            "url = \"https://a.example/\"",
        ] {
            assert_ne!(one, print(other), "{other}");
        }
    }
}
