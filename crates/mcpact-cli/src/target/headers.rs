//! Headers of `--header` and `--bearer`.

use std::path::Path;

use mcpact_config::{LocalHost, expand_text};
use mcpact_transport::http::client::HttpSettings;

use crate::error::CliError;

/// Returns HTTP settings with the given headers.
pub(super) fn settings(
    headers: &[String],
    bearer_source: Option<&str>,
) -> Result<HttpSettings, CliError> {
    let mut settings = HttpSettings::default();
    // Relative files start at the current directory.
    let host = LocalHost::around(Path::new("here")).map_err(CliError::CurrentDir)?;
    for header in headers {
        // An invalid header is not repeated, because it may be a secret.
        let (name, value) = header.split_once(':').ok_or_else(|| {
            CliError::header(
                "missing `:` between name and value",
                "for example `--header 'Authorization: Bearer ${TOKEN}'`",
            )
        })?;
        let name = name.trim();
        if bearer_source.is_some() && name.eq_ignore_ascii_case("authorization") {
            return Err(CliError::header(
                "`--header` and `--bearer` both set `Authorization`",
                "remove one of them",
            ));
        }
        let value = expand(value.trim(), &host)?;
        add(name, &value, &mut settings)?;
    }
    if let Some(source) = bearer_source {
        let token = bearer(source, &host)?;
        add("Authorization", &format!("Bearer {token}"), &mut settings)?;
    }
    Ok(settings)
}

/// Reads the token from a variable or file.
fn bearer(source: &str, host: &LocalHost) -> Result<String, CliError> {
    let is_source = source.starts_with("env:") || source.starts_with("file:");
    if !is_source || source.contains('}') {
        // The value is not repeated, because it may be the token itself.
        return Err(CliError::header(
            "`--bearer` is not `env:NAME` or `file:PATH`",
            "for example `--bearer env:TOKEN` or `--bearer file:token`",
        ));
    }
    let token = expand_text(&format!("${{{source}}}"), host);
    let token = token.map_err(|problem| CliError::Bearer {
        reason: problem.message,
    })?;
    if token.starts_with("${") {
        return Err(CliError::header(
            format!("`{source}` contains an unexpanded variable reference"),
            "store the token itself; not every client expands variables",
        ));
    }
    if token.trim().is_empty() {
        return Err(CliError::header(
            format!("`{source}` is empty"),
            "store the token there, or remove `--bearer`",
        ));
    }
    Ok(token)
}

fn expand(text: &str, host: &LocalHost) -> Result<String, CliError> {
    expand_text(text, host)
        .map_err(|problem| CliError::header(problem.message, problem.remedy.unwrap_or_default()))
}

/// Adds a header.
pub(super) fn add(name: &str, value: &str, settings: &mut HttpSettings) -> Result<(), CliError> {
    let added = settings.headers.insert(name, value);
    added.map_err(|error| CliError::header(error.to_string(), "correct or remove it"))
}
