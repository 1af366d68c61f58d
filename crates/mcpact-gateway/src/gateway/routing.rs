//! Routing of HTTP requests by path and headers.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use http::header::ALLOW;
use http::{HeaderName, Method as Verb};
use mcpact::server::Settings;
use mcpact::server::router::{HttpRoute, HttpRouter, RouteDecision};
use mcpact_config::{ServerName, ToolMode, listed, nearest, shortened};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use mcpact_wire::codec;
use mcpact_wire::id::IdRef;
use mcpact_wire::raw::{ObjectWriter, member};
use mcpact_wire::scan::text;
use percent_encoding::percent_decode_str;

use super::{Gateway, State, loop_check, metrics_page, readiness};
use crate::aggregate::aggregator::ABSENT;
use crate::reason::Reason;

/// Selects one server at `/mcp`.
pub(super) const SERVER: HeaderName = HeaderName::from_static("mcpact-server");

/// Selects servers by tags at `/mcp`.
pub(super) const TAGS: HeaderName = HeaderName::from_static("mcpact-tags");

/// Selects the listed tools at `/mcp` and `/tags/…`.
pub(super) const TOOLS: HeaderName = HeaderName::from_static("mcpact-tools");

/// Session of a legacy request.
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

impl HttpRouter for Gateway {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn route(&self, request: &mut HttpRequest) -> RouteDecision {
        match destination(self, request) {
            Ok(destination) => dispatch(self, destination, request),
            Err(response) => RouteDecision::Respond(response),
        }
    }

    fn stop(&self) {
        // Responses in flight are completed; everything else is cut off.
        let end = match self.drain_gate.in_flight() {
            0 => HttpRoute::close_streams,
            _ => HttpRoute::close,
        };
        self.routes(&self.state()).for_each(end);
    }

    fn cut_off(&self) {
        self.routes(&self.state()).for_each(HttpRoute::close);
    }
}

/// Returns the values of a header; none if one of them is not ASCII.
fn header_values<'a>(request: &'a HttpRequest, name: &HeaderName) -> Option<Vec<&'a str>> {
    let values = request.headers.get_all(name).iter();
    values
        .map(|value| value.to_str().ok().map(str::trim))
        .collect()
}

/// Destination of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// All servers, over any HTTP transport.
    All,
    /// One server.
    Server(String),
    /// Servers with all of these tags, which are sorted.
    Tagged(Vec<String>),
    /// Liveness check.
    Health,
    /// Readiness check.
    Readiness,
    /// Metrics.
    Metrics,
    /// Unknown path.
    Unknown,
}

/// Returns the destination of a path.
fn path_destination(path: &str) -> Destination {
    match path {
        "/mcp" | "/sse" | "/messages" | "/ws" => return Destination::All,
        "/healthz" => return Destination::Health,
        "/readyz" => return Destination::Readiness,
        "/metrics" => return Destination::Metrics,
        _ => {}
    }
    let inner = |start: &str| path.strip_prefix(start)?.strip_suffix("/mcp");
    if let Some(name) = inner("/servers/") {
        return Destination::Server(decoded(name).into_owned());
    }
    match inner("/tags/").map(|list| parse_tags(&decoded(list))) {
        Some(tags) if !tags.is_empty() => Destination::Tagged(tags),
        Some(_) | None => Destination::Unknown,
    }
}

/// Decodes percent-encoding; a part that is not UTF-8 stays unchanged.
fn decoded(part: &str) -> Cow<'_, str> {
    let decoded = percent_decode_str(part).decode_utf8();
    decoded.unwrap_or(Cow::Borrowed(part))
}

