//! What clients call the tasks that run in an instance of a server.
//!
//! Instances know nothing of each other and give their tasks the same ids, which many of them count. So a name says
//! which instance is meant. Its mark nobody can guess from another name, and it shows whose the name is, also when the
//! instance is gone: nothing has to be remembered for that.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::aggregate::task_ids::{qualified_id, split_id};

/// What marks are made with, for as long as this process lives: servers come and go meanwhile.
static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut key = [0; 32];
    // ClientRef gets no randomness gets no server either: it seals what clients carry.
    let _ = getrandom::fill(&mut key);
    key
});

/// How much of a digest is a mark.
const MARK: usize = 8;

/// A task, as a name of it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskName<'n> {
    pub(crate) instance: &'n str,
    /// What it is called there.
    pub(crate) task: &'n str,
}

impl<'n> TaskName<'n> {
    /// The task that a name means, if the name was given to this owner.
    pub(crate) fn parse(name: &'n str, owner: &str) -> Option<Self> {
        let (place, task) = split_id(name)?;
        let (instance, given) = place.split_once('-')?;
        let named = Self { instance, task };
        // Digests are compared: how long that takes tells nothing of the mark.
        let is_given = Sha256::digest(given) == Sha256::digest(named.mark(owner));
        is_given.then_some(named)
    }

    /// Its name for this owner.
    pub(crate) fn shown(self, owner: &str) -> String {
        let place = format!("{}-{}", self.instance, self.mark(owner));
        qualified_id(&place, self.task)
    }

    fn mark(self, owner: &str) -> String {
        let mut inner = Sha256::new_with_prefix(*KEY);
        for part in [self.instance, owner, self.task] {
            inner.update(part.len().to_be_bytes());
            inner.update(part);
        }
        let outer = Sha256::new_with_prefix(*KEY).chain_update(inner.finalize());
        let digest = outer.finalize();
        let bytes = digest.iter().take(MARK);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_worth_something_to_whom_it_was_given_and_for_what() {
        let first = TaskName {
            instance: "1f",
            task: "t1",
        };
        let name = first.shown("ann");
        assert_eq!(TaskName::parse(&name, "ann"), Some(first));
        let second = TaskName {
            task: "t2",
            ..first
        };
        let elsewhere = TaskName {
            instance: "2f",
            ..first
        };
        let guessed = [
            name.replace("t1", "t2"),
            name.replace("1f-", "2f-"),
            String::from("1f:t1"),
            String::from("1f-:t1"),
            String::from("t1"),
        ];
        for guess in guessed {
            assert_eq!(TaskName::parse(&guess, "ann"), None, "{guess}");
        }
        for other in [second.shown("ann"), elsewhere.shown("ann"), first.shown("")] {
            assert_ne!(other, name);
        }
        assert_eq!(TaskName::parse(&name, "bob"), None);
    }

    #[test]
    fn whatever_a_server_calls_a_task_is_found_in_its_name() {
        for task in ["", "a:b", "a-b:c", "\u{e9}"] {
            let named = TaskName {
                instance: "1f",
                task,
            };
            let name = named.shown("");
            assert_eq!(TaskName::parse(&name, ""), Some(named), "{name}");
        }
    }
}
