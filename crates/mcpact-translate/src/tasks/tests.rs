//! Properties of every history of a hosted task, whatever client and server do.

use std::collections::BTreeMap;
use std::string::String;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::pact::{Pact, Party};
use mcpact_engine::time::Moment;
use mcpact_spec::{Capability, Revision, Side};
use mcpact_wire::raw::Object;
use proptest::prelude::*;

use super::Status;
use super::hosted::{Action, HostLimits, HostedTasks, ResultLookup, Timestamp};
use crate::input::Outcome;

const STATES: [&str; 6] = [
    r#"{"status":"working"}"#,
    r#"{"status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}}}"#,
    r#"{"status":"completed","result":{"content":[]}}"#,
    r#"{"status":"failed","error":{"code":-32603,"message":"m"}}"#,
    r#"{"status":"cancelled"}"#,
    r#"{"status":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#,
];

#[derive(Clone, Copy, Debug)]
enum Event {
    Started,
    Polled(usize),
    Finished(bool),
    Waits(bool),
    Answered(bool),
    Result,
    Left(u64),
    Cancel,
    Expire(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Started),
        6 => (0..STATES.len()).prop_map(Event::Polled),
        1 => any::<bool>().prop_map(Event::Finished),
        1 => any::<bool>().prop_map(Event::Waits),
        2 => any::<bool>().prop_map(Event::Answered),
        4 => Just(Event::Result),
        1 => (0..9_u64).prop_map(Event::Left),
        1 => Just(Event::Cancel),
        1 => (0..40_u64).prop_map(Event::Expire),
    ]
}

/// A client and a server around one hosted task.
struct Rig {
    hosted: HostedTasks,
    client: Pact,
    seconds: u64,
    waiters: BTreeMap<u64, bool>,
    over: Option<String>,
    asked: Vec<String>,
}

impl Rig {
    fn new() -> Self {
        let party = |owner, rows: &[Capability]| Party {
            info: None,
            capabilities: Arc::new(CapabilitySet::declaring(owner, rows.iter().copied())),
        };
        let client = party(Side::Client, &[Capability::Elicitation]);
        let second = Duration::from_secs(1);
        let mut hosted = HostedTasks::new(HostLimits {
            tasks: 1,
            per_owner: 1,
            per_task: 3,
            longest: 30 * second,
            poll: second,
            page: 1,
        });
        hosted.create("t", "me".into(), None, at(0)).unwrap();
        Self {
            hosted,
            client: Pact::new(Revision::V2025_11_25, client, party(Side::Server, &[])),
            seconds: 0,
            waiters: BTreeMap::new(),
            over: None,
            asked: Vec::new(),
        }
    }

    fn step(&mut self, event: Event) {
        let now = at(self.seconds);
        let started = r#"{"taskId":"up","ttlMs":null}"#;
        let acts = match event {
            Event::Started => self.hosted.started("t", started),
            Event::Polled(state) => {
                let mut mint = String::new;
                self.hosted
                    .polled("t", STATES[state], &self.client, now, &mut mint)
            }
            Event::Finished(well) => {
                let outcome = if well {
                    Outcome::Result("{}".into())
                } else {
                    Outcome::Error("{}".into())
                };
                self.hosted.finished("t", outcome, now)
            }
            Event::Waits(for_input) => {
                let status = if for_input {
                    Status::InputRequired
                } else {
                    Status::Working
                };
                self.hosted.waits("t", status, now);
                Vec::new()
            }
            Event::Answered(well) => self.hosted.answered("t", "a", well.then_some("{}"), now),
            Event::Result => self.ask_for_the_result(),
            Event::Left(waiter) => {
                self.hosted.left(waiter);
                self.waiters.remove(&waiter);
                Vec::new()
            }
            Event::Cancel => match self.hosted.cancel("t", "me", now) {
                Ok((_, acts)) => acts,
                Err(_) => Vec::new(),
            },
            Event::Expire(seconds) => {
                self.seconds = self.seconds.max(seconds);
                self.hosted.expire(at(self.seconds).moment)
            }
        };
        self.perform(acts);
        self.watch();
    }

    fn ask_for_the_result(&mut self) -> Vec<Action> {
        let waiter = self.waiters.len() as u64 + 100 * self.seconds;
        if self.waiters.contains_key(&waiter) {
            return Vec::new();
        }
        match self.hosted.result("t", "me", waiter) {
            Ok(ResultLookup::Later(acts)) => {
                assert_eq!(self.over, None, "it is over");
                self.waiters.insert(waiter, false);
                acts
            }
            Ok(ResultLookup::Now(_)) | Err(_) => Vec::new(),
        }
    }

    fn perform(&mut self, acts: Vec<Action>) {
        for act in acts {
            match act {
                Action::Answer { waiter, .. } => {
                    let answered = self.waiters.get_mut(&waiter).expect("it waits");
                    assert!(!*answered, "answered once");
                    *answered = true;
                }
                Action::Ask { question, .. } => {
                    let key = String::from(&*question.key);
                    assert!(!self.asked.contains(&key), "asked once");
                    self.asked.push(key);
                }
                Action::Poll { .. } | Action::Update { .. } => {
                    assert_eq!(self.over, None, "nothing goes on after the end");
                }
                Action::Cancel { .. } => {}
            }
        }
    }

    /// An ended task stays as it is until it expires.
    fn watch(&mut self) {
        let Ok(task) = self.hosted.get("t", "me") else {
            return;
        };
        let task = Object::parse(&task).unwrap();
        let status = task.get_str("status").unwrap();
        if let Some(over) = &self.over {
            assert_eq!(*over, status);
        } else if Status::parse(&status).unwrap().is_terminal() {
            self.over = Some(status.into_owned());
            assert!(self.waiters.values().all(|answered| *answered));
        }
    }
}

fn at(seconds: u64) -> Timestamp<'static> {
    Timestamp {
        moment: Moment::at(Duration::from_secs(seconds)),
        stamp: "",
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_task_ends_once_and_everybody_hears_of_it(
        events in prop::collection::vec(event(), 0..40),
    ) {
        let mut rig = Rig::new();
        for event in events {
            rig.step(event);
        }
        rig.step(Event::Expire(99));
        prop_assert!(rig.waiters.values().all(|answered| *answered));
        prop_assert_eq!(rig.hosted.next_deadline(), None);
    }
}
