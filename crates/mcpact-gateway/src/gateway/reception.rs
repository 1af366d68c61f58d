//! Everybody who comes by HTTP.

use std::fmt::Write;

use http::header::ALLOW;
use http::{HeaderName, Method as Verb};
use mcpact::server::Settings;
use mcpact::server::site::{Directed, Door, Reception};
use mcpact_transport::http::server::{Answer, Arrival};

use super::paths::{Wanted, tags, wanted};
use super::{Gateway, State};
use crate::catalog::ServerName;
use crate::nearest::{listed, nearest, shortened};

/// Chooses one server at the address of all.
const SERVER: HeaderName = HeaderName::from_static("mcpact-server");

/// Chooses servers by their tags at the address of all.
const TAGS: HeaderName = HeaderName::from_static("mcpact-tags");

impl Reception for Gateway {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn direct(&self, arrival: &mut Arrival) -> Directed {
        let by_header = match chosen(arrival) {
            Ok(choice) => choice,
            Err(answer) => return Directed::Answer(answer),
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
            0 => Door::rest,
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
            Self::Server(name) => Wanted::Server(name),
            Self::Tags(tags) => Wanted::Tagged(tags.clone()),
        }
    }
}

fn chosen(arrival: &Arrival) -> Result<Option<Choice>, Answer> {
    match (arrival.header(SERVER), arrival.header(TAGS)) {
        (None, None) => Ok(None),
        (Some(name), None) => Ok(Some(Choice::Server(name.trim().to_owned()))),
        (None, Some(list)) => Ok(Some(Choice::Tags(tags(list)))),
        (Some(_), Some(_)) => Err(Answer::text(
            400,
            "`Mcpact-Server` and `Mcpact-Tags` exclude each other\n",
        )),
    }
}

impl Gateway {
    fn to(&self, wanted: Wanted<'_>, arrival: &mut Arrival) -> Directed {
        let mut state = self.state();
        match wanted {
            Wanted::All => Directed::To(self.door.clone()),
            Wanted::Server(name) => match state.servers.get(name) {
                Some(served) => {
                    self.settings.path.clone_into(&mut arrival.path);
                    Directed::To(served.door.clone())
                }
                None => Directed::Answer(no_server(&state, name)),
            },
            Wanted::Tagged(tags) => match self.selection(&mut state, tags.clone()) {
                Some(door) => {
                    self.settings.path.clone_into(&mut arrival.path);
                    Directed::To(door)
                }
                None => Directed::Answer(no_tag(&state, &tags)),
            },
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

fn is_reading(verb: &Verb) -> bool {
    matches!(*verb, Verb::GET | Verb::HEAD)
}

fn no_server(state: &State, name: &str) -> Answer {
    let names: Vec<&str> = state.servers.keys().map(ServerName::as_str).collect();
    let mut text = format!("there is no server `{}`; ", shortened(name));
    if let Some(near) = nearest(name, &names) {
        let _ = write!(text, "did you mean `{near}`? ");
    }
    let _ = writeln!(text, "there are: {}", listed(name, &names));
    Answer::text(404, text)
}

fn no_tag(state: &State, tags: &[String]) -> Answer {
    let mut known: Vec<&str> = state
        .servers
        .values()
        .flat_map(|served| served.member.tags())
        .map(|tag| &**tag)
        .collect();
    known.sort_unstable();
    known.dedup();
    let wanted = tags.join(", ");
    let first = tags.first().map_or("", String::as_str);
    let there = match known.as_slice() {
        [] => String::from("no server has tags"),
        known => format!("there are the tags: {}", listed(first, known)),
    };
    let wanted = shortened(&wanted);
    let text = format!("no server has all of these tags: {wanted}; {there}\n");
    Answer::text(404, text)
}
