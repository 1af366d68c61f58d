//! Protocol options of `serve`, `bridge` and `everything`.

use std::path::Path;

use mcpact_config::{CatalogError, PolicySettings, Problem, Severity, load};

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

/// Error for a config, or for the options if the config is valid without them.
pub(super) fn load_error(args: &PolicyArgs, config: &Path, error: CatalogError) -> CliError {
    let CatalogError::Refused { problems, .. } = &error else {
        return error.into();
    };
    let mut problems = problems.iter();
    let first = problems.find(|problem| problem.severity == Severity::Error);
    let Some(problem) = first.filter(|_| load(config).is_ok()) else {
        return error.into();
    };
    let profile = args.profile.iter().map(|name| format!("--profile {name}"));
    let policy = args.policy.iter().map(|one| format!("--policy {one}"));
    let options: Vec<String> = profile.chain(policy).collect();
    if options.is_empty() {
        return error.into();
    }
    let (options, config) = (options.join(" "), config.display());
    CliError::Policy(Problem {
        message: format!("`{options}` contradicts `{config}`: {}", problem.message),
        ..problem.clone()
    })
}
