//! Several backends at one address: who answers a request is told by its path and headers.

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcpact_transport::http::server::{Answer, Arrival, Endpoint, HttpServer};

use super::backend::{Backend, bound, reachable};
use super::builder::Settings;
use super::http::HttpEndpoint;
use crate::error::Error;

/// The way to one backend, with its sessions and streams.
#[derive(Clone, Debug)]
pub struct Door(Arc<dyn Answering>);

trait Answering: Debug + Send + Sync {
    fn answer(self: Arc<Self>, arrival: Box<Arrival>) -> BoxFuture<'static, Answer>;

    fn guests(&self) -> usize;

    fn rest(&self);

    fn dismiss(&self);

    fn stop(&self);
}

impl<B: Backend> Answering for HttpEndpoint<B> {
    fn answer(self: Arc<Self>, arrival: Box<Arrival>) -> BoxFuture<'static, Answer> {
        async move { self.handle(arrival).await }.boxed()
    }

    fn guests(&self) -> usize {
        Self::guests(self)
    }

    fn rest(&self) {
        Self::rest(self);
    }

    fn dismiss(&self) {
        Self::dismiss(self);
    }

    fn stop(&self) {
        Self::stop(self);
        self.cut_off();
    }
}

impl Door {
    /// The way to this backend. Needs a tokio runtime, in which idle sessions are ended.
    #[must_use]
    pub fn to<B: Backend>(backend: Arc<B>) -> Self {
        let endpoint = Arc::new(HttpEndpoint::new(backend));
        endpoint.watch();
        Self(endpoint)
    }

    pub(super) fn through<B: Backend>(endpoint: &Arc<HttpEndpoint<B>>) -> Self {
        let endpoint: Arc<HttpEndpoint<B>> = Arc::clone(endpoint);
        Self(endpoint)
    }

    /// How many clients have a session or a connection that stays behind it.
    #[must_use]
    pub fn guests(&self) -> usize {
        self.0.guests()
    }

    /// Ends the streams behind it that would not end by themselves, calls that nobody waits for, and each WebSocket
    /// and stream of HTTP+SSE on which nobody waits for an answer; others go on.
    pub fn rest(&self) {
        self.0.rest();
    }

    /// As [`rest`](Self::rest), where nobody waits for an answer any more: WebSockets and HTTP+SSE end, too.
    pub fn dismiss(&self) {
        self.0.dismiss();
    }

    /// Ends every session and stream behind it.
    pub fn close(&self) {
        self.0.stop();
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Directed {
    /// It goes through this door.
    To(Door),
    /// The same, and somebody goes along until it is answered.
    Attended(Door, Box<dyn Attendant>),
    /// It is answered at once.
    Answer(Answer),
}

/// Goes along with a request, and is dropped if nobody waits for its answer any more.
pub trait Attendant: Debug + Send {
    /// The answer is about to leave.
    fn sees_off(self: Box<Self>, answer: &mut Answer);
}

/// Directs everybody who comes to the right door.
pub trait Reception: Debug + Send + Sync + 'static {
    /// How the address is guarded.
    fn settings(&self) -> &Settings;

    /// Who answers a request; behind the door it has the path that it is given here.
    fn direct(&self, arrival: &mut Arrival) -> Directed;

    /// Ends what would not end by itself.
    fn stop(&self);

    /// Ends everything.
    fn cut_off(&self);
}

/// Several backends that are bound to one address.
#[derive(Debug)]
pub struct Site<R> {
    server: HttpServer,
    reception: Arc<R>,
}

/// Hands requests to whoever the reception names.
struct Entrance<R>(Arc<R>);

impl<R: Reception> Endpoint for Entrance<R> {
    async fn handle(&self, mut arrival: Box<Arrival>) -> Answer {
        match self.0.direct(&mut arrival) {
            Directed::To(door) => door.0.answer(arrival).await,
            Directed::Attended(door, attendant) => {
                let mut answer = door.0.answer(arrival).await;
                attendant.sees_off(&mut answer);
                answer
            }
            Directed::Answer(answer) => answer,
        }
    }

    fn cut_off(&self) {
        self.0.cut_off();
    }
}

impl<R: Reception> Site<R> {
    /// Listens at this address.
    ///
    /// # Errors
    /// Others could reach the address without a token and the settings do not allow that, or it cannot
    /// be bound.
    pub async fn bind(reception: Arc<R>, address: SocketAddr) -> Result<Self, Error> {
        let server = bound(reception.settings(), address).await?;
        Ok(Self { server, reception })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The address that clients use, up to the path.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = match self.reception.settings().tls {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}", reachable(self.address()))
    }

    /// Serves until `stop` resolves.
    ///
    /// # Errors
    /// Accepting connections failed for good.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let reception = Arc::clone(&self.reception);
        let stop = async move {
            stop.await;
            reception.stop();
        };
        let entrance = Arc::new(Entrance(self.reception));
        Ok(self.server.serve(entrance, stop).await?)
    }
}
