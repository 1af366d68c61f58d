//! `server.json` of the MCP registry.

use std::path::Path;

use mcpact_config::{ServerName, read_config_text};
use serde::Deserialize;
use serde_json::Value;

use super::{Launch, NewServer, PackageKind, Required};
use crate::error::{CliError, EditError};

/// Description of a server. Older files have other names for the same keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerJson {
    packages: Vec<Package>,
    remotes: Vec<Remote>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Package {
    #[serde(alias = "registry_type")]
    registry_type: String,
    identifier: String,
    version: Option<String>,
    transport: Option<Transport>,
    #[serde(alias = "runtime_arguments")]
    runtime_arguments: Vec<Argument>,
    #[serde(alias = "package_arguments")]
    package_arguments: Vec<Argument>,
    #[serde(alias = "environment_variables")]
    environment_variables: Vec<Input>,
}

#[derive(Debug, Deserialize)]
struct Transport {
    #[serde(rename = "type")]
    kind: String,
}

/// Argument of a command: a word, or an option with or without a value.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Argument {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(alias = "value_hint")]
    value_hint: String,
    value: Option<String>,
    default: Option<String>,
    #[serde(alias = "is_required")]
    is_required: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Remote {
    #[serde(rename = "type", alias = "transport_type")]
    kind: String,
    url: String,
    headers: Vec<Input>,
}

/// Variable or header.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Input {
    name: String,
    value: Option<String>,
    #[serde(alias = "is_required")]
    is_required: bool,
    #[serde(alias = "is_secret")]
    is_secret: bool,
}

/// Reads the server of a file: its first package that can be started, else its first URL.
pub(super) fn read(file: &Path, name: &ServerName) -> Result<NewServer, CliError> {
    let text = read_config_text(file)?;
    let server = parse(&text, name).map_err(|Refusal { reason, hint }| EditError::ServerJson {
        file: file.to_owned(),
        reason,
        hint,
    })?;
    Ok(server)
}

/// Reason why a server cannot be added, and its hint.
#[derive(Debug)]
struct Refusal {
    reason: String,
    hint: String,
}

fn refusal(reason: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal {
        reason: reason.into(),
        hint: hint.into(),
    }
}

fn parse(text: &str, name: &ServerName) -> Result<NewServer, Refusal> {
    let format = "pass a `server.json` of the MCP registry, with `packages` or `remotes`";
    let broken = |error: serde_json::Error| refusal(format!("invalid JSON: {error}"), format);
    let mut value: Value = serde_json::from_str(text).map_err(broken)?;
    // The API of the registry adds facts of its own around the file.
    if let Some(inner) = value.get_mut("server").filter(|inner| inner.is_object()) {
        value = inner.take();
    }
    let server: ServerJson = serde_json::from_value(value).map_err(broken)?;
    let is_stdio = |package: &&Package| {
        let transport = package.transport.as_ref();
        transport.is_none_or(|transport| transport.kind == "stdio")
    };
    let packages = server.packages.iter().filter(is_stdio);
    let mut packages = packages.filter_map(|package| {
        PackageKind::named(&package.registry_type).map(|kind| (kind, package))
    });
    if let Some((kind, package)) = packages.next() {
        return package.server(kind);
    }
    let http = ["streamable-http", "http", "sse"];
    let remotes = http.iter().find_map(|kind| {
        let mut remotes = server.remotes.iter();
        remotes.find(|remote| remote.kind == *kind)
    });
    match remotes {
        Some(remote) => remote.server(name),
        None => Err(refusal(
            "it has no package of npm or PyPI for stdio, and no URL",
            format!("pass the command: `mcpact add {name} -- COMMAND`"),
        )),
    }
}

