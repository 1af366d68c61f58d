//! Everybody who comes by HTTP.

use std::fmt::Write;

use http::header::ALLOW;
use http::{HeaderName, Method as Verb};
use mcpact::server::Settings;
use mcpact::server::site::{Directed, Door, Reception};
use mcpact_config::{ServerName, listed, nearest, shortened};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method};
use mcpact_transport::http::server::{Answer, Arrival};
use mcpact_wire::codec;
use mcpact_wire::id::IdRef;
use mcpact_wire::raw::{ObjectWriter, member};
use mcpact_wire::scan::text;

use super::paths::{Wanted, tags, wanted};
use super::{Gateway, State};
use crate::hub::ABSENT;
use crate::stable::Reason;

/// Chooses one server at the address of all.
pub(super) const SERVER: HeaderName = HeaderName::from_static("mcpact-server");

/// Chooses servers by their tags at the address of all.
pub(super) const TAGS: HeaderName = HeaderName::from_static("mcpact-tags");

/// Tells to which session a legacy request belongs.
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

impl Reception for Gateway {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn direct(&self, arrival: &mut Arrival) -> Directed {
        let by_header = match chosen(arrival) {
            Ok(choice) => choice,
            Err(Unclear::Both) => {
                let why = "`Mcpact-Server` and `Mcpact-Tags` exclude each other\n";
                return Directed::Answer(Answer::text(400, why));
            }
            Err(Unclear::Server) => {
                let error = unclear_server(&self.state());
                return Directed::Answer(refused(&error, arrival));
            }
            Err(Unclear::Tags) => {
                let error = unclear_tags(&self.state());
                return Directed::Answer(refused(&error, arrival));
            }
        };
        let path = arrival.path.clone();
        let wanted = match (wanted(&path), &by_header) {
            (by_path, None) => by_path,
            (Wanted::All, Some(choice)) => choice.wanted(),
            (by_path, Some(choice)) if by_path == choice.wanted() => by_path,
            (_, Some(_)) => {
                let why =
                    "the path and the headers choose different servers; choose by one of them\n";
                return Directed::Answer(Answer::text(400, why));
            }
        };
        self.to(wanted, arrival)
    }

    fn stop(&self) {
        let state = self.state();
        // An answer that is on its way is let through; what does not end is cut off.
        let end = match self.turnstile.inside() {
            0 => Door::dismiss,
            _ => Door::close,
        };
        self.doors(&state).for_each(end);
    }

    fn cut_off(&self) {
        self.doors(&self.state()).for_each(Door::close);
    }
}

/// What the headers choose.
#[derive(Clone, Debug)]
enum Choice {
    Server(String),
    Tags(Vec<String>),
}

impl Choice {
    fn wanted(&self) -> Wanted<'_> {
        match self {
            Self::Server(name) => Wanted::Server(name.into()),
            Self::Tags(tags) => Wanted::Tagged(tags.clone()),
        }
    }
}

/// Headers that choose nothing that could be served: whoever sends them does not want everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unclear {
    Both,
    Server,
    Tags,
}

fn chosen(arrival: &Arrival) -> Result<Option<Choice>, Unclear> {
    let is_given = |name| arrival.headers.contains_key(name);
    match (is_given(&SERVER), is_given(&TAGS)) {
        (false, false) => Ok(None),
        (true, true) => Err(Unclear::Both),
        (true, false) => match texts(arrival, &SERVER).as_deref() {
            Some([name]) if !name.is_empty() => Ok(Some(Choice::Server((*name).to_owned()))),
            Some(_) | None => Err(Unclear::Server),
        },
        // A list may stand in several headers.
        (false, true) => match texts(arrival, &TAGS).map(|lists| tags(&lists.join(","))) {
            Some(tags) if !tags.is_empty() => Ok(Some(Choice::Tags(tags))),
            Some(_) | None => Err(Unclear::Tags),
        },
    }
}

/// What a header says, as often as it stands there; none if any of it is not ASCII.
fn texts<'a>(arrival: &'a Arrival, name: &HeaderName) -> Option<Vec<&'a str>> {
    let values = arrival.headers.get_all(name).iter();
    values
        .map(|value| value.to_str().ok().map(str::trim))
        .collect()
}

impl Gateway {
    fn to(&self, wanted: Wanted<'_>, arrival: &mut Arrival) -> Directed {
        let mut state = self.state();
        match wanted {
            Wanted::All => {
                let all = state.servers.values().map(|served| &served.member);
                self.through(&self.door, all, self.mark, arrival)
            }
            Wanted::Server(name) => match state.servers.get(&*name) {
                Some(served) => {
                    self.settings.path.clone_into(&mut arrival.path);
                    self.through(&served.door, [&served.member], None, arrival)
                }
                None => Directed::Answer(refused(&no_server(&state, &name), arrival)),
            },
            Wanted::Tagged(tags) => {
                // Whoever has a session stays, because the servers may come back.
                let stays = arrival.headers.contains_key(&SESSION_ID);
                let kept = state.selections.get(&tags).filter(|_| stays);
                let kept = kept.map(|selection| selection.door.clone());
                let is_empty = state.tagged(&tags).next().is_none();
                if kept.is_some() && is_empty && is_about_servers(arrival) {
                    let error = WireError {
                        // 404 would end the session.
                        http_status: 200,
                        ..no_tag(&state, &tags)
                    };
                    return Directed::Answer(refused(&error, arrival));
                }
                match kept.or_else(|| self.selection(&mut state, tags.clone())) {
                    Some(door) => {
                        self.settings.path.clone_into(&mut arrival.path);
                        self.through(&door, state.tagged(&tags), None, arrival)
                    }
                    None => Directed::Answer(refused(&no_tag(&state, &tags), arrival)),
                }
            }
            Wanted::Alive | Wanted::Ready | Wanted::Metrics if !is_reading(&arrival.verb) => {
                Directed::Answer(Answer::empty(405).with(ALLOW, "GET, HEAD"))
            }
            Wanted::Alive => Directed::Answer(Answer::text(200, "ok\n")),
            Wanted::Ready => Directed::Answer(self.readiness(&state)),
            Wanted::Metrics => Directed::Answer(self.metrics(&state)),
            Wanted::Nothing => Directed::Answer(Answer::text(
                404,
                "nothing here; all servers are at /mcp, one at /servers/NAME/mcp, those with a tag at /tags/TAG/mcp\n",
            )),
        }
    }
}

