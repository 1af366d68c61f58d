//! `mcpact explain`: two documents in, a pact or a refusal out, with reasons.

use std::path::Path;

use mcpact_engine::policy::{Policy, Profile, Reading};
use mcpact_spec::{Revision, Side};

use crate::args::Explain;
use crate::document::{Document, Source};
use crate::error::CliError;
use crate::exit::Exit;
use crate::explanation::{Explanation, Setting};
use crate::report::{self, Detail};

pub(super) fn run(args: &Explain) -> Result<Exit, CliError> {
    let setting = setting(args)?;
    let revision = revision(args)?;
    let client = source(args.client.as_deref());
    let server = source(args.server.as_deref());
    if client == Source::Stdin && server == Source::Stdin {
        return Err(CliError::StdinTwice);
    }
    let client = document(Side::Client, client, revision)?;
    let server = document(Side::Server, server, revision)?;
    let explanation = Explanation::new(client, server, setting);
    if args.json {
        report::print(&report::explain_json(&explanation))?;
    } else {
        report::print(&report::explain_text(&explanation, detail(args)))?;
        if args.client.is_none() && args.server.is_none() {
            report::hint("bundled examples; try `mcpact explain --client FILE --server FILE`");
        }
    }
    Ok(match explanation.pact() {
        Ok(_) => Exit::Ok,
        Err(_) => Exit::Refused,
    })
}

const fn detail(args: &Explain) -> Detail {
    if args.all {
        Detail::Every
    } else {
        Detail::Usual
    }
}

fn document(side: Side, source: Source, revision: Option<Revision>) -> Result<Document, CliError> {
    let document = Document::read(side, source)?;
    Ok(match revision {
        Some(revision) => document.speaking_only(revision),
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

fn revision(args: &Explain) -> Result<Option<Revision>, CliError> {
    let Some(given) = &args.revision else {
        return Ok(None);
    };
    match Revision::parse(given) {
        Some(revision) => Ok(Some(revision)),
        None => Err(CliError::UnknownRevision {
            given: given.clone(),
        }),
    }
}

fn setting(args: &Explain) -> Result<Setting, CliError> {
    let Some(profile) = Profile::parse(&args.profile) else {
        return Err(CliError::UnknownProfile {
            given: args.profile.clone(),
        });
    };
    let policy = profile.policy();
    let reading = if args.strict {
        Reading::Strict
    } else {
        policy.reading
    };
    Ok(Setting {
        profile,
        policy: Policy { reading, ..policy },
    })
}