impl Package {
    fn server(&self, kind: PackageKind) -> Result<NewServer, Refusal> {
        let version = self.version.as_deref();
        let version = version.filter(|version| !version.is_empty() && *version != "latest");
        let package = match version {
            Some(version) => format!("{}{}{version}", self.identifier, kind.mark()),
            None => self.identifier.clone(),
        };
        if !super::is_package(&package) {
            let hint = "correct `identifier` and `version`";
            return Err(refusal("the package has an invalid name", hint));
        }
        let plain = kind.command(&[], &package).join(" ");
        let words = |arguments: &[Argument]| {
            let words = arguments.iter().map(|argument| argument.words(&plain));
            words.collect::<Result<Vec<_>, _>>()
        };
        let options = words(&self.runtime_arguments)?.concat();
        let mut command = kind.command(&options, &package);
        command.extend(words(&self.package_arguments)?.concat());
        let mut server = NewServer::new(Launch::Command(command));
        for input in &self.environment_variables {
            input.add_to(&mut server, input.name.clone());
        }
        Ok(server)
    }
}

impl Argument {
    /// Returns the words of the argument; none if it is optional and has no value.
    fn words(&self, command: &str) -> Result<Vec<String>, Refusal> {
        let is_fixed = |value: &&String| !value.contains('{');
        let default = self.default.as_ref().filter(|_| self.is_required);
        let value = self.value.as_ref().or(default);
        let name = match self.kind.as_str() {
            "named" => Some(self.name.clone()),
            _ => None,
        };
        match (value.filter(is_fixed), value) {
            (Some(value), _) => Ok(name.into_iter().chain([value.clone()]).collect()),
            // A flag.
            (None, None) if name.is_some() && self.value_hint.is_empty() => {
                Ok(name.into_iter().filter(|_| self.is_required).collect())
            }
            (None, None) if !self.is_required => Ok(Vec::new()),
            (None, _) => {
                let known = [&self.name, &self.value_hint];
                let known = known.into_iter().find(|name| !name.is_empty());
                let known = known.map_or("an argument", String::as_str);
                Err(refusal(
                    format!("it needs a value for `{known}`"),
                    format!("pass the command: `mcpact add NAME -- {command} …`"),
                ))
            }
        }
    }
}

impl Remote {
    fn server(&self, name: &ServerName) -> Result<NewServer, Refusal> {
        if self.url.contains('{') {
            let hint = format!("fill in the URL: `mcpact add {name} {}`", self.url);
            return Err(refusal("its URL has parts that you choose", hint));
        }
        let mut server = NewServer::new(Launch::Url(self.url.clone()));
        for header in &self.headers {
            let variable = format!("{name}_{}", header.name);
            let is_usual = |c: char| c.is_ascii_alphanumeric();
            let variable = variable.replace(|c| !is_usual(c), "_").to_ascii_uppercase();
            header.add_to(&mut server, variable);
        }
        Ok(server)
    }
}

