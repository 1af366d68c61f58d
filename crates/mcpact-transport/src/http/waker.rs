//! Wakers that avoid needless polls of a connection.
//!
//! The parts of a connection wake each other while it is polled: the body of a message wakes the socket reader, and
//! both belong to one tokio task. Waking a running task puts it at the end of the queue and wakes another worker
//! thread. These wakers suppress that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Maximum number of polls in a row; after that the task yields.
const MAX_POLLS: usize = 16;

const IDLE: u8 = 0;
const POLLING: u8 = 1;
const WOKEN: u8 = 2;

#[derive(Debug)]
struct State {
    phase: AtomicU8,
    task: AtomicWaker,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.phase.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

/// Polls a future again if it was woken while it was polled, without waking the task.
#[derive(Debug)]
pub(in crate::http) struct CoalescingWaker {
    state: Arc<State>,
    waker: Waker,
}

impl Default for CoalescingWaker {
    fn default() -> Self {
        let state = Arc::new(State {
            phase: AtomicU8::new(POLLING),
            task: AtomicWaker::new(),
        });
        let waker = Waker::from(Arc::clone(&state));
        Self { state, waker }
    }
}

impl CoalescingWaker {
    /// Polls `work`, and again as long as it was woken meanwhile.
    pub(in crate::http) fn poll<T>(
        &self,
        context: &Context<'_>,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let State { phase, task } = &*self.state;
        task.register(context.waker());
        for _ in 0..MAX_POLLS {
            phase.store(POLLING, Ordering::Release);
            if let Poll::Ready(done) = work(&mut Context::from_waker(&self.waker)) {
                return Poll::Ready(done);
            }
            let became_idle =
                phase.compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if became_idle.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Part of a connection that is polled only after its own wake. A connection polls all of its parts whenever one of
/// them was woken.
#[derive(Debug)]
pub(in crate::http) struct SubFuture {
    state: Arc<SubFutureState>,
    waker: Waker,
}

#[derive(Debug)]
struct SubFutureState {
    is_woken: AtomicBool,
    parent: AtomicWaker,
}

impl Wake for SubFutureState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.parent.wake();
    }
}

impl Default for SubFuture {
    fn default() -> Self {
        let state = Arc::new(SubFutureState {
            is_woken: AtomicBool::new(true),
            parent: AtomicWaker::new(),
        });
        let waker = Waker::from(Arc::clone(&state));
        Self { state, waker }
    }
}

impl SubFuture {
    /// Polls `work` if it was woken or if `forced`. Once it is ready, another future may take its place.
    pub(in crate::http) fn poll<T>(
        &self,
        context: &Context<'_>,
        forced: bool,
        work: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let SubFutureState { is_woken, parent } = &*self.state;
        parent.register(context.waker());
        if !is_woken.swap(false, Ordering::AcqRel) && !forced {
            return Poll::Pending;
        }
        let done = work(&mut Context::from_waker(&self.waker));
        if done.is_ready() {
            is_woken.store(true, Ordering::Release);
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
    fn wakes_the_task_only_while_it_is_idle() {
        let (coalescing, count) = (CoalescingWaker::default(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let context = Context::from_waker(&task);
        let heard = || count.0.load(Ordering::Relaxed);
        let mut left = 3;
        let done = coalescing.poll(&context, |context| {
            context.waker().wake_by_ref();
            left -= 1;
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        assert_eq!((done, heard()), (Poll::Ready(()), 0), "while polled");
        let mut kept = None;
        let rest = coalescing.poll(&context, |context| {
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
    fn yields_after_too_many_wakes_in_a_row() {
        let (coalescing, count) = (CoalescingWaker::default(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let mut rounds = 0;
        let rest = coalescing.poll(&Context::from_waker(&task), |context| {
            rounds += 1;
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(rest.is_pending());
        assert_eq!((rounds, count.0.load(Ordering::Relaxed)), (MAX_POLLS, 1));
    }

    #[test]
    fn is_polled_only_after_its_own_wake() {
        let (part, count) = (SubFuture::default(), Arc::new(Count::default()));
        let parent = Waker::from(Arc::clone(&count));
        let context = Context::from_waker(&parent);
        let mut kept = None;
        let mut tries = 0;
        let mut poll = |forced, done: Poll<()>| {
            part.poll(&context, forced, |context| {
                tries += 1;
                kept = Some(context.waker().clone());
                done
            })
        };
        assert!(poll(false, Poll::Pending).is_pending());
        assert!(poll(false, Poll::Ready(())).is_pending(), "not woken");
        assert!(poll(true, Poll::Pending).is_pending(), "forced");
        part.waker.wake_by_ref();
        assert!(poll(false, Poll::Ready(())).is_ready(), "woken");
        assert!(poll(false, Poll::Pending).is_pending(), "the next future");
        assert_eq!((tries, count.0.load(Ordering::Relaxed)), (4, 1));
        kept.unwrap().wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }
}
