//! Conversion of a configured launch into the child process or HTTP client of a transport.

use std::ffi::OsString;
use std::path::PathBuf;

use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::{HttpSettings, Proxy, ProxyMode};
use mcpact_transport::stdio::child::{ChildCommand, SandboxLevel, secret_args, url_password};

use super::config::{CommandLaunch, Launch, ProxyConfig, ServerConfig, UrlLaunch};
use super::local_host::program;
use super::name::ServerName;
use super::secret::{EnvValue, ExpandedText, Secret, query_values, with_words};
use super::source::PartsDigest;
use crate::local_host::ProgramLookup;

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

    /// Describes the sandbox on this system, such as `standard (landlock 7)`; `None` without one.
    #[must_use]
    pub fn sandbox(&self) -> Option<String> {
        match self {
            Self::Command(command) => {
                let level = command.confinement.sandbox.level;
                (level != SandboxLevel::Off).then(|| level.describe())
            }
            Self::Url(_) | Self::Builtin(_) => None,
        }
    }
}

impl CommandLaunch {
    /// Copy with the absolute path of the program, found with the child's `PATH` and working directory. The approved
    /// program is the one that is started.
    #[must_use]
    pub fn found(&self) -> Self {
        let program = program(&ProgramLookup {
            program: self.program.value(),
            path: self.env.get("PATH").map(EnvValue::reveal),
            folder: self.cwd.as_ref().map(ExpandedText::value),
        });
        let program = program.map(|path| self.program.with_value(path.to_string_lossy()));
        Self {
            program: program.unwrap_or_else(|| self.program.clone()),
            ..self.clone()
        }
    }

    /// Values of variables in the program and its arguments.
    pub(crate) fn filled(&self) -> impl Iterator<Item = String> {
        let texts = self.args.iter().chain([&self.program]);
        let variable_values = texts.flat_map(ExpandedText::variable_values);
        variable_values.map(str::to_owned)
    }

    /// Secret values and values of variables, for masking.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let values = || self.env.values().map(EnvValue::reveal);
        let mut found: Vec<String> = values().map(str::to_owned).collect();
        found.extend(values().filter_map(url_password).map(str::to_owned));
        found.extend(self.filled());
        let args = secret_args(self.args.iter().map(ExpandedText::value));
        found.extend(args.into_iter().map(str::to_owned));
        with_words(found)
    }

    /// Converts to the command of a child process.
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
        let found = headers.chain(self.url.variable_values());
        let found = found.chain(query_values(self.url.value()));
        let proxy = match &self.proxy {
            ProxyConfig::Custom { url, .. } => Some(url.reveal()),
            ProxyConfig::System | ProxyConfig::Disabled => None,
        };
        let found = found.chain(proxy).chain(proxy.and_then(url_password));
        with_words(found.map(str::to_owned).collect())
    }

    /// Settings of the HTTP client, with the configured headers.
    ///
    /// # Errors
    /// A header or the proxy is invalid; the config reader rejects them.
    pub fn settings(&self) -> Result<HttpSettings, TransportError> {
        let mut settings = HttpSettings::default();
        for (name, value) in &self.headers {
            settings = settings.header(name, value.reveal())?;
        }
        settings.proxy = match &self.proxy {
            ProxyConfig::System => ProxyMode::System,
            ProxyConfig::Disabled => ProxyMode::Disabled,
            ProxyConfig::Custom { url, exceptions } => {
                ProxyMode::Custom(Proxy::new(url.reveal())?.except(exceptions))
            }
        };
        Ok(settings)
    }
}

impl ServerConfig {
    /// File name for cached data of the server.
    #[must_use]
    pub fn cache_file_stem(&self, name: &ServerName) -> String {
        format!("{name}-{}", self.fingerprint())
    }

    /// Short digest that changes whenever the launch changes. It covers the names of variables and headers, not their
    /// values.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hash = PartsDigest::default();
        let mut add = |part: &str| hash.add(part.as_bytes());
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
        hash.finish()
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

    /// The child gets only configured variables, and its arguments unchanged.
    #[test]
    fn command_becomes_an_argument_vector() {
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

    /// The lookup uses the child's own `PATH` and working directory.
    #[cfg(unix)]
    #[test]
    fn program_lookup_uses_the_environment_of_the_child() {
        use crate::LocalHost;
        use crate::local_host::HostEnvironment as _;
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
        let facts = LocalHost::at(folder.path().to_owned()).program(&ProgramLookup {
            program: "true",
            path: Some(&here),
            folder: None,
        });
        assert_eq!(facts.path.as_deref(), Some(&*shell));
    }

    #[test]
    fn fingerprints_differ_per_launch_and_ignore_secrets() {
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
