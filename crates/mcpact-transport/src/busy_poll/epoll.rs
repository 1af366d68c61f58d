//! Busy polling with epoll.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::thread::sched_yield;
use tokio::runtime::Builder;

/// Longest time a worker spins before it parks.
const SPIN_LIMIT: Duration = Duration::from_micros(50);

/// Largest write in bytes after which a worker spins. Larger messages keep several processes busy at once, and a
/// spinning worker would take a core from them.
const SMALL: usize = 16 * 1024;

/// All watched sockets and pipes. Closed ones are removed by the kernel.
static EPOLL: OnceLock<OwnedFd> = OnceLock::new();

/// Number of active workers that have parked before.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// Messages a worker has sent since it last parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Nothing,
    OneSmall,
    /// Several messages, or a large one.
    More,
}

thread_local! {
    static HAS_PARKED: Cell<bool> = const { Cell::new(false) };
    static SENT: Cell<Sent> = const { Cell::new(Sent::Nothing) };
}

/// Enables busy polling for the workers of a runtime, if the system provides epoll.
pub fn enable(runtime: &mut Builder) -> &mut Builder {
    if let Ok(epoll) = epoll::create(epoll::CreateFlags::CLOEXEC) {
        let _ = EPOLL.set(epoll);
    }
    runtime.on_thread_park(on_park).on_thread_unpark(on_unpark)
}

/// Watches a socket or pipe for input, if busy polling is enabled.
pub(crate) fn watch(source: &impl AsFd) {
    if let Some(epoll) = EPOLL.get() {
        add(epoll, source);
    }
}

/// Adds a source, level-triggered: unread input ends every spin at once. On failure the source only wakes its worker
/// as usual.
fn add(epoll: &OwnedFd, source: &impl AsFd) {
    let _ = epoll::add(
        epoll,
        source,
        epoll::EventData::new_u64(0),
        epoll::EventFlags::IN,
    );
}

/// Records a write that may be answered.
pub(crate) fn note_sent(bytes: usize) {
    let is_first = SENT.get() == Sent::Nothing;
    SENT.set(if is_first && bytes <= SMALL {
        Sent::OneSmall
    } else {
        Sent::More
    });
}

fn on_unpark() {
    ACTIVE.fetch_add(1, Ordering::Relaxed);
}

fn on_park() {
    if HAS_PARKED.replace(true) {
        ACTIVE.fetch_sub(1, Ordering::Relaxed);
    }
    if SENT.replace(Sent::Nothing) == Sent::OneSmall
        && let Some(epoll) = EPOLL.get()
    {
        spin(epoll);
    }
}

/// Polls until input arrives, another worker is active, or the time is up.
fn spin(epoll: &OwnedFd) {
    let end = Instant::now() + SPIN_LIMIT;
    while ACTIVE.load(Ordering::Relaxed) == 0 && is_empty(epoll) && Instant::now() < end {
        // Lets the peer run if it shares this core.
        sched_yield();
    }
}

fn is_empty(epoll: &OwnedFd) -> bool {
    const NOW: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut events = [MaybeUninit::<epoll::Event>::uninit(); 1];
    epoll::wait(epoll, &mut events[..], Some(&NOW)).is_ok_and(|(events, _)| events.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn unread_input_is_reported_until_it_is_read_or_closed() {
        let epoll = &epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        add(epoll, &near);
        assert!(is_empty(epoll));
        far.write_all(b"!").unwrap();
        assert!(!is_empty(epoll));
        assert!(!is_empty(epoll), "still unread");
        near.read_exact(&mut [0]).unwrap();
        assert!(is_empty(epoll));
        far.write_all(b"!").unwrap();
        drop(near);
        assert!(is_empty(epoll), "closed sources are removed");
    }

    /// Only one small message makes a worker spin, and only once.
    #[test]
    fn only_one_small_message_makes_a_worker_spin() {
        for (writes, sent) in [
            (&[][..], Sent::Nothing),
            (&[10], Sent::OneSmall),
            (&[SMALL], Sent::OneSmall),
            (&[SMALL + 1], Sent::More),
            (&[10, 10], Sent::More),
            (&[SMALL + 1, 10], Sent::More),
        ] {
            writes.iter().for_each(|bytes| note_sent(*bytes));
            assert_eq!(SENT.get(), sent, "{writes:?}");
            on_park();
            assert_eq!(SENT.get(), Sent::Nothing, "{writes:?}");
            on_unpark();
        }
    }

    #[test]
    fn a_runtime_with_busy_polling_parks_and_wakes_up() {
        let mut runtime = Builder::new_multi_thread();
        let runtime = enable(runtime.worker_threads(2).enable_all())
            .build()
            .unwrap();
        let received = runtime.block_on(async {
            let (mut near, mut far) = tokio::net::UnixStream::pair().unwrap();
            watch(&near);
            note_sent(0);
            let reader = tokio::spawn(async move {
                use tokio::io::AsyncReadExt as _;
                let mut received = String::new();
                near.read_to_string(&mut received).await.map(|_| received)
            });
            for word in ["one", "two"] {
                use tokio::io::AsyncWriteExt as _;
                tokio::time::sleep(Duration::from_millis(5)).await;
                far.write_all(word.as_bytes()).await.unwrap();
                note_sent(word.len());
            }
            drop(far);
            reader.await.unwrap().unwrap()
        });
        assert_eq!(received, "onetwo");
    }
}
