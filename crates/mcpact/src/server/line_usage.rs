//! Usage of line-based sessions over HTTP, which are limited in number.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use mcpact_transport::http::server::SocketUsage;
use tokio::sync::Notify;

use crate::lock;

/// Usage of a session, which decides whether it is closed to make room for another one.
#[derive(Debug)]
pub(super) struct LineUsage {
    state: Mutex<State>,
    evicted: Notify,
    socket: OnceLock<SocketUsage>,
}

/// Sessions without a message come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    is_busy: bool,
    is_started: bool,
    last: Instant,
}

impl Default for LineUsage {
    fn default() -> Self {
        let state = State {
            is_busy: false,
            is_started: false,
            last: Instant::now(),
        };
        Self {
            state: Mutex::new(state),
            evicted: Notify::new(),
            socket: OnceLock::new(),
        }
    }
}

impl LineUsage {
    /// Reports the usage to the connection of a WebSocket.
    pub(super) fn report_to(&self, socket: SocketUsage) {
        // It is called once.
        let _ = self.socket.set(socket);
    }

    /// Records a message of the client.
    pub(super) fn received(&self) {
        let mut state = lock(&self.state);
        state.is_started = true;
        state.last = Instant::now();
        if let Some(socket) = self.socket.get().filter(|_| !state.is_busy) {
            socket.rest();
        }
    }

    /// Records whether no request is in flight.
    pub(super) fn update(&self, is_idle: bool) {
        let mut state = lock(&self.state);
        if state.is_busy != is_idle {
            return;
        }
        state.is_busy = !is_idle;
        state.last = Instant::now();
        match self.socket.get() {
            Some(socket) if is_idle => socket.rest(),
            Some(socket) => socket.begin(),
            None => {}
        }
    }

    /// Resolves when the session must end: to make room, or because no message came in this time.
    pub(super) async fn over(&self, start: Duration) {
        tokio::select! {
            () = self.evicted.notified() => {}
            () = async {
                tokio::time::sleep(start).await;
                if lock(&self.state).is_started {
                    std::future::pending().await
                }
            } => {}
        }
    }

    /// Ends the session.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }
}

/// Returns the longest idle session; none if all have a request in flight.
pub(super) fn longest_idle<'a, K>(
    sessions: impl Iterator<Item = (K, &'a Arc<LineUsage>)>,
) -> Option<K> {
    let idle = sessions.filter_map(|(key, usage)| {
        let state = *lock(&usage.state);
        (!state.is_busy).then_some((state, key))
    });
    let longest = idle.min_by_key(|(state, _)| *state);
    longest.map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_without_a_message_makes_room_first_and_a_busy_one_never() {
        let [busy, old, recent, unused] = [(); 4].map(|()| Arc::<LineUsage>::default());
        for used in [&busy, &old, &recent] {
            used.received();
        }
        busy.update(false);
        let mut all = vec![
            ("busy", &busy),
            ("recent", &recent),
            ("old", &old),
            ("unused", &unused),
        ];
        for expected in [Some("unused"), Some("old"), Some("recent"), None] {
            let longest = longest_idle(all.iter().copied());
            assert_eq!(longest, expected);
            all.retain(|(name, _)| Some(*name) != longest);
        }
        busy.update(true);
        assert_eq!(longest_idle(all.into_iter()), Some("busy"));
    }

    #[tokio::test(start_paused = true)]
    async fn session_without_a_message_ends() {
        let start = Duration::from_secs(10);
        let (unused, used) = (LineUsage::default(), LineUsage::default());
        used.received();
        unused.over(start).await;
        assert!(
            tokio::time::timeout(10 * start, used.over(start))
                .await
                .is_err()
        );
        used.evict();
        used.over(start).await;
    }
}
