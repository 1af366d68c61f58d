//! Loop detection: gateways that serve each other over HTTP, or start each other as child processes.
//!
//! ```text
//!   client ──> A ──[A.b]──> B ──[B.c, A.b]──> C ──[C.a, B.c, A.b]──> A: refused, A.b is one of its own routes
//! ```
//!
//! Each HTTP server of a gateway is a route with a random id. The header `Mcpact-Via` of its requests contains this id and
//! the ids of the gateways that used it recently. Connections and lists are shared between clients, so the ids of all
//! recent users are in every request, not only those of one client. A request with the id of a route behind the endpoint
//! that it was sent to is refused with 508.
//!
//! Processes are covered by [`start`].

pub(crate) mod start;

use crate::sync::lock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_config::ServerName;
use mcpact_transport::http::client::RequestHeader;

/// Status of a request that is refused because of a loop.
pub(crate) const LOOP_DETECTED: u16 = 508;

/// Gateways between a client and a server, over HTTP or as child processes.
pub(crate) const MAX_HOPS: usize = 16;

/// Ids in one header.
const MAX_IDS: usize = 64;

/// Users that are remembered.
const MAX_USERS: usize = 256;

/// Time after its last request in which another gateway counts as a user of a server.
const USER_TTL: Duration = Duration::from_mins(10);

const VIA: HeaderName = HeaderName::from_static("mcpact-via");

/// Random id of the route from one gateway to one of its HTTP servers.
type RouteId = u64;

fn parse_id(text: &str) -> Option<RouteId> {
    let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| RouteId::from_str_radix(text, 16).ok())?
}

/// Content of a `Mcpact-Via` header: `hops=2, 0123456789abcdef, fedcba9876543210`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Via {
    hops: usize,
    ids: Vec<RouteId>,
}

impl Via {
    /// Returns `None` without the header. Unknown elements are ignored.
    pub(crate) fn parse(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(VIA).iter().peekable();
        values.peek()?;
        let mut via = Self::default();
        let texts = values.filter_map(|value| value.to_str().ok());
        for element in texts.flat_map(|text| text.split(',')).map(str::trim) {
            if let Some(hops) = element.strip_prefix("hops=") {
                via.hops = hops.parse().unwrap_or(MAX_HOPS).max(via.hops);
            } else if via.ids.len() < MAX_IDS {
                via.ids.extend(parse_id(element));
            }
        }
        Some(via)
    }

    fn encode(&self) -> Option<HeaderValue> {
        let mut text = format!("hops={}", self.hops);
        for id in &self.ids {
            // Writing into a string never fails.
            let _ = write!(text, ", {id:016x}");
        }
        HeaderValue::try_from(text).ok()
    }
}

/// Another gateway that used servers of this one recently.
#[derive(Debug)]
struct RecentUser {
    last_request: Instant,
    hops: usize,
}

/// Users by id and the server that was used; `None` stands for all servers, also those that are added later.
type RecentUsers = BTreeMap<(RouteId, Option<ServerName>), RecentUser>;

/// Loop detection of one gateway.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    users: Mutex<RecentUsers>,
}

impl LoopDetector {
    fn users(&self) -> MutexGuard<'_, RecentUsers> {
        lock(&self.users)
    }

    /// Creates the route to a server; `None` if the system has no randomness.
    pub(crate) fn route(self: &Arc<Self>, server: ServerName) -> Option<Arc<Route>> {
        let id = getrandom::u64().ok()?;
        let alone = Via {
            hops: 1,
            ids: vec![id],
        };
        Some(Arc::new(Route {
            id,
            alone: alone.encode(),
            server,
            detector: Arc::clone(self),
        }))
    }

    /// Returns true if a request closes a loop: it came through one of the routes that it would take, or through too many
    /// gateways. Its sender is then no user of this gateway, so that of two gateways that start together one is served.
    pub(crate) fn closes_loop<'r>(
        &self,
        via: &Via,
        mut routes: impl Iterator<Item = &'r Arc<Route>>,
    ) -> bool {
        let is_loop = via.hops >= MAX_HOPS || routes.any(|route| via.ids.contains(&route.id));
        if is_loop {
            self.users().retain(|(id, _), _| !via.ids.contains(id));
        }
        is_loop
    }

    /// Remembers the sender of a request as a user of these servers; `None` stands for all.
    pub(crate) fn record(
        &self,
        via: &Via,
        servers: impl IntoIterator<Item = Option<ServerName>>,
        now: Instant,
    ) {
        let mut users = self.users();
        for server in servers {
            for id in &via.ids {
                let user = RecentUser {
                    last_request: now,
                    hops: via.hops,
                };
                users.insert((*id, server.clone()), user);
            }
        }
        users.retain(|_, user| now.duration_since(user.last_request) < USER_TTL);
        while users.len() > MAX_USERS {
            let oldest = users.iter().min_by_key(|(_, user)| user.last_request);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                users.remove(&key);
            }
        }
    }
}

/// Route to one HTTP server.
#[derive(Debug)]
pub(crate) struct Route {
    id: RouteId,
    /// Header while no other gateway uses this one.
    alone: Option<HeaderValue>,
    pub(crate) server: ServerName,
    detector: Arc<LoopDetector>,
}

impl Route {
    /// Returns true if other gateways used this server recently.
    pub(crate) fn serves_gateways(&self) -> bool {
        !self
            .users(&self.detector.users(), Instant::now())
            .is_empty()
    }

