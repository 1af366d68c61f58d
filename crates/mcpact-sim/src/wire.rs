//! Simulated wire: messages in transit, and faults.

use std::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::Side;

use crate::seed::Seed;

/// Order of messages in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A pipe: in order.
    Fifo,
    /// Parallel POSTs: any order.
    Parallel,
}

/// Faults of a wire; probabilities are per mille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Order of messages.
    pub order: Order,
    /// Maximum delay of a message.
    pub delay: Duration,
    /// Probability of duplication.
    pub twice: u16,
    /// Probability of loss.
    pub lost: u16,
    /// Number of messages after which the connection breaks.
    pub breaks_after: Option<usize>,
}

impl Faults {
    /// A reliable pipe.
    pub const NONE: Self = Self {
        order: Order::Fifo,
        delay: Duration::ZERO,
        twice: 0,
        lost: 0,
        breaks_after: None,
    };
}

/// A message in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTransit {
    /// Receiver.
    pub to: Side,
    /// The message.
    pub text: String,
    /// HTTP status that carries it.
    pub http_status: Option<u16>,
    /// Time of arrival.
    pub due: Moment,
}

/// State of the connection after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Open.
    Whole,
    /// Broken by this message.
    Broken,
}

/// Messages in transit in both directions.
#[derive(Clone, Debug)]
pub struct Wire {
    faults: Faults,
    seed: Seed,
    under_way: Vec<InTransit>,
    carried: usize,
}

impl Wire {
    /// Creates a wire with these faults.
    #[must_use]
    pub const fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            seed: Seed::new(seed),
            under_way: Vec::new(),
            carried: 0,
        }
    }

    /// Sends a message.
    pub fn put(
        &mut self,
        from: Side,
        text: &str,
        http_status: Option<u16>,
        now: Moment,
    ) -> Condition {
        self.carried += 1;
        if self
            .faults
            .breaks_after
            .is_some_and(|limit| self.carried > limit)
        {
            self.faults.breaks_after = None;
            return Condition::Broken;
        }
        let copies = if self.seed.happens(self.faults.lost) {
            0
        } else if self.seed.happens(self.faults.twice) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let due = self.arrival(from.peer(), now);
            self.under_way.push(InTransit {
                to: from.peer(),
                text: text.to_owned(),
                http_status,
                due,
            });
        }
        Condition::Whole
    }

    fn arrival(&mut self, to: Side, now: Moment) -> Moment {
        let longest = u64::try_from(self.faults.delay.as_millis()).unwrap_or(u64::MAX);
        let own = now.after(Duration::from_millis(
            self.seed.below(longest.saturating_add(1)),
        ));
        match self.faults.order {
            Order::Parallel => own,
            Order::Fifo => {
                let before = self.under_way.iter().filter(|p| p.to == to).map(|p| p.due);
                before.chain([own]).max().unwrap_or(own)
            }
        }
    }

    /// Delays everything for one side until this moment.
    pub fn hold(&mut self, to: Side, until: Moment) {
        for message in self.under_way.iter_mut().filter(|p| p.to == to) {
            message.due = message.due.max(until);
        }
    }

    /// Arrival time of the next message.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        self.under_way.iter().map(|p| p.due).min()
    }

    /// Takes the earliest message that has arrived.
    pub fn take(&mut self, now: Moment) -> Option<InTransit> {
        let at = (0..self.under_way.len()).min_by_key(|at| self.under_way[*at].due)?;
        (self.under_way[at].due <= now).then(|| self.under_way.remove(at))
    }

    /// Drops everything in transit.
    pub fn cut(&mut self) {
        self.under_way.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(order: Order) -> Vec<String> {
        let faults = Faults {
            order,
            delay: Duration::from_millis(50),
            ..Faults::NONE
        };
        let mut wire = Wire::new(faults, 7);
        for n in 0..20 {
            let _ = wire.put(Side::Client, &n.to_string(), None, Moment::ZERO);
        }
        let end = Moment::at(Duration::from_secs(1));
        core::iter::from_fn(|| wire.take(end))
            .map(|p| p.text)
            .collect()
    }

    #[test]
    fn only_pipes_keep_the_order() {
        let sent: Vec<_> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(arrivals(Order::Fifo), sent);
        let mut parallel = arrivals(Order::Parallel);
        assert_ne!(parallel, sent);
        parallel.sort_by_key(|n| n.parse::<u32>().unwrap());
        assert_eq!(parallel, sent);
    }

    #[test]
    fn faults_follow_their_settings() {
        let mut lossy = Wire::new(
            Faults {
                lost: 1000,
                breaks_after: Some(1),
                ..Faults::NONE
            },
            1,
        );
        assert_eq!(
            lossy.put(Side::Client, "a", None, Moment::ZERO),
            Condition::Whole
        );
        assert_eq!(lossy.take(Moment::ZERO), None);
        assert_eq!(
            lossy.put(Side::Client, "b", None, Moment::ZERO),
            Condition::Broken
        );
        let mut twice = Wire::new(
            Faults {
                twice: 1000,
                ..Faults::NONE
            },
            1,
        );
        let _ = twice.put(Side::Server, "a", None, Moment::ZERO);
        assert!(
            twice
                .take(Moment::ZERO)
                .is_some_and(|p| p.to == Side::Client)
        );
        assert!(twice.take(Moment::ZERO).is_some());
        assert_eq!(twice.take(Moment::ZERO), None);
    }
}
