//! Calls that a legacy server ended because a URL must be visited first.
//!
//! 2025-11-25 ends the call with an error and expects it again; the modern era has no such error.
//! The client is asked to visit the URLs and carries a ticket: when it comes back with the user's
//! consent, the call is made again.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_engine::time::Moment;
use mcpact_spec::{Capability, ErrorCode, Method, Revision};
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter, elements};

use super::answer::{fits, is_accept};
use super::claims::{Binding, Kind, Reader, put_text, seconds, start};
use super::ending::{invalid_answers, invalid_state, missing_capabilities_error, unanswered_call};
use crate::shape::{ShapeError, adapt_params};
use crate::wire_error::wire_error;

/// The most URLs of one call, and the longest id of each: a state stays below a kilobyte.
const MOST: usize = 8;
const LONGEST_ID: usize = 64;

/// Content of the `requestState` of a call that will be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Caller that may repeat the call, and the call.
    pub binding: Binding,
    /// Seconds of the owner's clock after which the ticket is worthless.
    pub expires: u64,
    /// The server's ids of the elicitations, in the order of their keys.
    pub ids: Vec<Box<str>>,
}

impl Ticket {
    /// The plain bytes to seal.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = start(Kind::Ticket);
        self.binding.encode(&mut out);
        out.extend_from_slice(&self.expires.to_be_bytes());
        for id in &self.ids {
            put_text(&mut out, id);
        }
        out
    }

    /// Reads the bytes back; none when they are something else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader::open(bytes, Kind::Ticket)?;
        let binding = Binding::parse(&mut rest)?;
        let expires = u64::from_be_bytes(rest.take()?);
        let mut ids = Vec::new();
        while rest.end(()).is_none() {
            ids.push(rest.text()?);
        }
        Some(Self {
            binding,
            expires,
            ids,
        })
    }
}

/// Answer for a call that ended with "a URL must be visited".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlRequired {
    /// [`input_required`](super::input_required) with this ticket, sealed.
    Ask {
        /// The ticket to seal.
        ticket: Ticket,
        /// The raw `inputRequests`.
        input_requests: String,
    },
    /// An error; never the server's own.
    Fail(WireError),
}

/// Asks a modern client to visit the URLs that a legacy server's raw error names.
#[must_use]
pub fn url_required(
    raw: &str,
    binding: Binding,
    downstream: &Pact,
    ttl: Duration,
    now: Moment,
) -> UrlRequired {
    let to = downstream.revision();
    if !downstream.declares(Capability::ElicitationUrl) {
        return UrlRequired::Fail(missing_capabilities_error(
            &[Capability::ElicitationUrl],
            to,
        ));
    }
    match read(raw, to) {
        Ok((ids, input_requests)) => UrlRequired::Ask {
            ticket: Ticket {
                binding,
                expires: seconds(now.after(ttl)),
                ids,
            },
            input_requests,
        },
        Err(what) => {
            let text = format!("The server wants a URL to be visited, but {what}");
            UrlRequired::Fail(wire_error(ErrorCode::InternalError, text, to))
        }
    }
}

fn read(raw: &str, to: Revision) -> Result<(Vec<Box<str>>, String), &'static str> {
    let malformed = |_: ShapeError| "names it in no known way";
    let data = ErrorBody::parse(raw).and_then(|error| error.data);
    let data = Object::parse(data.unwrap_or("{}")).map_err(|fault| malformed(fault.into()))?;
    let listed = data.get_present("elicitations").unwrap_or("[]");
    let listed = elements(listed).map_err(|fault| malformed(fault.into()))?;
    if listed.is_empty() {
        return Err("names none");
    }
    if listed.len() > MOST {
        return Err("names too many");
    }
    let mut ids = Vec::new();
    let mut requests = ObjectWriter::new();
    for (raw, number) in listed.into_iter().zip(1..) {
        let params = adapt_params(Method::ElicitationCreate, raw, to).map_err(malformed)?;
        let request = ObjectWriter::new()
            .text("method", Method::ElicitationCreate.as_str())
            .raw("params", &params)
            .finish();
        requests = requests.raw(&key(number), &request);
        ids.push(id_of(raw)?);
    }
    Ok((ids, requests.finish()))
}