/// Whether a request is about what servers have: where there is none, a list would be empty without a word.
fn is_about_servers(arrival: &Arrival) -> bool {
    let body = std::str::from_utf8(&arrival.body).unwrap_or_default();
    let is_request = member(body, "id").is_some();
    let method = member(body, "method").and_then(text);
    let is_about_them = match method.as_deref().and_then(Method::parse) {
        // Of tasks the gateway may know something that their server has left behind.
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
    arrival.verb == Verb::POST && (is_about_them || is_batch)
}

fn is_reading(verb: &Verb) -> bool {
    matches!(*verb, Verb::GET | Verb::HEAD)
}

/// Refuses a request in the words of the protocol, which clients show.
pub(super) fn refused(error: &WireError, arrival: &Arrival) -> Answer {
    let body = std::str::from_utf8(&arrival.body).unwrap_or_default();
    let id = member(body, "id").and_then(IdRef::from_token);
    let text = match id {
        Some(id) => codec::error(Some(id), &error.encode()),
        None => codec::error_with_null_id(&error.encode()),
    };
    Answer::json(error.http_status, text)
}

fn not_there(reason: Reason, message: String, known: &[&str]) -> WireError {
    let data = ObjectWriter::new()
        .text("reason", reason.as_str())
        .texts("known", known.iter().copied());
    WireError {
        code: ErrorCode::InvalidRequest.code(),
        message,
        data: Some(data.finish()),
        http_status: 404,
    }
}

fn no_server(state: &State, name: &str) -> WireError {
    let names: Vec<&str> = state.servers.keys().map(ServerName::as_str).collect();
    if state.catalog.wrong.contains_key(name) {
        let message = format!("server `{name}` is not served: {ABSENT}");
        return not_there(Reason::ServerWrong, message, &names);
    }
    let mut text = format!("there is no server `{}`; ", shortened(name));
    if let Some(near) = nearest(name, &names) {
        let _ = write!(text, "did you mean `{near}`? ");
    }
    let _ = write!(text, "there are: {}", listed(name, &names));
    not_there(Reason::NoSuchServer, text, &names)
}

fn unclear_server(state: &State) -> WireError {
    let names: Vec<&str> = state.servers.keys().map(ServerName::as_str).collect();
    let there = listed("", &names);
    let text = format!("`Mcpact-Server` has to be one name, once and in ASCII; there are: {there}");
    WireError {
        http_status: 400,
        ..not_there(Reason::ServerUnclear, text, &names)
    }
}

fn unclear_tags(state: &State) -> WireError {
    let known = known_tags(state);
    let there = tags_there("", &known);
    let text = format!("`Mcpact-Tags` has to be tags with commas between, in ASCII; {there}");
    WireError {
        http_status: 400,
        ..not_there(Reason::TagsUnclear, text, &known)
    }
}

fn no_tag(state: &State, tags: &[String]) -> WireError {
    let known = known_tags(state);
    if state.tagged(tags).next().is_some() {
        let text = String::from(
            "too many different choices of tags are in use; ask for one that was used before, or for a server by its name",
        );
        return not_there(Reason::TooManyChoices, text, &known);
    }
    let wanted = tags.join(", ");
    let first = tags.first().map_or("", String::as_str);
    let there = tags_there(first, &known);
    let wanted = shortened(&wanted);
    let absent = absent(state);
    let text = format!("no server has all of these tags: {wanted}; {there}{absent}");
    not_there(Reason::NoSuchTag, text, &known)
}

/// The servers that may have the tag, because nobody can read what they have; nothing if there are none.
fn absent(state: &State) -> String {
    let names = state.catalog.wrong.keys();
    let all: Vec<String> = names.map(|name| format!("`{name}` ({ABSENT})")).collect();
    match all.as_slice() {
        [] => String::new(),
        all => format!("; missing servers: {}", all.join(", ")),
    }
}

/// Every tag that a server has.
fn known_tags(state: &State) -> Vec<&str> {
    let servers = state.servers.values();
    let tags = servers.flat_map(|served| served.member.tags());
    let mut known: Vec<&str> = tags.map(|tag| &**tag).collect();
    known.sort_unstable();
    known.dedup();
    known
}

fn tags_there(wanted: &str, known: &[&str]) -> String {
    match known {
        [] => String::from("no server has tags"),
        known => format!("there are the tags: {}", listed(wanted, known)),
    }
}
