//! `mcpact install`: adds the gateway, or its servers, to the config of a client.

mod record;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use mcpact::server::ListenAddress;
use mcpact_config::import::Folders;
use mcpact_config::install::{Endpoint, INSTALL_CLIENTS, InstallClient, Os, TokenSource};
use mcpact_config::{
    Catalog, Entry, EntryChange, GatewayConfig, HostEnvironment as _, LocalHost, ProgramLookup,
    entry_names, nearest_config, outline, read_config_text, set_entry,
};

use self::record::{Records, backup_of};
use super::{edit, import, serve};
use crate::args::InstallArgs;
use crate::error::{CliError, EditError, Exit};
use crate::report;
use crate::report::installs::{self, ClientRow, ClientState};

/// Name of the entry for the whole gateway.
const ENTRY: &str = "mcpact";

pub(super) fn run(args: &InstallArgs) -> Result<Exit, CliError> {
    let folders = import::folders()?;
    let records = Records::open()?;
    let Some(name) = &args.client else {
        return list(&folders, &records);
    };
    let client = InstallClient::named(name).ok_or_else(|| {
        let known = INSTALL_CLIENTS.iter().map(|client| client.name);
        CliError::unknown("client", name, "clients", known)
    })?;
    let file = config_of(client, &folders);
    if args.undo {
        return undo(client, &file, &records, args);
    }
    let gateway = Gateway::load(args)?;
    let entries = gateway.entries(client, args)?;
    if (args.server.is_some() || args.all) && gateway.reads(&file) {
        return Err(EditError::OwnConfig(file).into());
    }
    let before = edit::read(&file)?;
    let mut text = before.clone().unwrap_or_default();
    let mut changes = Vec::new();
    for (name, entry) in &entries {
        let path = file.display().to_string();
        let edited = set_entry(&path, &text, client.servers, name, entry)
            .map_err(|problem| edit::refused(&file, &text, problem))?;
        text = edited.text;
        changes.push((name.clone(), edited.change));
    }
    let is_changed = changes
        .iter()
        .any(|(_, change)| *change != EntryChange::Unchanged);
    if args.dry_run {
        report::print(&installs::diff(&file, before.as_deref(), &text))?;
        if !is_changed {
            report::eprint(&installs::changes(&file, &changes));
        }
        return Ok(Exit::Ok);
    }
    if is_changed {
        let names = entries.iter().map(|(name, _)| name.clone()).collect();
        records.replace(client, &file, before.as_deref(), &text, names)?;
    }
    let mut out = installs::changes(&file, &changes);
    let backup = backup_of(&file);
    if is_changed && backup.exists() {
        out.push_str(&format!("backup: {}\n", backup.display()));
    }
    report::print(&out)?;
    gateway.print_next_steps(client, args, is_changed);
    Ok(Exit::Ok)
}

/// Returns the config of a client: the first one that exists, or the default one.
fn config_of(client: &InstallClient, folders: &Folders) -> PathBuf {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let paths = client.paths(folders, Os::here(), variable);
    let found = paths.iter().find(|path| path.exists());
    found.or(paths.first()).cloned().unwrap_or_default()
}

/// Lists the clients.
fn list(folders: &Folders, records: &Records) -> Result<Exit, CliError> {
    let rows = INSTALL_CLIENTS.iter().map(|client| {
        let file = config_of(client, folders);
        let state = match read_config_text(&file) {
            Ok(text) => {
                let names = entry_names(&file.display().to_string(), &text, client.servers);
                let own = records.entries(client, &file);
                let is_own = |name: &String| name == ENTRY || own.contains(name);
                match names.iter().any(is_own) {
                    true => ClientState::Installed,
                    false => ClientState::Found,
                }
            }
            Err(_) if file.exists() => ClientState::Unreadable,
            Err(_) => ClientState::Missing,
        };
        let short = file.strip_prefix(&folders.home).ok();
        let file = short.map_or_else(|| file.clone(), |short| Path::new("~").join(short));
        ClientRow {
            name: client.name,
            state,
            file,
        }
    });
    let rows: Vec<ClientRow> = rows.collect();
    report::print(&installs::list(&rows))?;
    report::hint("add mcpact to a client with `mcpact install CLIENT`");
    Ok(Exit::Ok)
}

fn undo(
    client: &InstallClient,
    file: &Path,
    records: &Records,
    args: &InstallArgs,
) -> Result<Exit, CliError> {
    let undo = records.undo(client, file)?;
    if args.dry_run {
        report::print(&installs::diff(
            file,
            Some(&undo.now),
            undo.original.as_deref().unwrap_or_default(),
        ))?;
        return Ok(Exit::Ok);
    }
    records.finish_undo(client, file, &undo)?;
    let file = file.display();
    report::print(&match undo.original {
        Some(_) => format!("restored {file}\n"),
        None => format!("removed {file}, which mcpact had created\n"),
    })?;
    Ok(Exit::Ok)
}

/// The gateway that clients connect to.
struct Gateway {
    /// Its config, as an absolute path.
    file: Option<PathBuf>,
    catalog: Catalog,
    token: Option<TokenSource>,
    program: String,
}

