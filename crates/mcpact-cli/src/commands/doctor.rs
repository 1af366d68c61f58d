//! `mcpact doctor`: finds out why servers do not work.

use std::path::Path;
use std::time::Duration;

use mcpact_config::{ReadOutcome, inspect};
use mcpact_engine::client::{ClientTerms, EraMode};
use mcpact_engine::policy::Policy;
use mcpact_transport::stdio::child::{LaunchProblem, Masks};

use super::probe::client;
use super::{block_on, config_file};
use crate::args::DoctorArgs;
use crate::doctor::{Examination, Finding, Level, Subject, examine, files};
use crate::error::{CliError, Exit};
use crate::probe::{ProbeSettings, Scope};
use crate::report::{self, doctor};
use crate::target::{ResolvedTarget, TargetError, resolve, resolve_named};

pub(super) fn run(args: &DoctorArgs) -> Result<Exit, CliError> {
    let target = &args.target;
    let has_target = target.target.is_some() || !target.connect.command.is_empty();
    let all = match has_target {
        true => vec![block_on(one(args))?],
        false => {
            let file = config_file(target.connect.config.as_deref())?;
            block_on(whole_config(args, &file))?
        }
    };
    report::print(&match args.json {
        true => doctor::json(&all),
        false => doctor::text(&all),
    })?;
    let is_fine = |one: &Examination| {
        let count = one.count(Level::Problem) + one.count(Level::Warning);
        count == 0
    };
    Ok(match all.iter().all(is_fine) {
        true => Exit::Ok,
        false => Exit::Problems,
    })
}

/// Examines one target.
async fn one(args: &DoctorArgs) -> Result<Examination, CliError> {
    match resolve(&args.target).await {
        Ok(target) => examine_target(target, args).await,
        Err(error) if is_about_the_server(&error) => {
            let name = args.target.target.clone().unwrap_or_default();
            Ok(unusable(name, &error))
        }
        Err(error) => Err(error),
    }
}

/// Examines a config and each of its servers, one after the other.
async fn whole_config(args: &DoctorArgs, file: &Path) -> Result<Vec<Examination>, CliError> {
    let (source, outcome) = inspect(file)?;
    let mut all = vec![Examination {
        name: file.display().to_string(),
        starts: 0,
        findings: files::examine(file, &source, &outcome),
    }];
    for name in server_names(&outcome) {
        let resolved = resolve_named(Some(&name), &args.target.connect).await;
        all.push(match resolved {
            Ok(target) => examine_target(target, args).await?,
            Err(error @ (CliError::Target(_) | CliError::Approve { .. })) => unusable(name, &error),
            Err(error) => return Err(error),
        });
    }
    Ok(all)
}

/// Returns the enabled servers; none of an invalid config, whose problems are findings.
fn server_names(outcome: &ReadOutcome) -> Vec<String> {
    let Some(catalog) = &outcome.catalog else {
        return Vec::new();
    };
    catalog.served().keys().map(ToString::to_string).collect()
}

async fn examine_target(
    target: ResolvedTarget,
    args: &DoctorArgs,
) -> Result<Examination, CliError> {
    let (info, capabilities) = client(None)?;
    let mut terms = ClientTerms::new(info, capabilities, Policy::default());
    terms.mode = target.era;
    let settings = ProbeSettings {
        scope: match target.era {
            EraMode::Auto => Scope::Eras,
            _ => Scope::One,
        },
        terms,
        timeout: Duration::from_secs(args.timeout),
        masks: target.masks.clone(),
    };
    let configured = target.configured.as_ref();
    let name = configured.map(|server| &server.name);
    let mut found = examine(&target.target, target.label, name, &settings).await;
    let approval = configured.map(|server| match &server.gateway {
        Some(url) => Finding::ok(
            Subject::Program,
            format!("served by the running gateway at {url}"),
        ),
        None if args.target.connect.config.is_some() => {
            Finding::ok(Subject::Approval, "`--config` implies approval")
        }
        None => Finding::ok(Subject::Approval, "approved"),
    });
    found.findings.splice(0..0, approval);
    Ok(masked(found, &target.masks))
}

/// Masks secrets, which a server may repeat.
fn masked(mut found: Examination, masks: &Masks) -> Examination {
    for finding in &mut found.findings {
        finding.text = masks.cover(std::mem::take(&mut finding.text));
    }
    found
}

/// Returns whether an error is a finding about the server, not a mistake on the command line.
const fn is_about_the_server(error: &CliError) -> bool {
    matches!(
        error,
        CliError::Approve { .. }
            | CliError::Target(
                TargetError::NotApproved { .. }
                    | TargetError::Unusable { .. }
                    | TargetError::Settings { .. }
            )
    )
}

fn unusable(name: String, error: &CliError) -> Examination {
    let hint = || error.hints().into_iter().next().unwrap_or_default();
    let finding = match error {
        CliError::Approve { source, .. } => match LaunchProblem::of(source) {
            Some(problem) => {
                Finding::problem(Subject::Program, problem.to_string(), problem.remedy())
            }
            None => Finding::problem(
                Subject::Approval,
                format!("the approval cannot be checked: {source}"),
                "run `mcpact approve` to see what is wrong",
            ),
        },
        CliError::Target(TargetError::NotApproved { .. }) => {
            Finding::problem(Subject::Approval, error.to_string(), hint())
        }
        _ => Finding::problem(Subject::Config, error.to_string(), hint()),
    };
    Examination {
        name,
        starts: 0,
        findings: vec![finding],
    }
}
