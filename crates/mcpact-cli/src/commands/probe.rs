//! `mcpact probe`: connects to a server and shows what is negotiated.

use std::path::Path;
use std::time::Duration;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::{ClientTerms, EraMode};
use mcpact_engine::policy::Policy;
use mcpact_gateway::Target;
use mcpact_spec::Side;
use mcpact_wire::model::implementation::Implementation;

use super::{block_on, revision};
use crate::args::ProbeArgs;
use crate::document::{Document, Source};
use crate::error::{CliError, Exit};
use crate::probe::{ProbeSettings, Scope, max_starts, probe};
use crate::report;
use crate::target::resolve;

/// Capabilities of the client if no document is given: those of most clients.
const CLIENT_CAPABILITIES: &str =
    r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

pub(super) fn run(args: &ProbeArgs) -> Result<Exit, CliError> {
    let pinned = args.revision.as_deref().map(revision).transpose()?;
    let (info, capabilities) = client(args.client_caps.as_deref())?;
    block_on(async {
        let target = resolve(&args.target).await?;
        if let Some(server) = &target.configured
            && server.gateway.is_some()
        {
            let name = &server.name;
            report::note(&format!(
                "`{name}` is probed through the running gateway, which translates; the revision of the server itself is in `mcpact status {name}`"
            ));
        }
        let mut terms = ClientTerms::new(info, capabilities, Policy::default());
        terms.mode = match (pinned, args.matrix) {
            (Some(revision), _) => EraMode::Pin(revision),
            (None, true) => EraMode::Auto,
            (None, false) => target.era,
        };
        let settings = ProbeSettings {
            scope: match (terms.mode, args.matrix) {
                (EraMode::Auto, true) => Scope::Matrix,
                (EraMode::Auto, false) => Scope::Eras,
                _ => Scope::One,
            },
            terms,
            timeout: Duration::from_secs(args.timeout),
            masks: target.masks.clone(),
        };
        if settings.scope == Scope::Matrix && matches!(target.target, Target::Command(_)) {
            let starts = max_starts(settings.scope);
            report::note(&format!(
                "`--matrix` starts the server up to {starts} times, one after the other"
            ));
        }
        let result = probe(&target.target, target.label, &settings).await;
        let text = if args.json {
            report::probe_json(&result)
        } else {
            report::probe_text(&result)
        };
        report::print(&target.masks.cover(text))?;
        Ok(result.exit())
    })
}

/// Returns name and capabilities of the client.
pub(super) fn client(file: Option<&Path>) -> Result<(Implementation, CapabilitySet), CliError> {
    let own = || Implementation::new("mcpact", env!("CARGO_PKG_VERSION"));
    let Some(file) = file else {
        let capabilities = CapabilitySet::lenient(Side::Client, Some(CLIENT_CAPABILITIES));
        return Ok((own(), capabilities));
    };
    let source = match file.as_os_str() == "-" {
        true => Source::Stdin,
        false => Source::File(file.to_owned()),
    };
    let document = Document::read(Side::Client, source)?;
    let capabilities = CapabilitySet::lenient(Side::Client, document.capabilities.as_deref());
    Ok((document.info.unwrap_or_else(own), capabilities))
}