impl Gateway {
    /// Loads the config; without one, the gateway has its default address.
    fn load(args: &InstallArgs) -> Result<Self, CliError> {
        let here = std::env::current_dir().map_err(CliError::CurrentDir)?;
        let file = args.config.clone().or_else(|| nearest_config(&here));
        let file = file.map(std::path::absolute).transpose();
        let file = file.map_err(CliError::CurrentDir)?;
        let catalog = match &file {
            Some(file) => outline(file, &read_config_text(file)?)?,
            None => Catalog::default(),
        };
        let around = file.clone().unwrap_or_else(|| here.join("here"));
        let host = LocalHost::around(&around).map_err(CliError::CurrentDir)?;
        let token = serve::token_reference(&catalog.gateway, &host);
        Ok(Self {
            file,
            catalog,
            token: token.map(|token| match token.file {
                Some(file) => TokenSource::File(file),
                None => TokenSource::Variable(token.variable),
            }),
            program: program(&host),
        })
    }

    /// Returns true if this is the config of the gateway.
    fn reads(&self, file: &Path) -> bool {
        let own = self.file.as_ref().and_then(|own| own.canonicalize().ok());
        own.is_some() && own == file.canonicalize().ok()
    }

    /// Returns the entries to write, by name.
    fn entries(
        &self,
        client: &InstallClient,
        args: &InstallArgs,
    ) -> Result<Vec<(String, Entry)>, CliError> {
        let served = self.catalog.served().into_iter();
        let served: Vec<&str> = served.map(|(name, _)| name.as_str()).collect();
        let servers = match &args.server {
            _ if (args.all || args.server.is_some()) && self.file.is_none() => {
                return Err(CliError::NoConfig);
            }
            Some(name) if !served.contains(&name.as_str()) => {
                return Err(CliError::unknown("server", name, "servers", served));
            }
            Some(name) => vec![name.as_str()],
            None if args.all => served,
            None => {
                let entry = self.entry(client, None)?;
                return Ok(vec![(ENTRY.to_owned(), entry)]);
            }
        };
        let mut entries = Vec::new();
        for name in servers {
            entries.push((name.to_owned(), self.entry(client, Some(name))?));
        }
        Ok(entries)
    }

    fn entry(&self, client: &InstallClient, server: Option<&str>) -> Result<Entry, CliError> {
        let endpoint = self.endpoint(server)?;
        let entry = client.entry(&self.program, &endpoint, self.token.as_ref());
        Ok(entry.map_err(EditError::Token)?)
    }

    /// Returns the endpoint of a server, or of all.
    fn endpoint(&self, server: Option<&str>) -> Result<Endpoint, EditError> {
        let path = server.map_or_else(
            || String::from("/mcp"),
            |name| format!("/servers/{name}/mcp"),
        );
        let gateway = &self.catalog.gateway;
        Ok(match &gateway.listen {
            ListenAddress::Tcp(address) if address.port() == 0 => match (&self.file, server) {
                (Some(file), None) => Endpoint::Config(file.clone()),
                _ => return Err(EditError::NoAddress),
            },
            ListenAddress::Tcp(address) => Endpoint::Url(origin(gateway, *address) + &path),
            ListenAddress::Unix(socket) => {
                let socket = socket.display();
                Endpoint::Bridge(match server {
                    None => format!("unix:{socket}"),
                    Some(_) => format!("unix:{socket}:{path}"),
                })
            }
        })
    }

    /// Prints what is left to do.
    fn print_next_steps(&self, client: &InstallClient, args: &InstallArgs, is_changed: bool) {
        let title = client.title;
        let is_served_by_client = matches!(self.endpoint(None), Ok(Endpoint::Config(_)) | Err(_));
        if let (Some(TokenSource::Variable(name)), false) = (&self.token, is_served_by_client) {
            report::hint(&format!(
                "set `{name}` to the token of the gateway in the environment of {title}"
            ));
        }
        if !is_changed {
            return;
        }
        let config = args.config.as_ref();
        let config =
            config.map_or_else(String::new, |file| format!(" --config {}", file.display()));
        report::hint(&match is_served_by_client {
            true => format!("restart {title}, which starts the gateway"),
            false => format!("start the gateway with `mcpact serve{config}`, and restart {title}"),
        });
    }
}

/// Returns scheme, host and port for clients of this machine.
fn origin(gateway: &GatewayConfig, address: SocketAddr) -> String {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    let address = SocketAddr::new(ip, address.port());
    match (&gateway.tls, gateway.allow_hosts.first()) {
        (None, _) => format!("http://{address}"),
        // The certificate is for a name.
        (Some(_), Some(host)) if !host.contains(':') => {
            format!("https://{host}:{}", address.port())
        }
        (Some(_), _) => format!("https://{address}"),
    }
}

/// Returns an absolute path of this program: clients have another `PATH` than shells. A path in `PATH` is preferred,
/// because an update keeps it.
fn program(host: &LocalHost) -> String {
    let found = host.program(&ProgramLookup::here(ENTRY));
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    let own = own.ok().map(|path| path.to_string_lossy().into_owned());
    let in_path = found.path.filter(|_| found.real == own);
    in_path.or(own).unwrap_or_else(|| ENTRY.to_owned())
}