/// Parses a comma-separated list of tags; the result is sorted and without duplicates.
fn parse_tags(list: &str) -> Vec<String> {
    let tags = list.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let mut tags: Vec<String> = tags.map(str::to_owned).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Returns the destination of a request, or the response to invalid headers.
fn destination(gateway: &Gateway, request: &HttpRequest) -> Result<Destination, HttpResponse> {
    match (path_destination(&request.path), selected(gateway, request)?) {
        (by_path, None) => Ok(by_path),
        (Destination::All, Some(by_header)) => Ok(by_header),
        (by_path, Some(by_header)) if by_path == by_header => Ok(by_path),
        (_, Some(_)) => Err(HttpResponse::text(
            400,
            "path and headers select different servers; use only one of them\n",
        )),
    }
}

/// Returns the destination that the headers select.
fn selected(gateway: &Gateway, request: &HttpRequest) -> Result<Option<Destination>, HttpResponse> {
    let has = |name| request.headers.contains_key(name);
    match (has(&SERVER), has(&TAGS)) {
        (false, false) => Ok(None),
        (true, true) => Err(HttpResponse::text(
            400,
            "`Mcpact-Server` and `Mcpact-Tags` exclude each other\n",
        )),
        (true, false) => match header_values(request, &SERVER).as_deref() {
            Some([name]) if !name.is_empty() => Ok(Some(Destination::Server((*name).to_owned()))),
            Some(_) | None => Err(refused(&invalid_server(&gateway.state()), request)),
        },
        // A list may be split into several headers.
        (false, true) => {
            let lists = header_values(request, &TAGS);
            match lists.map(|lists| parse_tags(&lists.join(","))) {
                Some(tags) if !tags.is_empty() => Ok(Some(Destination::Tagged(tags))),
                Some(_) | None => Err(refused(&invalid_tags(&gateway.state()), request)),
            }
        }
    }
}

fn dispatch(
    gateway: &Gateway,
    destination: Destination,
    request: &mut HttpRequest,
) -> RouteDecision {
    let mut state = gateway.state();
    let requested = match requested_mode(request) {
        Ok(requested) => requested,
        Err(error) => return RouteDecision::Respond(refused(&error, request)),
    };
    let response = match destination {
        Destination::All => {
            let mode = tool_mode(gateway, &state, &[], requested, request);
            let route = gateway.selection(&mut state, (Vec::new(), mode));
            let route = route.unwrap_or_else(|| gateway.route.clone());
            let all = state.servers.values().map(|served| &served.entry);
            return loop_check::through(gateway, &route, all, true, request);
        }
        Destination::Server(_) if requested == Some(ToolMode::Search) => {
            let text = "a single server has its own list of tools; search works at `/mcp` and `/tags/TAG/mcp`";
            refused(
                &error(400, Reason::ToolsUnclear, String::from(text), &[]),
                request,
            )
        }
        Destination::Server(name) => match state.servers.get(name.as_str()) {
            Some(served) => {
                gateway.settings.path.clone_into(&mut request.path);
                let (route, entry) = (&served.route, &served.entry);
                return loop_check::through(gateway, route, [entry], false, request);
            }
            None => refused(&unknown_server(&state, &name), request),
        },
        Destination::Tagged(tags) => {
            // Sessions survive without servers, which a reload may add again.
            let has_session = request.headers.contains_key(&SESSION_ID);
            let mode = tool_mode(gateway, &state, &tags, requested, request);
            let selection = (tags.clone(), mode);
            let known = gateway.known_route(&state, &selection);
            let known = known.filter(|_| has_session).cloned();
            let is_empty = state.tagged(&tags).next().is_none();
            if known.is_some() && is_empty && needs_servers(request) {
                let error = WireError {
                    // 404 would end the session.
                    http_status: 200,
                    ..unknown_tags(&state, &tags)
                };
                return RouteDecision::Respond(refused(&error, request));
            }
            match known.or_else(|| gateway.selection(&mut state, selection)) {
                Some(route) => {
                    gateway.settings.path.clone_into(&mut request.path);
                    let tagged = state.tagged(&tags);
                    return loop_check::through(gateway, &route, tagged, false, request);
                }
                None => refused(&unknown_tags(&state, &tags), request),
            }
        }
        Destination::Health | Destination::Readiness | Destination::Metrics
            if !matches!(request.verb, Verb::GET | Verb::HEAD) =>
        {
            HttpResponse::empty(405).with(ALLOW, "GET, HEAD")
        }
        Destination::Health => HttpResponse::text(200, "ok\n"),
        Destination::Readiness => readiness::response(gateway, &state),
        Destination::Metrics => metrics_page::response(gateway, &state),
        Destination::Unknown => HttpResponse::text(
            404,
            "not found; all servers: /mcp, one server: /servers/NAME/mcp, servers with a tag: /tags/TAG/mcp\n",
        ),
    };
    RouteDecision::Respond(response)
}

fn query_values<'a>(request: &'a HttpRequest, key: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = request.query.iter().flat_map(|query| query.split('&'));
    pairs.filter_map(move |pair| pair.strip_prefix(key))
}

