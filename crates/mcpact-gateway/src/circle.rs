//! Gateways that serve each other, directly or by way of others: what one lists, the next lists again, without end.
//!
//! Every road of a gateway to a server that is reached by HTTP has a mark that no other has.
//!
//! ```text
//!   client ──> A ──[A1]──> B ──[B1, A1]──> C     what is asked carries the marks of the roads by which it came
//!              A <─[B*, C*]─ B <──[C*]──── C     what is answered carries those of the roads that lie beyond: all of a
//!                                                gateway, or the one of the server that was asked alone
//! ```
//!
//! Connections and lists are shared, so what is asked does not come in the name of one client alone. It carries the
//! marks of everybody who is being answered by this road: each of them is a road that leads here. A request that carries
//! the mark of a road by which it would go on, or of one that lies beyond, closes a circle and is refused. So the first
//! road of a circle that is used is served, and the one that would close it is not, for as long as the others are.

mod marks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcpact::server::site::Attendant;
use mcpact_transport::http::client::Escort;
use mcpact_transport::http::server::Answer;

use self::marks::VIA;
pub(crate) use self::marks::{Mark, Marks};
use crate::target::Target;

/// The status of a request that goes round in a circle.
pub(crate) const LOOP: u16 = 508;

/// The road to one server, and who else goes it.
#[derive(Debug)]
pub(crate) struct Road {
    mark: Mark,
    around: Mutex<Around>,
}

#[derive(Debug, Default)]
struct Around {
    /// By which roads those came that are being answered, and how many each.
    before: BTreeMap<Mark, usize>,
    /// Which roads lie beyond; none if the server is not a gateway, or does not serve us.
    beyond: Option<Marks>,
}

impl Road {
    /// Marks everything that is sent from this gateway to this server; none if it cannot come back.
    pub(crate) fn onto(target: &mut Target, gateway: Mark) -> Option<Arc<Self>> {
        let Target::Url { settings, .. } = target else {
            return None;
        };
        let road = Arc::new(Self {
            mark: gateway.of_road()?,
            around: Mutex::default(),
        });
        settings.escort = Some(Arc::<Self>::clone(&road));
        Some(road)
    }

    fn around(&self) -> MutexGuard<'_, Around> {
        self.around.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something that came by these roads must not go on by this one.
    pub(crate) fn closes_circle(&self, marks: &Marks) -> bool {
        let leads_back = |beyond: &Marks| marks.iter().any(|mark| beyond.cover(mark));
        marks.cover(self.mark) || self.around().beyond.as_ref().is_some_and(leads_back)
    }

    /// Whether somebody is being answered by it who came by a marked road.
    pub(crate) fn is_asked(&self) -> bool {
        !self.around().before.is_empty()
    }

    /// What lies beyond.
    fn beyond(&self) -> Marks {
        self.around().beyond.clone().unwrap_or_default()
    }
}

impl Escort for Road {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let around = self.around();
        let marks = std::iter::once(self.mark).chain(around.before.keys().copied());
        Some((VIA, Marks::from_iter(marks).encode()?))
    }

    fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        // Who does not serve us does not lead anywhere.
        let serves = status.as_u16() != LOOP;
        self.around().beyond = Marks::of(headers).filter(|_| serves);
    }
}

/// Something that came by roads with marks, and is being answered by these roads.
#[derive(Debug)]
pub(crate) struct Asking {
    roads: Vec<Arc<Road>>,
    marks: Marks,
    /// All roads, where those are shown that come later, too.
    all: Option<Mark>,
}

impl Asking {
    pub(crate) fn new(roads: Vec<Arc<Road>>, marks: Marks, all: Option<Mark>) -> Self {
        for road in &roads {
            let mut around = road.around();
            for mark in marks.iter() {
                *around.before.entry(mark).or_default() += 1;
            }
        }
        Self { roads, marks, all }
    }

    /// What lies ahead; if that is too much, rather what is near.
    fn ahead(&self) -> Marks {
        let near = self.roads.iter().map(|road| road.mark);
        let near: Vec<_> = match self.all {
            Some(all) => vec![all],
            None => near.collect(),
        };
        let beyond: Vec<_> = self.roads.iter().map(|road| road.beyond()).collect();
        let beyond = beyond.iter().flat_map(Marks::iter);
        near.into_iter().chain(beyond).collect()
    }
}

