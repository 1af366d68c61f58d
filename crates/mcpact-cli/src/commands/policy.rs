//! Protocol options of `serve`, `bridge` and `everything`.

use mcpact_config::PolicySettings;

use crate::args::PolicyArgs;
use crate::error::CliError;

/// Parses the options and further settings `KEY=VALUE`.
pub(super) fn settings(
    args: &PolicyArgs,
    more: Option<String>,
) -> Result<PolicySettings, CliError> {
    let profile = args.profile.iter().map(|name| format!("profile={name}"));
    let given = args.policy.iter().cloned().chain(profile).chain(more);
    let given: Vec<String> = given.collect();
    PolicySettings::parse(given.iter().map(String::as_str)).map_err(CliError::Policy)
}
