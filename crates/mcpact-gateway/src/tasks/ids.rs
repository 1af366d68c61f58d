//! Task ids for clients of a server with several instances.
//!
//! Instances are independent and often number their tasks, so ids repeat between instances. The public id therefore
//! contains the instance. It also contains an authentication code that cannot be derived from other ids and binds the
//! id to its owner. It stays verifiable without stored state, even after the instance has ended.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::aggregate::task_ids::{qualified_id, split_id};

/// Key of the authentication codes. It lives as long as the process, because servers may be added and removed.
static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut key = [0; 32];
    // Without randomness no server starts either, because sealing of client state needs it, too.
    let _ = getrandom::fill(&mut key);
    key
});

/// Number of digest bytes in an authentication code.
const MARK: usize = 8;

/// Parsed public task id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskName<'n> {
    pub(crate) instance: &'n str,
    /// Task id at the instance.
    pub(crate) task: &'n str,
}

impl<'n> TaskName<'n> {
    /// Parses a public id; `None` if it was not issued to this owner.
    pub(crate) fn parse(name: &'n str, owner: &str) -> Option<Self> {
        let (place, task) = split_id(name)?;
        let (instance, given) = place.split_once('-')?;
        let named = Self { instance, task };
        // Comparing digests makes the timing independent of the authentication code.
        let is_given = Sha256::digest(given) == Sha256::digest(named.mark(owner));
        is_given.then_some(named)
    }

    /// Returns the public id for this owner.
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
