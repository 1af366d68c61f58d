//! Actions requested by a machine.

use mcpact_engine::effect::Effect;
use mcpact_spec::Side;
use mcpact_wire::id::Id;

use crate::event::{Ended, Event};

/// An action.
#[derive(Debug)]
pub(super) enum Action {
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
    /// Restart the server.
    Respawn,
    /// Try the HTTP+SSE transport.
    TryHttpSse,
}

/// Splits effects into events and actions.
pub(super) struct Actions;

impl Actions {
    /// Records events and returns the actions in order.
    pub(super) fn gather<'a>(
        side: Side,
        effects: impl IntoIterator<Item = Effect<'a>>,
        events: &mut Vec<Event>,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        for effect in effects {
            match effect {
                Effect::Write(text) => actions.push(Action::Send {
                    text,
                    http_status: None,
                }),
                Effect::Reply {
                    text, http_status, ..
                } => actions.push(Action::Send {
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
                    actions.push(Action::Serve {
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
                Effect::Respawn => actions.push(Action::Respawn),
                Effect::TryHttpSse => actions.push(Action::TryHttpSse),
                Effect::HangUp => actions.push(Action::HangUp),
                // For the log only.
                Effect::Negotiated(_) => {}
            }
        }
        actions
    }
}