impl Input {
    /// Adds the variable or header to a server: a fixed value, a required one, or just its name. A default is left to the
    /// server.
    fn add_to(&self, server: &mut NewServer, variable: String) {
        let name = self.name.clone();
        let value = self.value.as_deref().unwrap_or_default();
        let part = value.split_once('{').and_then(|(before, rest)| {
            let (_, after) = rest.split_once('}')?;
            Some(format!("{before}*{after}"))
        });
        match part {
            // Two parts to fill in are two secrets in one value: leave it to one variable.
            Some(form) if !form.contains('{') => server.required.push(Required {
                name,
                variable,
                form,
                is_secret: true,
            }),
            None if !value.is_empty() && !self.is_secret => {
                server.values.push((name, value.to_owned()));
            }
            _ if self.is_required => server.required.push(Required {
                name,
                variable,
                form: String::from("*"),
                is_secret: self.is_secret,
            }),
            _ => server.optional.push(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> Result<NewServer, String> {
        let name = ServerName::parse("search").unwrap();
        parse(text, &name).map_err(|refusal| refusal.reason)
    }

    fn required(name: &str, variable: &str, form: &str) -> Required {
        Required {
            name: name.to_owned(),
            variable: variable.to_owned(),
            form: form.to_owned(),
            is_secret: true,
        }
    }

    #[test]
    fn package_becomes_a_command() {
        for (names, text) in [
            (
                "current names",
                r#"{"name": "io.github.acme/search", "packages": [
                {"registryType": "oci", "identifier": "acme/search", "transport": {"type": "stdio"}},
                {"registryType": "npm", "identifier": "@acme/search", "version": "1.2.3", "transport": {"type": "stdio"},
                 "runtimeArguments": [{"type": "positional", "value": "-y"}],
                 "packageArguments": [
                    {"type": "positional", "value": "start"},
                    {"type": "named", "name": "--mode", "default": "local", "isRequired": true},
                    {"type": "named", "name": "--port", "valueHint": "port"}],
                 "environmentVariables": [
                    {"name": "SEARCH_API_KEY", "isRequired": true, "isSecret": true},
                    {"name": "LOG_LEVEL", "default": "info"},
                    {"name": "MODE", "value": "mcp"}]}]}"#,
            ),
            (
                "older names, answer of the registry",
                r#"{"server": {"packages": [{"registry_type": "npm", "identifier": "@acme/search", "version": "1.2.3",
                 "package_arguments": [
                    {"type": "positional", "value": "start"},
                    {"type": "named", "name": "--mode", "default": "local", "is_required": true}],
                 "environment_variables": [
                    {"name": "SEARCH_API_KEY", "is_required": true, "is_secret": true},
                    {"name": "LOG_LEVEL"},
                    {"name": "MODE", "value": "mcp"}]}]}, "_meta": {}}"#,
            ),
        ] {
            let server = added(text).unwrap();
            let command = [
                "npx",
                "-y",
                "@acme/search@1.2.3",
                "start",
                "--mode",
                "local",
            ];
            assert_eq!(
                server.launch,
                Launch::Command(command.map(String::from).to_vec()),
                "{names}"
            );
            let key = required("SEARCH_API_KEY", "SEARCH_API_KEY", "*");
            assert_eq!(server.required, [key]);
            assert_eq!(server.values, [(String::from("MODE"), String::from("mcp"))]);
            assert_eq!(server.optional, ["LOG_LEVEL"]);
        }
        let python = added(
            r#"{"packages": [{"registryType": "pypi", "identifier": "mcp-server-time", "version": "latest"}]}"#,
        );
        let command = ["uvx", "mcp-server-time"].map(String::from).to_vec();
        assert_eq!(python.unwrap().launch, Launch::Command(command));
    }

    #[test]
    fn remote_becomes_a_url() {
        let server = added(
            r#"{"remotes": [
            {"type": "sse", "url": "https://search.example/sse"},
            {"type": "streamable-http", "url": "https://search.example/mcp", "headers": [
                {"name": "Authorization", "value": "Bearer {token}", "isSecret": true},
                {"name": "X-API-Key", "isRequired": true, "isSecret": true},
                {"name": "X-Region", "value": "eu"}]}]}"#,
        );
        let server = server.unwrap();
        assert_eq!(
            server.launch,
            Launch::Url(String::from("https://search.example/mcp"))
        );
        assert_eq!(
            server.required,
            [
                required("Authorization", "SEARCH_AUTHORIZATION", "Bearer *"),
                required("X-API-Key", "SEARCH_X_API_KEY", "*"),
            ]
        );
        assert_eq!(
            server.values,
            [(String::from("X-Region"), String::from("eu"))]
        );
    }

    #[test]
    fn other_files_are_refused() {
        for (text, expected) in [
            ("{", "invalid JSON"),
            ("1", "invalid JSON"),
            ("{}", "no package of npm or PyPI"),
            (
                r#"{"packages": [{"registryType": "oci", "identifier": "a"}]}"#,
                "no package of npm or PyPI",
            ),
            (
                r#"{"packages": [{"registryType": "npm", "identifier": "-y"}]}"#,
                "invalid name",
            ),
            (
                r#"{"packages": [{"registryType": "npm", "identifier": "a", "packageArguments": [{"type": "positional", "valueHint": "folder", "isRequired": true}]}]}"#,
                "a value for `folder`",
            ),
            (
                r#"{"remotes": [{"type": "sse", "url": "https://{tenant}.example/sse"}]}"#,
                "parts that you choose",
            ),
        ] {
            let told = added(text).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
