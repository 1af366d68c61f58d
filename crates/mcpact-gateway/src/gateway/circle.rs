//! A gateway does not serve whoever serves it.

use std::sync::Arc;

use http::Method as Verb;
use mcpact::server::backend::date;
use mcpact::server::site::{Directed, Door};
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;
use mcpact_transport::http::server::Arrival;
use mcpact_wire::raw::ObjectWriter;

use super::Gateway;
use super::reception::refused;
use crate::chronicle::EntryKind;
use crate::circle::{Asking, LOOP, Mark, Marks};
use crate::hub::Member;
use crate::stable::{LogEvent, Reason};

const EVENT: &str = LogEvent::ServersInACircle.as_str();

/// Why it is refused, and what helps.
const WHY: &str = "this gateway serves the one that asks, directly or by way of others, or is that very one, and what it \
                   serves would go round in a circle; take one out of the config of the other, or let `url` lead to a \
                   single server (`/servers/NAME/mcp`) that does not lead back";

impl Gateway {
    /// Lets a request through the door behind which these servers are, unless it would come back to one of them; `all`
    /// where those are that come later, too.
    pub(super) fn through<'m>(
        &self,
        door: &Door,
        members: impl IntoIterator<Item = &'m Arc<Member>>,
        all: Option<Mark>,
        arrival: &Arrival,
    ) -> Directed {
        let Some(marks) = Marks::of(&arrival.headers) else {
            return Directed::To(door.clone());
        };
        let members = members.into_iter();
        let roads: Vec<_> = members
            .filter_map(|member| member.bridge().road().cloned())
            .collect();
        // Whoever only takes leave goes nowhere.
        let goes_on = arrival.verb != Verb::DELETE;
        if goes_on && roads.iter().any(|road| road.closes_circle(&marks)) {
            self.tell_of_circle();
            return Directed::Answer(refused(&circle(), arrival));
        }
        Directed::Attended(door.clone(), Box::new(Asking::new(roads, marks, all)))
    }

    /// Whoever asks tells its own people; these are ours.
    fn tell_of_circle(&self) {
        tracing::warn!(
            event = EVENT,
            why = WHY,
            "proxy loop detected; request refused"
        );
        let text = format!("proxy loop detected; request refused: {WHY}");
        let journal = self.chronicle.own_journal();
        journal.write(date(), None, EntryKind::Event(EVENT), &text);
    }
}

fn circle() -> WireError {
    let data = ObjectWriter::new().text("reason", Reason::ServersInACircle.as_str());
    WireError {
        code: ErrorCode::InvalidRequest.code(),
        message: String::from(WHY),
        data: Some(data.finish()),
        http_status: LOOP,
    }
}