/// Returns the listed tools that header or URL select.
fn requested_mode(request: &HttpRequest) -> Result<Option<ToolMode>, WireError> {
    let headers = request.headers.get_all(&TOOLS).iter();
    let headers = headers.map(|value| value.to_str().unwrap_or_default());
    let queries = query_values(request, "tools=");
    let mut modes = headers.chain(queries).map(ToolMode::parse);
    let Some(first) = modes.next() else {
        return Ok(None);
    };
    if first.is_some() && modes.all(|other| other == first) {
        return Ok(first);
    }
    let known = ToolMode::ALL.map(ToolMode::as_str);
    let text = "`Mcpact-Tools` and `?tools=` must be `all` or `search`, and must not differ";
    let reason = Reason::ToolsUnclear;
    Err(error(400, reason, String::from(text), &known))
}

/// Returns the listed tools of a request: those of its session, else the requested ones, else those of the config.
fn tool_mode(
    gateway: &Gateway,
    state: &State,
    tags: &[String],
    requested: Option<ToolMode>,
    request: &HttpRequest,
) -> ToolMode {
    let in_query = || query_values(request, "sessionId=").next();
    let id = request.header(&SESSION_ID).or_else(in_query);
    let of_session = id.and_then(|id| {
        ToolMode::ALL.into_iter().find(|mode| {
            let route = gateway.known_route(state, &(tags.to_vec(), *mode));
            route.is_some_and(|route| route.has_session(id))
        })
    });
    let usual = || requested.unwrap_or(gateway.first.tools.mode);
    of_session.unwrap_or_else(usual)
}

/// Returns true if a request needs a server; without one a list would just be empty.
fn needs_servers(request: &HttpRequest) -> bool {
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let is_request = member(body, "id").is_some();
    let method = member(body, "method").and_then(text);
    let needs_servers = match method.as_deref().and_then(Method::parse) {
        // The gateway may know tasks of removed servers.
        Some(
            Method::Ping
            | Method::LoggingSetLevel
            | Method::ResourcesUnsubscribe
            | Method::TasksGet
            | Method::TasksResult
            | Method::TasksCancel
            | Method::TasksList,
        )
        | None => false,
        Some(_) => is_request,
    };
    let is_batch = body.trim_start().starts_with('[');
    request.verb == Verb::POST && (needs_servers || is_batch)
}

/// Returns a JSON-RPC error response to a request.
pub(super) fn refused(error: &WireError, request: &HttpRequest) -> HttpResponse {
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let id = member(body, "id").and_then(IdRef::from_token);
    let text = match id {
        Some(id) => codec::error(Some(id), &error.encode()),
        None => codec::error_with_null_id(&error.encode()),
    };
    HttpResponse::json(error.http_status, text)
}

fn error(http_status: u16, reason: Reason, message: String, known: &[&str]) -> WireError {
    let data = ObjectWriter::new()
        .text("reason", reason.as_str())
        .texts("known", known.iter().copied());
    WireError {
        code: ErrorCode::InvalidRequest.code(),
        message,
        data: Some(data.finish()),
        http_status,
    }
}