impl Attendant for Asking {
    fn sees_off(self: Box<Self>, answer: &mut Answer) {
        if let Some(ahead) = self.ahead().encode() {
            answer.headers.push((VIA, ahead));
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        for road in &self.roads {
            let mut around = road.around();
            for mark in self.marks.iter() {
                if let Some(count) = around.before.get_mut(&mark) {
                    *count -= 1;
                }
            }
            around.before.retain(|_, count| *count > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only road of a gateway.
    fn road() -> Arc<Road> {
        Road::onto(&mut Target::url("http://host/mcp"), gateway()).unwrap()
    }

    fn gateway() -> Mark {
        Mark::of_gateway().unwrap()
    }

    /// What a request on this road says.
    fn said(road: &Road) -> Marks {
        let (name, value) = road.header().unwrap();
        Marks::of(&HeaderMap::from_iter([(name, value)])).unwrap()
    }

    /// One gateway asks another on a road of its own, and is answered by this one, unless that closes a circle.
    fn asks(from: &Road, to: &Arc<Road>) -> bool {
        let marks = said(from);
        if to.closes_circle(&marks) {
            from.answered(StatusCode::LOOP_DETECTED, &HeaderMap::new());
            return false;
        }
        let mut answer = Answer::empty(200);
        let asking = Box::new(Asking::new(vec![Arc::clone(to)], marks, None));
        asking.sees_off(&mut answer);
        from.answered(StatusCode::OK, &HeaderMap::from_iter(answer.headers));
        true
    }

    /// Of gateways that serve each other, those are served that were asked first; the one that closes the circle is
    /// not, until the others go another road.
    #[test]
    fn the_last_road_closes_the_circle() {
        for length in 2..6 {
            let roads: Vec<_> = (0..length).map(|_| road()).collect();
            // As seen from the end, so that each knows what lies beyond.
            for at in (1..length).rev() {
                assert!(asks(&roads[at - 1], &roads[at]), "{length}");
            }
            for _ in 0..2 {
                assert!(!asks(&roads[length - 1], &roads[0]), "{length}");
                assert!(asks(&roads[0], &roads[1]), "{length}");
            }
            // It serves something else now.
            roads[0].answered(StatusCode::OK, &HeaderMap::new());
            assert!(asks(&roads[length - 1], &roads[0]), "{length}");
        }
    }

    /// What is asked while somebody is answered carries who that is, and no longer.
    #[test]
    fn requests_tell_by_which_roads_they_came() {
        let (first, second, third) = (road(), road(), road());
        let asking = Asking::new(vec![Arc::clone(&second)], said(&first), None);
        let again = Asking::new(vec![Arc::clone(&second)], said(&first), None);
        let further = Asking::new(vec![Arc::clone(&third)], said(&second), None);
        assert!(first.closes_circle(&said(&third)));
        assert!(!road().closes_circle(&said(&third)));
        drop((asking, further));
        assert!(first.closes_circle(&said(&second)));
        drop(again);
        assert!(!first.closes_circle(&said(&second)));
    }

    /// A gateway that shows all its servers shows those that it gets later; one that shows a single server does not.
    #[test]
    fn roads_that_come_later_close_circles() {
        let (first, later) = (road(), gateway());
        for (all, expected) in [(Some(later), true), (None, false)] {
            let mut answer = Answer::empty(200);
            Box::new(Asking::new(Vec::new(), said(&first), all)).sees_off(&mut answer);
            first.answered(StatusCode::OK, &HeaderMap::from_iter(answer.headers));
            let new = Road::onto(&mut Target::url("http://host/mcp"), later).unwrap();
            assert_eq!(first.closes_circle(&said(&new)), expected, "{all:?}");
        }
    }

    /// Two roads to one gateway are no circle.
    #[test]
    fn roads_that_only_meet_are_no_circle() {
        let (left, right, last) = (road(), road(), road());
        assert!(asks(&left, &last) && asks(&right, &last));
        assert!(asks(&left, &last) && asks(&right, &last));
    }
}
