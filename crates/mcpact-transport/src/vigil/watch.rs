//! How it is done where the system tells of many files at once.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::thread::sched_yield;
use tokio::runtime::Builder;

/// How long is looked out at most: what is not there by then is not near, and sleeping costs it little.
const WATCH: Duration = Duration::from_micros(50);

/// How many bytes are so few that they are read, and may be answered, at once. Where more are on their way several
/// processes work at the same time, and whoever looks out is in their way.
const FEW: usize = 16 * 1024;

/// Everything that is looked at. What is closed leaves it by itself.
static EYE: OnceLock<OwnedFd> = OnceLock::new();

/// How many workers are awake, of those that have slept before.
static AWAKE: AtomicUsize = AtomicUsize::new(0);

/// What a worker has sent since it slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Nothing,
    /// One small thing.
    Word,
    /// Several calls are on their way, or a large one: something else is at work already, or will be soon.
    Much,
}

thread_local! {
    static HAS_SLEPT: Cell<bool> = const { Cell::new(false) };
    static SENT: Cell<Sent> = const { Cell::new(Sent::Nothing) };
}

/// Lets the workers of a runtime look out before they sleep. Where the system refuses the means, they just sleep.
pub fn keep(runtime: &mut Builder) -> &mut Builder {
    if let Ok(eye) = epoll::create(epoll::CreateFlags::CLOEXEC) {
        let _ = EYE.set(eye);
    }
    runtime.on_thread_park(lie_down).on_thread_unpark(get_up)
}

/// Whatever arrives here is looked out for, if anybody looks out.
pub(crate) fn over(source: &impl AsFd) {
    if let Some(eye) = EYE.get() {
        add(eye, source);
    }
}

/// It is told for as long as it is unread, not once: meanwhile nobody needs to look out. What cannot be added wakes
/// its worker as ever.
fn add(eye: &OwnedFd, source: &impl AsFd) {
    let _ = epoll::add(
        eye,
        source,
        epoll::EventData::new_u64(0),
        epoll::EventFlags::IN,
    );
}

/// So many bytes are written, and something may come for it.
pub(crate) fn expect(bytes: usize) {
    let is_first = SENT.get() == Sent::Nothing;
    SENT.set(if is_first && bytes <= FEW {
        Sent::Word
    } else {
        Sent::Much
    });
}

fn get_up() {
    AWAKE.fetch_add(1, Ordering::Relaxed);
}

fn lie_down() {
    if HAS_SLEPT.replace(true) {
        AWAKE.fetch_sub(1, Ordering::Relaxed);
    }
    if SENT.replace(Sent::Nothing) == Sent::Word
        && let Some(eye) = EYE.get()
    {
        look_out(eye);
    }
}

/// Ends when something has arrived, or somebody else is awake, who will notice.
fn look_out(eye: &OwnedFd) {
    let end = Instant::now() + WATCH;
    while AWAKE.load(Ordering::Relaxed) == 0 && is_empty(eye) && Instant::now() < end {
        // Whoever else wants to run goes first, above all the one that is waited for.
        sched_yield();
    }
}

fn is_empty(eye: &OwnedFd) -> bool {
    const NOW: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut arrived = [MaybeUninit::<epoll::Event>::uninit(); 1];
    epoll::wait(eye, &mut arrived[..], Some(&NOW)).is_ok_and(|(arrived, _)| arrived.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_unread_is_seen_until_it_is_read_or_closed() {
        let eye = &epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        add(eye, &near);
        assert!(is_empty(eye));
        far.write_all(b"!").unwrap();
        assert!(!is_empty(eye));
        assert!(!is_empty(eye), "it is still unread");
        near.read_exact(&mut [0]).unwrap();
        assert!(is_empty(eye));
        far.write_all(b"!").unwrap();
        drop(near);
        assert!(is_empty(eye), "what is closed is forgotten");
    }

    /// Only who has sent one small thing looks out, and only once for it.
    #[test]
    fn who_has_sent_several_things_or_a_large_one_sleeps_at_once() {
        for (pieces, sent) in [
            (&[][..], Sent::Nothing),
            (&[10], Sent::Word),
            (&[FEW], Sent::Word),
            (&[FEW + 1], Sent::Much),
            (&[10, 10], Sent::Much),
            (&[FEW + 1, 10], Sent::Much),
        ] {
            pieces.iter().for_each(|bytes| expect(*bytes));
            assert_eq!(SENT.get(), sent, "{pieces:?}");
            lie_down();
            assert_eq!(SENT.get(), Sent::Nothing, "{pieces:?}");
            get_up();
        }
    }

    /// It ends whether or not anything comes.
    #[test]
    fn a_runtime_that_looks_out_sleeps_and_wakes_up() {
        let mut runtime = Builder::new_multi_thread();
        let runtime = keep(runtime.worker_threads(2).enable_all())
            .build()
            .unwrap();
        let said = runtime.block_on(async {
            let (mut near, mut far) = tokio::net::UnixStream::pair().unwrap();
            over(&near);
            expect(0);
            let hearing = tokio::spawn(async move {
                use tokio::io::AsyncReadExt as _;
                let mut said = String::new();
                near.read_to_string(&mut said).await.map(|_| said)
            });
            for word in ["one", "two"] {
                use tokio::io::AsyncWriteExt as _;
                tokio::time::sleep(Duration::from_millis(5)).await;
                far.write_all(word.as_bytes()).await.unwrap();
                expect(word.len());
            }
            drop(far);
            hearing.await.unwrap().unwrap()
        });
        assert_eq!(said, "onetwo");
    }
}
