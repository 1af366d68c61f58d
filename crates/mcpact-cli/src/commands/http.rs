//! HTTP listener options of `bridge` and `everything`.

use std::net::SocketAddr;
use std::path::Path;

use mcpact::server::{Settings, TlsIdentity, Token};
use mcpact_config::{
    AllowHostsSource, is_readable_by_all, missing_host_warning, readable_key_warning,
};

use crate::args::HttpArgs;
use crate::error::CliError;
use crate::report;

/// Environment variable that may hold the token.
const TOKEN: &str = "MCPACT_TOKEN";

/// Applies the options to the settings of a listener.
pub(super) fn apply(args: &HttpArgs, settings: &mut Settings) -> Result<(), CliError> {
    settings.token = token(args.token_file.as_deref())?;
    settings.tls = match (&args.tls_cert, &args.tls_key) {
        (Some(chain), Some(key)) => {
            if is_readable_by_all(key) {
                let (message, hint) = readable_key_warning(key);
                report::warn(&message, &hint);
            }
            Some(TlsIdentity::from_files(chain, key).map_err(|error| CliError::Tls(error.into()))?)
        }
        (Some(_), None) | (None, _) => None,
    };
    settings.allow_remote = args.allow_remote;
    settings.allow_users.clone_from(&args.allow_user);
    for name in &args.allow_host {
        settings.guard = std::mem::take(&mut settings.guard).allow_host(name);
    }
    for origin in &args.allow_origin {
        settings.guard = std::mem::take(&mut settings.guard).allow_origin(origin);
    }
    Ok(())
}

/// Warns if other machines can connect but no host name is allowed.
pub(super) fn warn_without_hosts(address: SocketAddr, args: &HttpArgs) {
    let warning = missing_host_warning(address, &args.allow_host, AllowHostsSource::AsArguments);
    if let Some((message, hint)) = warning {
        report::warn(&message, &hint);
    }
}

/// Reads the token from the file or the variable. It is not an argument, because the process list shows arguments.
fn token(file: Option<&Path>) -> Result<Option<Token>, CliError> {
    let (origin, text) = match (file, std::env::var_os(TOKEN)) {
        (Some(path), _) => {
            let origin = format!("`{}`", path.display());
            (
                origin,
                std::fs::read_to_string(path).map_err(|e| e.to_string()),
            )
        }
        (None, Some(text)) => {
            let not_utf8 = |_| String::from("not valid UTF-8");
            (format!("`{TOKEN}`"), text.into_string().map_err(not_utf8))
        }
        (None, None) => return Ok(None),
    };
    let token = text.and_then(|text| Token::new(&text).map_err(|fault| fault.to_string()));
    token
        .map(Some)
        .map_err(|reason| CliError::Token { origin, reason })
}