fn unknown_server(state: &State, name: &str) -> WireError {
    let names = server_names(state);
    if state.catalog.wrong.contains_key(name) {
        let message = format!("server `{name}` is not served: {ABSENT}");
        return error(404, Reason::ServerWrong, message, &names);
    }
    let mut text = format!("unknown server `{}`; ", shortened(name));
    if let Some(near) = nearest(name, &names) {
        let _ = write!(text, "did you mean `{near}`? ");
    }
    let _ = write!(text, "known servers: {}", listed(name, &names));
    error(404, Reason::NoSuchServer, text, &names)
}

fn invalid_server(state: &State) -> WireError {
    let names = server_names(state);
    let known = listed("", &names);
    let text = format!(
        "the header `Mcpact-Server` must have exactly one server name in ASCII; known servers: {known}"
    );
    error(400, Reason::ServerUnclear, text, &names)
}

fn invalid_tags(state: &State) -> WireError {
    let tags = known_tags(state);
    let known = list_tags("", &tags);
    let text = format!(
        "the header `Mcpact-Tags` must be a comma-separated list of tags in ASCII; {known}"
    );
    error(400, Reason::TagsUnclear, text, &tags)
}

fn unknown_tags(state: &State, tags: &[String]) -> WireError {
    let known = known_tags(state);
    if state.tagged(tags).next().is_some() {
        let text = String::from(
            "too many different combinations of tags are in use; use an existing one or select a server by name",
        );
        return error(404, Reason::TooManyChoices, text, &known);
    }
    let list = list_tags(tags.first().map_or("", String::as_str), &known);
    let tags = tags.join(", ");
    let tags = shortened(&tags);
    let mut text = format!("no server has all of these tags: {tags}; {list}");
    // Servers with an invalid config may have the tags.
    let mut before = "; missing servers: ";
    for name in state.catalog.wrong.keys() {
        let _ = write!(text, "{before}`{name}` ({ABSENT})");
        before = ", ";
    }
    error(404, Reason::NoSuchTag, text, &known)
}

fn server_names(state: &State) -> Vec<&str> {
    state.servers.keys().map(ServerName::as_str).collect()
}

fn known_tags(state: &State) -> Vec<&str> {
    let servers = state.servers.values();
    let tags = servers.flat_map(|served| served.entry.tags());
    let tags: BTreeSet<&str> = tags.map(|tag| &**tag).collect();
    tags.into_iter().collect()
}

fn list_tags(first: &str, known: &[&str]) -> String {
    match known {
        [] => String::from("no server has tags"),
        known => format!("known tags: {}", listed(first, known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The aggregated server, each server and each set of tags have their own path.
    #[test]
    fn paths_have_destinations() {
        let tagged =
            |tags: &[&str]| Destination::Tagged(tags.iter().map(|t| (*t).to_owned()).collect());
        let cells = [
            ("/mcp", Destination::All),
            ("/sse", Destination::All),
            ("/servers/files/mcp", Destination::Server("files".into())),
            ("/servers/%66iles/mcp", Destination::Server("files".into())),
            ("/servers/a%2/mcp", Destination::Server("a%2".into())),
            ("/servers/a%+1/mcp", Destination::Server("a%+1".into())),
            ("/servers/a%FF/mcp", Destination::Server("a%FF".into())),
            ("/tags/work%3Adev/mcp", tagged(&["work:dev"])),
            ("/tags/b%2ca/mcp", tagged(&["a", "b"])),
            ("/tags/b,a,b/mcp", tagged(&["a", "b"])),
            ("/tags/,/mcp", Destination::Unknown),
            ("/servers/files", Destination::Unknown),
            ("/healthz", Destination::Health),
            ("/readyz", Destination::Readiness),
            ("/metrics", Destination::Metrics),
            ("/", Destination::Unknown),
        ];
        for (path, expected) in cells {
            assert_eq!(path_destination(path), expected, "{path}");
        }
    }
}
