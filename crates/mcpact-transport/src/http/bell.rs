//! Who is woken when a connection can go on.
//!
//! The parts of a connection wake each other while it is worked on: the body of a message wakes whoever
//! reads from the socket, and both belong to one task. A task that is woken while it runs is put at the
//! end of the queue, and another thread is called for help. The bell does not ring for those who are at
//! work already.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often in a row is looked what the ringing was about; whoever rings on is asked to wait.
const ROUNDS: usize = 16;

const RESTING: u8 = 0;
const WORKING: u8 = 1;
const RUNG: u8 = 2;

#[derive(Debug)]
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(RUNG, Ordering::AcqRel) == RESTING {
            self.task.wake();
        }
    }
}

/// The one who answers the bell.
#[derive(Debug)]
pub(in crate::http) struct Porter {
    bell: Arc<Bell>,
    waker: Waker,
}

impl Default for Porter {
    fn default() -> Self {
        let bell = Arc::new(Bell {
            state: AtomicU8::new(WORKING),
            task: AtomicWaker::new(),
        });
        let waker = Waker::from(Arc::clone(&bell));
        Self { bell, waker }
    }
}

impl Porter {
    /// Does the work, and again for as long as it rings meanwhile.
    pub(in crate::http) fn attend<T>(
        &self,
        context: &Context<'_>,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Bell { state, task } = &*self.bell;
        task.register(context.waker());
        for _ in 0..ROUNDS {
            state.store(WORKING, Ordering::Release);
            if let Poll::Ready(done) = work(&mut Context::from_waker(&self.waker)) {
                return Poll::Ready(done);
            }
            let rested =
                state.compare_exchange(WORKING, RESTING, Ordering::AcqRel, Ordering::Acquire);
            if rested.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A part of the work that is done only when it was called for itself: a connection looks after all of its
/// parts whenever one of them can go on.
#[derive(Debug)]
pub(in crate::http) struct Part {
    call: Arc<Call>,
    waker: Waker,
}

#[derive(Debug)]
struct Call {
    is_called: AtomicBool,
    whole: AtomicWaker,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_called.store(true, Ordering::Release);
        self.whole.wake();
    }
}

impl Default for Part {
    fn default() -> Self {
        let call = Arc::new(Call {
            is_called: AtomicBool::new(true),
            whole: AtomicWaker::new(),
        });
        let waker = Waker::from(Arc::clone(&call));
        Self { call, waker }
    }
}

impl Part {
    /// Does the work, if it was called or `must` be done; once it is done, other work may take its place.
    pub(in crate::http) fn attend<T>(
        &self,
        context: &Context<'_>,
        must: bool,
        work: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Call { is_called, whole } = &*self.call;
        whole.register(context.waker());
        if !is_called.swap(false, Ordering::AcqRel) && !must {
            return Poll::Pending;
        }
        let done = work(&mut Context::from_waker(&self.waker));
        if done.is_ready() {
            is_called.store(true, Ordering::Release);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_rings_only_for_those_who_rest() {
        let (porter, count) = (Porter::default(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let context = Context::from_waker(&task);
        let heard = || count.0.load(Ordering::Relaxed);
        let mut left = 3;
        let done = porter.attend(&context, |context| {
            context.waker().wake_by_ref();
            left -= 1;
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        assert_eq!((done, heard()), (Poll::Ready(()), 0), "at work");
        let mut kept = None;
        let rest = porter.attend(&context, |context| {
            kept = Some(context.waker().clone());
            Poll::<()>::Pending
        });
        assert!(rest.is_pending() && heard() == 0);
        let kept = kept.unwrap();
        kept.wake_by_ref();
        kept.wake_by_ref();
        assert_eq!(heard(), 1, "once is enough");
    }

    #[test]
    fn others_get_their_turn_while_it_rings_on() {
        let (porter, count) = (Porter::default(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let mut rounds = 0;
        let rest = porter.attend(&Context::from_waker(&task), |context| {
            rounds += 1;
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(rest.is_pending());
        assert_eq!((rounds, count.0.load(Ordering::Relaxed)), (ROUNDS, 1));
    }
    #[test]
    fn a_part_is_left_alone_until_it_is_called() {
        let (part, count) = (Part::default(), Arc::new(Count::default()));
        let whole = Waker::from(Arc::clone(&count));
        let context = Context::from_waker(&whole);
        let mut kept = None;
        let mut tries = 0;
        let mut attend = |must, done: Poll<()>| {
            part.attend(&context, must, |context| {
                tries += 1;
                kept = Some(context.waker().clone());
                done
            })
        };
        assert!(attend(false, Poll::Pending).is_pending());
        assert!(attend(false, Poll::Ready(())).is_pending(), "not called");
        assert!(attend(true, Poll::Pending).is_pending(), "it had to be");
        part.waker.wake_by_ref();
        assert!(attend(false, Poll::Ready(())).is_ready(), "called");
        assert!(attend(false, Poll::Pending).is_pending(), "the next work");
        assert_eq!((tries, count.0.load(Ordering::Relaxed)), (4, 1));
        kept.unwrap().wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }
}
