//! What a machine wants done, apart from what it was using while it said so.

use mcpact_engine::effect::Effect;
use mcpact_spec::Side;
use mcpact_wire::id::Id;

use crate::event::{Ended, Event};

/// Something to do.
#[derive(Debug)]
pub(super) enum Deed {
    /// Put this on the wire.
    Send {
        /// The message.
        text: String,
        /// The status of the HTTP answer that carries it.
        http_status: Option<u16>,
    },
    /// Hand this request to its owner.
    Serve {
        /// Its id.
        id: Id,
        /// Its method.
        method: String,
    },
    /// Close the connection.
    HangUp,
    /// Start the server anew.
    Respawn,
    /// Try the other transport.
    TryHttpSse,
}

/// Sorts effects into what was seen and what is to be done.
pub(super) struct Deeds;

impl Deeds {
    /// Writes down what was seen and gives what is to be done, in order.
    pub(super) fn gather<'a>(
        side: Side,
        effects: impl IntoIterator<Item = Effect<'a>>,
        events: &mut Vec<Event>,
    ) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for effect in effects {
            match effect {
                Effect::Write(text) => deeds.push(Deed::Send {
                    text,
                    http_status: None,
                }),
                Effect::Reply {
                    text, http_status, ..
                } => deeds.push(Deed::Send {
                    text,
                    http_status: Some(http_status),
                }),
                Effect::Serve(call) => {
                    let method = call.name.into_string();
                    events.push(Event::Served {
                        side,
                        id: call.id.clone(),
                        method: method.clone(),
                        params: call.params.raw.map(str::to_owned),
                        revision: call.pact.revision(),
                    });
                    deeds.push(Deed::Serve {
                        id: call.id,
                        method,
                    });
                }
                Effect::Observe(note) => events.push(Event::Observed {
                    side,
                    method: note.name.into_string(),
                }),
                Effect::Settled { id, method, end } => events.push(Event::Settled {
                    side,
                    id,
                    method: method.into_string(),
                    end: Ended::from(end),
                }),
                Effect::Concluded(pact) => events.push(Event::Concluded {
                    side,
                    revision: pact.revision(),
                }),
                Effect::Withheld(misuse) => events.push(Event::Withheld { side, misuse }),
                Effect::Dropped(drop) => events.push(Event::Dropped { side, drop }),
                Effect::Report { refusal, .. } => events.push(Event::Reported { side, refusal }),
                Effect::Remember(verdict) => events.push(Event::Remembered(verdict)),
                Effect::Abandon(id) => events.push(Event::Abandoned(id)),
                Effect::Respawn => deeds.push(Deed::Respawn),
                Effect::TryHttpSse => deeds.push(Deed::TryHttpSse),
                Effect::HangUp => deeds.push(Deed::HangUp),
                // For the log; every other effect is the same with and without it.
                Effect::Negotiated(_) => {}
            }
        }
        deeds
    }
}
