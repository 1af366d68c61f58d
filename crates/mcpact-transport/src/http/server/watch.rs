//! How long connections may wait for a request, without a timer for each request.
//!
//! A watch makes its rounds and counts them. A connection that begins to wait notes the count; whoever is
//! found in the same wait too many rounds later is hung up on. What a request costs is two notes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;

/// How many rounds there are in a time limit, which is kept to that part of it.
const ROUNDS: u64 = 8;

/// What stands for a round while a request is answered.
const BUSY: u64 = u64::MAX;

/// The watch over all connections of a server.
#[derive(Debug, Default)]
pub(super) struct Watch {
    round: AtomicU64,
    posts: Mutex<Posts>,
}

#[derive(Debug, Default)]
struct Posts {
    all: HashMap<u64, Arc<Post>>,
    last: u64,
    is_closing: bool,
}

/// What is known about one connection.
#[derive(Debug, Default)]
struct Post {
    /// The round in which it began to wait.
    since: AtomicU64,
    is_late: AtomicBool,
    is_closing: AtomicBool,
    connection: AtomicWaker,
}

/// A connection's own view of the watch, which forgets it when this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    watch: Arc<Watch>,
    post: Arc<Post>,
    number: u64,
}

/// What a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// To go on.
    Serve,
    /// To finish what it is doing.
    Finish,
    /// To end at once: nobody has said anything for too long.
    HangUp,
}

/// A request is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct Busy {
    watch: Arc<Watch>,
    post: Arc<Post>,
}

impl Watch {
    /// Makes rounds for ever; who waits longer than `limit` is hung up on.
    pub(super) async fn walk(self: Arc<Self>, limit: Duration) {
        let pause = limit.div_f64(ROUNDS as f64).max(Duration::from_millis(1));
        loop {
            tokio::time::sleep(pause).await;
            self.go_round();
        }
    }

    fn posts(&self) -> MutexGuard<'_, Posts> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_round(&self) {
        let round = self.round.fetch_add(1, Ordering::Relaxed) + 1;
        for post in self.posts().all.values() {
            let since = post.since.load(Ordering::Relaxed);
            // The round in which the wait began was not a whole one.
            if since != BUSY && round > since + ROUNDS {
                post.is_late.store(true, Ordering::Release);
                post.connection.wake();
            }
        }
    }

    /// A new connection, which waits for its first request.
    pub(super) fn over(self: &Arc<Self>) -> Watched {
        let mut posts = self.posts();
        let post = Arc::new(Post {
            since: AtomicU64::new(self.round.load(Ordering::Relaxed)),
            is_closing: AtomicBool::new(posts.is_closing),
            ..Post::default()
        });
        posts.last += 1;
        let number = posts.last;
        posts.all.insert(number, Arc::clone(&post));
        Watched {
            watch: Arc::clone(self),
            post,
            number,
        }
    }

    /// Lets every connection finish what it is doing, those that come late, too.
    pub(super) fn close(&self) {
        let mut posts = self.posts();
        posts.is_closing = true;
        for post in posts.all.values() {
            post.is_closing.store(true, Ordering::Release);
            post.connection.wake();
        }
    }
}

impl Watched {
    /// What to do; the task of `context` is woken when that changes.
    pub(super) fn order(&self, context: &Context<'_>) -> Order {
        self.post.connection.register(context.waker());
        if self.post.is_late.load(Ordering::Acquire) {
            Order::HangUp
        } else if self.is_closing() {
            Order::Finish
        } else {
            Order::Serve
        }
    }

    /// Whether the server stops, about which requests are not told one by one.
    pub(super) fn is_closing(&self) -> bool {
        self.post.is_closing.load(Ordering::Acquire)
    }

    /// A request has come.
    pub(super) fn busy(&self) -> Busy {
        self.post.since.store(BUSY, Ordering::Relaxed);
        Busy {
            watch: Arc::clone(&self.watch),
            post: Arc::clone(&self.post),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.posts().all.remove(&self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let round = self.watch.round.load(Ordering::Relaxed);
        self.post.since.store(round, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn order(watched: &Watched) -> Order {
        watched.order(&Context::from_waker(Waker::noop()))
    }

    /// T9: who waits for longer than the limit is hung up on, and nobody else: neither one that is being
    /// answered, however long that takes, nor one whose next wait has just begun.
    #[test]
    fn only_those_who_wait_too_long_are_hung_up_on() {
        let watch = Arc::new(Watch::default());
        let [silent, busy, lively] = [watch.over(), watch.over(), watch.over()];
        let answering = busy.busy();
        for _ in 0..=ROUNDS {
            assert_eq!(order(&silent), Order::Serve);
            watch.go_round();
            drop(lively.busy());
        }
        assert_eq!(order(&silent), Order::HangUp);
        assert_eq!(order(&busy), Order::Serve);
        assert_eq!(order(&lively), Order::Serve);
        drop(answering);
        (0..ROUNDS).for_each(|_| watch.go_round());
        assert_eq!(order(&busy), Order::Serve);
        watch.go_round();
        assert_eq!(order(&busy), Order::HangUp);
    }

    #[test]
    fn the_end_is_told_to_everybody_and_nobody_is_kept() {
        let watch = Arc::new(Watch::default());
        let early = watch.over();
        watch.close();
        let late = watch.over();
        assert_eq!([order(&early), order(&late)], [Order::Finish; 2]);
        drop((early, late));
        assert!(watch.posts().all.is_empty());
    }
}
