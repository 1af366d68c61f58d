//! Servers that are not in the config any more, and the tasks that their clients ask after.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use bytestring::ByteString;
use mcpact::server::backend::Job;
use mcpact_engine::refusal::WireError;
use mcpact_spec::Method;
use mcpact_transport::stdio::child::Masks;

use super::guest::Guest;
use super::member::Member;
use super::view::PartView;
use super::{Hub, Roster, lock};
use crate::aggregate::rewrite::{Subject, subject, with_subject};
use crate::aggregate::tasks::place_of;
use crate::bridge::{Ear, Waiter};
use crate::error::{Trouble, UpstreamError};

/// How many are remembered.
const MOST: usize = 64;

/// The servers that have left, the latest first; their calls may still run.
#[derive(Debug, Default)]
pub(super) struct Departed(Mutex<VecDeque<Gone>>);

#[derive(Debug)]
struct Gone {
    name: Box<str>,
    member: Weak<Member>,
}

impl Departed {
    /// The servers are others than before.
    pub(super) fn note(&self, before: &Roster, after: &Roster) {
        let is_in = |roster: &Roster, name: &str| {
            let mut members = roster.members.iter();
            members.any(|member| *member.name == *name)
        };
        let mut gone = lock(&self.0);
        gone.retain(|gone| !is_in(after, &gone.name));
        for member in &before.members {
            if !is_in(after, &member.name) {
                gone.push_front(Gone {
                    name: member.name.clone(),
                    member: Arc::downgrade(member),
                });
            }
        }
        gone.truncate(MOST);
    }

    /// A server that has left; none inside if its calls are over, too.
    fn find(&self, name: &str) -> Option<Option<Arc<Member>>> {
        let gone = lock(&self.0);
        let gone = gone.iter().find(|gone| *gone.name == *name)?;
        Some(gone.member.upgrade())
    }
}

impl Hub {
    /// What is told of a task whose server has left: the gateway knows of those that it hosts itself, and every other
    /// one is lost.
    pub(super) async fn ask_departed(
        self: &Arc<Self>,
        job: &Job,
        method: Method,
        guest: &Guest,
        ear: &Ear,
    ) -> Option<Result<ByteString, WireError>> {
        let Subject::Task(task) = subject(method, &job.params) else {
            return None;
        };
        let (server, inner) = place_of(&task)?;
        let member = self.departed.find(server)?;
        if let Some(member) = member {
            let params = with_subject(method, &job.params, inner)?;
            let view = PartView::new(self, &member, &guest.watched);
            let ear = ear.clone().seeing(Arc::new(view.clone()));
            let job = Job {
                params: params.into(),
                ..job.clone()
            };
            if member.bridge.hosts(&job, &ear) {
                let told = member.bridge.about_hosted(&Waiter { job, ear }).await;
                return Some(told.map(|raw| view.result(method, raw)));
            }
        }
        let lost = UpstreamError {
            target: format!("`{server}`"),
            kind: Trouble::Ended,
            masks: Masks::default(),
        };
        Some(Err(lost.on_wire()))
    }
}