    /// Returns the recent users of this server.
    fn users<'u>(&self, users: &'u RecentUsers, now: Instant) -> Vec<(RouteId, &'u RecentUser)> {
        let mut found = Vec::new();
        for ((id, server), user) in users {
            let is_recent = now.saturating_duration_since(user.last_request) < USER_TTL;
            if is_recent && server.as_ref().is_none_or(|server| *server == self.server) {
                found.push((*id, user));
            }
        }
        found
    }

    fn via(&self, now: Instant) -> Via {
        let users = self.detector.users();
        let mut recent = self.users(&users, now);
        recent.sort_by_key(|(_, user)| std::cmp::Reverse(user.last_request));
        let hops = recent.iter().map(|(_, user)| user.hops).max();
        let mut ids = vec![self.id];
        for (id, _) in recent {
            if ids.len() < MAX_IDS && !ids.contains(&id) {
                ids.push(id);
            }
        }
        Via {
            hops: hops.unwrap_or(0) + 1,
            ids,
        }
    }
}

impl RequestHeader for Route {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        if self.detector.users().is_empty() {
            return Some((VIA, self.alone.clone()?));
        }
        Some((VIA, self.via(Instant::now()).encode()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::parse(text).unwrap()
    }

    /// A gateway with one HTTP server.
    struct Gateway {
        detector: Arc<LoopDetector>,
        route: Arc<Route>,
    }

    impl Gateway {
        fn new() -> Self {
            let detector = Arc::<LoopDetector>::default();
            let route = detector.route(name("next")).unwrap();
            Self { detector, route }
        }

        /// Receives a request at the endpoint of all servers and returns whether it is served.
        fn serves(&self, via: &Via) -> bool {
            let is_loop = self.detector.closes_loop(via, [&self.route].into_iter());
            if !is_loop {
                self.detector.record(via, [None], Instant::now());
            }
            !is_loop
        }

        /// Sends a request to another gateway and returns whether that serves it.
        fn uses(&self, next: &Self) -> bool {
            next.serves(&self.route.via(Instant::now()))
        }
    }

    #[test]
    fn last_gateway_of_a_cycle_is_refused() {
        for length in 1..6 {
            let gateways: Vec<_> = (0..length).map(|_| Gateway::new()).collect();
            for pair in gateways.windows(2) {
                assert!(pair[0].uses(&pair[1]), "{length}");
            }
            for _ in 0..2 {
                assert!(!gateways[length - 1].uses(&gateways[0]), "{length}");
            }
        }
    }

    #[test]
    fn two_routes_to_one_gateway_are_no_loop() {
        let [left, right, last] = [(); 3].map(|()| Gateway::new());
        for _ in 0..2 {
            assert!(left.uses(&last) && right.uses(&last));
        }
    }

    #[test]
    fn one_of_two_gateways_that_start_together_is_served() {
        let [one, other] = [(); 2].map(|()| Gateway::new());
        // Both requests are sent before either arrives.
        let [from_one, from_other] = [&one, &other].map(|from| from.route.via(Instant::now()));
        assert!(other.serves(&from_one) && one.serves(&from_other));
        assert!(!one.uses(&other));
        for _ in 0..2 {
            assert!(other.uses(&one));
            assert!(!one.uses(&other));
        }
    }

    #[test]
    fn user_of_one_server_does_not_reach_another() {
        let [one, other] = [(); 2].map(|()| Gateway::new());
        let via = one.route.via(Instant::now());
        other
            .detector
            .record(&via, [Some(name("local"))], Instant::now());
        assert!(!other.route.serves_gateways());
        assert!(other.uses(&one));
    }

    #[test]
    fn users_expire_and_are_bounded() {
        let (gateway, now) = (Gateway::new(), Instant::now());
        for id in 0..1000 {
            let via = Via {
                hops: 1,
                ids: vec![id],
            };
            gateway.detector.record(&via, [None], now);
        }
        assert_eq!(gateway.detector.users().len(), MAX_USERS);
        assert_eq!(gateway.route.via(now).ids.len(), MAX_IDS);
        assert_eq!(gateway.route.via(now + USER_TTL).ids.len(), 1);
    }

    #[test]
    fn chains_of_gateways_are_limited() {
        let gateways: Vec<_> = (0..=MAX_HOPS).map(|_| Gateway::new()).collect();
        let served = gateways
            .windows(2)
            .take_while(|pair| pair[0].uses(&pair[1]));
        assert_eq!(served.count(), MAX_HOPS - 1);
    }

    #[test]
    fn header_round_trips_and_ignores_unknown_elements() {
        let parse = |values: &[&str]| {
            let values = values.iter();
            let headers = values.map(|value| (VIA, HeaderValue::from_str(value).unwrap()));
            Via::parse(&headers.collect())
        };
        let via = Via {
            hops: 2,
            ids: vec![1, u64::MAX],
        };
        assert_eq!(parse(&[via.encode().unwrap().to_str().unwrap()]), Some(via));
        assert_eq!(parse(&[]), None);
        for nothing in ["", ",,", "1", "+000000000000001", "xxxxxxxxxxxxxxxx"] {
            assert_eq!(parse(&[nothing]), Some(Via::default()), "{nothing}");
        }
        assert_eq!(parse(&["hops=many"]).unwrap().hops, MAX_HOPS);
        let many: Vec<String> = (0..1000).map(|id| format!("{id:016x}")).collect();
        assert_eq!(
            parse(&[&many.join(","), "hops=3"]).unwrap().ids.len(),
            MAX_IDS
        );
    }
}
