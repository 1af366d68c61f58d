//! `mcpact explain`: negotiates two documents and explains the result.

use std::path::Path;

use mcpact_engine::policy::{Policy, Profile, Reading};
use mcpact_spec::{Revision, Side};

use crate::args::ExplainArgs;
use crate::document::{Document, Source};
use crate::error::{CliError, Exit};
use crate::explanation::{Explanation, ServerPolicy};
use crate::report;

pub(super) fn run(args: &ExplainArgs) -> Result<Exit, CliError> {
    let policy = policy(args)?;
    let revision = revision(args)?;
    let client = source(args.client.as_deref());
    let server = source(args.server.as_deref());
    if client == Source::Stdin && server == Source::Stdin {
        return Err(CliError::StdinTwice);
    }
    let client = document(Side::Client, client, revision)?;
    let server = document(Side::Server, server, revision)?;
    let explanation = Explanation::new(client, server, policy);
    if args.json {
        report::print(&report::explain_json(&explanation))?;
    } else {
        report::print(&report::explain_text(&explanation, args.all))?;
        if args.client.is_none() && args.server.is_none() {
            report::hint("these are bundled examples; pass `--client FILE` and `--server FILE`");
        }
    }
    Ok(match explanation.pact() {
        Ok(_) => Exit::Ok,
        Err(_) => Exit::Refused,
    })
}

fn document(side: Side, source: Source, revision: Option<Revision>) -> Result<Document, CliError> {
    let document = Document::read(side, source)?;
    Ok(match revision {
        Some(revision) => document.limited_to(revision),
        None => document,
    })
}

fn source(file: Option<&Path>) -> Source {
    match file {
        None => Source::Example,
        Some(path) if path.as_os_str() == "-" => Source::Stdin,
        Some(path) => Source::File(path.to_owned()),
    }
}

fn revision(args: &ExplainArgs) -> Result<Option<Revision>, CliError> {
    args.revision.as_deref().map(super::revision).transpose()
}

fn policy(args: &ExplainArgs) -> Result<ServerPolicy, CliError> {
    let Some(profile) = Profile::parse(&args.profile) else {
        let known = Profile::ALL.map(Profile::as_str);
        return Err(CliError::unknown(
            "profile",
            &args.profile,
            "profiles",
            known,
        ));
    };
    let policy = profile.policy();
    let reading = if args.strict {
        Reading::Strict
    } else {
        policy.reading
    };
    Ok(ServerPolicy {
        profile,
        policy: Policy { reading, ..policy },
    })
}