fn id_of(raw: &str) -> Result<Box<str>, &'static str> {
    let elicitation = Object::parse(raw).unwrap_or_default();
    match elicitation.get_str("elicitationId") {
        Some(id) if id.len() <= LONGEST_ID => Ok(id.into()),
        Some(_) => Err("its id is too long"),
        None => Err("it has no id"),
    }
}

fn key(number: usize) -> String {
    format!("url-{number}")
}

/// Outcome of a redeemed ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketOutcome {
    /// Nothing.
    Refused {
        /// Error for the client.
        error: WireError,
        /// Cause for the log.
        cause: &'static str,
    },
    /// The user did not agree; answer with this raw result.
    Answer(String),
    /// The user did not agree; answer with this error.
    Fail(WireError),
    /// Make the call again, and let the server say what is still to be done.
    Again,
    /// Make the call again when these elicitations are complete, or after a while anyway.
    Wait(Vec<Box<str>>),
}

/// Redeems a ticket of a client that speaks `to`; it was opened and is ours.
#[must_use]
pub fn redeem(
    ticket: Ticket,
    binding: &Binding,
    responses: Option<&str>,
    to: Revision,
    now: Moment,
) -> TicketOutcome {
    if ticket.binding != *binding {
        return refused("the state belongs to another caller or call");
    }
    if ticket.expires < seconds(now) {
        return refused("the state has expired");
    }
    let Ok(given) = Object::parse(responses.unwrap_or("{}")) else {
        return unfit("`inputResponses` is not an object");
    };
    let answers: Vec<&str> = (1..=ticket.ids.len())
        .filter_map(|number| given.get(&key(number)))
        .collect();
    if !answers
        .iter()
        .all(|raw| fits(Method::ElicitationCreate, raw))
    {
        return unfit("An answer in `inputResponses` does not fit its question");
    }
    if !answers.iter().all(|raw| is_accept(raw)) {
        return declined(binding.method, to);
    }
    if answers.len() < ticket.ids.len() {
        return TicketOutcome::Again;
    }
    TicketOutcome::Wait(ticket.ids)
}

fn declined(method: Method, to: Revision) -> TicketOutcome {
    let text = "The user did not agree to visit the URL that the server requires";
    unanswered_call(method, to, text, None).map_or_else(TicketOutcome::Fail, TicketOutcome::Answer)
}

fn refused(cause: &'static str) -> TicketOutcome {
    TicketOutcome::Refused {
        error: invalid_state(),
        cause,
    }
}

fn unfit(text: &str) -> TicketOutcome {
    TicketOutcome::Refused {
        error: invalid_answers(text),
        cause: "the answers do not fit the questions",
    }
}

/// The elicitations that a server called complete, as far back as there is room.
///
/// A user may be done before the client comes back with the ticket.
#[derive(Clone, Debug)]
pub struct Completions {
    recent: VecDeque<Box<str>>,
    limit: usize,
}

impl Completions {
    /// Room for this many.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            recent: VecDeque::new(),
            limit,
        }
    }

    /// Notes a completed elicitation. Ids that no ticket can have are not worth a place.
    pub fn note(&mut self, id: &str) {
        if id.len() > LONGEST_ID || self.recent.iter().any(|known| **known == *id) {
            return;
        }
        if self.recent.len() >= self.limit {
            self.recent.pop_front();
        }
        if self.limit > 0 {
            self.recent.push_back(Box::from(id));
        }
    }

    /// Returns whether all of these are complete.
    #[must_use]
    pub fn has_all(&self, ids: &[Box<str>]) -> bool {
        ids.iter().all(|id| self.recent.contains(id))
    }
}
