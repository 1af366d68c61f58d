//! What lies between two peers: messages under way, and what befalls them.

use std::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::Side;

use crate::seed::Seed;

/// Whether messages of one direction can overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A pipe: they arrive as they were sent.
    Fifo,
    /// Parallel POSTs: each takes its own time.
    Parallel,
}

/// What may befall messages; chances are per thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Whether messages can overtake each other.
    pub order: Order,
    /// The longest time that a message is under way.
    pub delay: Duration,
    /// How often a message arrives twice.
    pub twice: u16,
    /// How often a message does not arrive.
    pub lost: u16,
    /// The connection breaks after this many messages.
    pub breaks_after: Option<usize>,
}

impl Faults {
    /// A pipe that does what a pipe should.
    pub const NONE: Self = Self {
        order: Order::Fifo,
        delay: Duration::ZERO,
        twice: 0,
        lost: 0,
        breaks_after: None,
    };
}

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Who gets it.
    pub to: Side,
    /// The message.
    pub text: String,
    /// The status of the HTTP answer that carries it.
    pub http_status: Option<u16>,
    /// When it arrives.
    pub due: Moment,
}

/// Whether the connection holds after a message was put on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It does.
    Whole,
    /// It broke under this message.
    Broken,
}

/// Messages under way in both directions.
#[derive(Clone, Debug)]
pub struct Wire {
    faults: Faults,
    seed: Seed,
    under_way: Vec<Parcel>,
    carried: usize,
}

impl Wire {
    /// An empty wire on which these things happen, by this seed.
    #[must_use]
    pub const fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            seed: Seed::new(seed),
            under_way: Vec::new(),
            carried: 0,
        }
    }

    /// Sends a message on its way.
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
            self.under_way.push(Parcel {
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

    /// Holds back everything for one side until this moment.
    pub fn hold(&mut self, to: Side, until: Moment) {
        for parcel in self.under_way.iter_mut().filter(|p| p.to == to) {
            parcel.due = parcel.due.max(until);
        }
    }

    /// When the next message arrives.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        self.under_way.iter().map(|p| p.due).min()
    }

    /// The next message that has arrived, the earliest first.
    pub fn take(&mut self, now: Moment) -> Option<Parcel> {
        let at = (0..self.under_way.len()).min_by_key(|at| self.under_way[*at].due)?;
        (self.under_way[at].due <= now).then(|| self.under_way.remove(at))
    }

    /// Loses everything that is under way.
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
    fn a_pipe_keeps_the_order_and_parallel_posts_do_not() {
        let sent: Vec<_> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(arrivals(Order::Fifo), sent);
        let mut parallel = arrivals(Order::Parallel);
        assert_ne!(parallel, sent);
        parallel.sort_by_key(|n| n.parse::<u32>().unwrap());
        assert_eq!(parallel, sent);
    }

    #[test]
    fn losses_copies_and_breaks_follow_the_plan() {
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
