//! Filter for the tools of a server: the tools that its clients see and may call.

use crate::sync::lock;
use std::sync::Arc;

use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_config::ToolFilter;
use mcpact_engine::capability::CapabilityBits;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, ErrorCode, Method, Revision};
use mcpact_translate::input::missing_capabilities_error;
use mcpact_wire::raw::{Object, elements};

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::{edit, subject_key};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::refuse;
use crate::lists::server_list::ServerList;
use crate::meaning;
use crate::upstream::UpstreamServer;

/// Returns the tools hidden because their definition has changed.
pub(crate) fn hidden_tools(server: &UpstreamServer) -> Vec<String> {
    server.shared.pins.hidden()
}

/// Returns a notice about the hidden tools, if there are any.
pub(crate) fn withheld(server: &UpstreamServer) -> Option<String> {
    server.shared.pins.hidden_text()
}

/// Approves the current definitions of the tools. Returns the tools whose definition had changed.
pub(crate) fn approve_tools(server: &UpstreamServer) -> Vec<String> {
    let agreed = server.shared.pins.approve();
    if server.shared.pins.hides_changed() && !agreed.is_empty() {
        server.direct_clients.notify(Method::ToolsListChanged);
    }
    agreed
}

/// Returns a warning if the configured filter hides every tool because it names none of them.
pub(crate) fn unnamed(
    server: &UpstreamServer,
    kind: ListKind,
    listing: &ServerList,
) -> Option<String> {
    let count = listing.count();
    let hides_all =
        kind == ListKind::Tools && count > 0 && tools(server).misses_all(&listing.names());
    hides_all.then(|| format!("`tools` in the config names none of its {count} tools"))
}

fn tools(server: &UpstreamServer) -> Arc<ToolFilter> {
    Arc::clone(&lock(&server.tools))
}

fn serves_everything(server: &UpstreamServer) -> bool {
    tools(server).is_open() && !server.shared.pins.hides_changed()
}

/// Returns true if the parameters of these requests decide whether the server gets them: which tool is called, or whose
/// task it is.
pub(crate) fn judges(server: &UpstreamServer, method: Option<Method>) -> bool {
    match method {
        Some(Method::ToolsCall) => !serves_everything(server) || !tools(server).needs.is_empty(),
        // It names tasks, too.
        Some(Method::SubscriptionsListen) => true,
        Some(method) => subject_key(method) == Some("taskId"),
        None => false,
    }
}

/// Returns true if an item of the server is served.
pub(crate) fn serves(server: &UpstreamServer, kind: ListKind, name: &str) -> bool {
    kind != ListKind::Tools || (tools(server).admits(name) && !server.shared.pins.is_hidden(name))
}

/// Returns the capabilities that a tool needs and neither the client nor a default answer has.
pub(crate) fn lacking(
    server: &UpstreamServer,
    tool: &str,
    declared: CapabilityBits,
) -> Vec<Capability> {
    let able = declared.or(server.settings.default_answers.capabilities());
    tools(server).lacking(tool, able)
}

/// Refuses a call of a tool that needs capabilities which the client did not declare.
pub(crate) fn check_able(server: &UpstreamServer, job: &BackendRequest) -> Result<(), ServeError> {
    if job.method != Some(Method::ToolsCall) || tools(server).needs.is_empty() {
        return Ok(());
    }
    let params = Object::parse(&job.params).unwrap_or_default();
    let name = params.get_str("name").unwrap_or_default();
    let missing = lacking(server, &name, job.pact.effective());
    if missing.is_empty() {
        return Ok(());
    }
    let paths: Vec<String> = missing.iter().map(|row| format!("`{row}`")).collect();
    let paths = paths.join(", ");
    let error = WireError {
        message: format!("this tool needs {paths}, which this client did not declare"),
        ..missing_capabilities_error(&missing, job.pact.revision())
    };
    Err(error.into())
}

/// Refuses a call of a tool that is not served, as if it did not exist.
pub(crate) fn check_served(
    server: &UpstreamServer,
    method: Option<Method>,
    params: &str,
    client: Revision,
) -> Result<(), ServeError> {
    if method != Some(Method::ToolsCall) || serves_everything(server) {
        return Ok(());
    }
    let params = Object::parse(params).unwrap_or_default();
    let name = params.get_str("name").unwrap_or_default();
    if serves(server, ListKind::Tools, &name) {
        return Ok(());
    }
    let withheld = withheld(server).map(|withheld| format!("; {withheld}"));
    let withheld = withheld.unwrap_or_default();
    let why = format!("Unknown tool: `{name}`. `tools/list` returns the available tools{withheld}");
    Err(refuse(ErrorCode::InvalidParams, why, client))
}

/// Returns a page of tools without those that are not served to a client with these capabilities.
///
/// # Errors
/// The page is ambiguous: another reader may see tools in it that are not served.
pub(crate) fn served_only(
    server: &UpstreamServer,
    method: Option<Method>,
    declared: CapabilityBits,
    page: RawResult,
) -> Result<RawResult, ServeError> {
    let needs_nothing = tools(server).needs.is_empty();
    if method != Some(Method::ToolsList) || (serves_everything(server) && needs_nothing) {
        return Ok(page);
    }
    let metrics = server.settings.filters.metrics();
    let page = meaning::judged_result(metrics, method, page.into_text()).map_err(|found| {
        server
            .shared
            .error(UpstreamErrorKind::AmbiguousResult(found))
    })?;
    let is_served = |tool: &&str| {
        let tool = Object::parse(tool).unwrap_or_default();
        tool.get_str("name").is_some_and(|name| {
            serves(server, ListKind::Tools, &name) && lacking(server, &name, declared).is_empty()
        })
    };
    let filtered = edit(&page, ListKind::Tools.member(), |raw| {
        let served: Vec<&str> = elements(raw).ok()?.into_iter().filter(is_served).collect();
        Some(format!("[{}]", served.join(",")))
    });
    Ok(filtered.map_or(page, Into::into).into())
}
