//! Connections to one server: one request at a time on each, driven by whoever waits for the answer.
//!
//! A task of its own for every connection would cost two changes of task for every call.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};

use super::connector::Connector;
use super::pipe::Pipe;
use crate::http::bell::Porter;

/// How many idle connections are kept: fewer than calls in flight would mean to connect anew all the time.
const MAX_IDLE: usize = 256;

/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);

/// The connections to one server.
#[derive(Debug)]
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Those that were used last are at the end.
    all: VecDeque<Rested>,
    is_watched: bool,
}

#[derive(Debug)]
struct Rested {
    open: Box<Open>,
    since: Instant,
}

/// An open connection.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<Pipe, Full<Bytes>>,
    porter: Porter,
    is_over: bool,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

impl Open {
    /// The next part of an answer.
    fn read(
        &mut self,
        body: &mut Incoming,
        context: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self {
            connection,
            porter,
            is_over,
            ..
        } = self;
        porter.attend(context, |context| {
            let frame = Pin::new(&mut *body).poll_frame(context);
            if frame.is_ready() || *is_over {
                return frame;
            }
            *is_over = Pin::new(&mut *connection).poll(context).is_ready();
            Pin::new(&mut *body).poll_frame(context)
        })
    }

    /// Whether a request can be sent, as far as anybody knows.
    fn is_ready(&mut self) -> bool {
        if !self.is_over {
            // Nobody has looked at it since it was put away; the server may have closed it. Whoever finds that
            // out with a request in its hands does not get the request back.
            let mut context = Context::from_waker(Waker::noop());
            self.is_over = Pin::new(&mut self.connection).poll(&mut context).is_ready();
        }
        !self.is_over && self.sender.is_ready()
    }
}

/// A connection in use; whoever drops it closes it.
#[derive(Debug)]
pub(super) struct Loan {
    pool: Arc<Pool>,
    open: Box<Open>,
    /// Whether it was used before, and may have been closed meanwhile.
    pub(super) is_used: bool,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that waits.
    pub(super) fn take(self: &Arc<Self>) -> Option<Loan> {
        loop {
            let Rested { mut open, .. } = self.idle().all.pop_back()?;
            if open.is_ready() {
                return Some(self.lend(open, true));
            }
        }
    }

    /// A new connection.
    pub(super) async fn connect(
        self: &Arc<Self>,
        address: &Uri,
    ) -> Result<Loan, Box<dyn Error + Send + Sync>> {
        let pipe = self.connector.connect(address.clone()).await?;
        let (sender, connection) = handshake(pipe).await?;
        let open = Box::new(Open {
            sender,
            connection,
            porter: Porter::default(),
            is_over: false,
        });
        Ok(self.lend(open, false))
    }

    fn lend(self: &Arc<Self>, open: Box<Open>, is_used: bool) -> Loan {
        Loan {
            pool: Arc::clone(self),
            open,
            is_used,
        }
    }

    fn keep(self: &Arc<Self>, open: Box<Open>) {
        let mut idle = self.idle();
        if idle.all.len() >= MAX_IDLE {
            idle.all.pop_front();
        }
        let since = Instant::now();
        idle.all.push_back(Rested { open, since });
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Closes what was not used for long, and tells whether anything is left.
    fn tidy(&self) -> bool {
        let mut idle = self.idle();
        let old = idle.all.iter();
        let old = old.take_while(|one| one.since.elapsed() >= IDLE).count();
        idle.all.drain(..old);
        idle.is_watched = !idle.all.is_empty();
        idle.is_watched
    }
}

/// Closes idle connections in time, for as long as there are any.
async fn watch(pool: std::sync::Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE / 2).await;
        if !pool.upgrade().is_some_and(|pool| pool.tidy()) {
            return;
        }
    }
}

impl Loan {
    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let Open {
            sender,
            connection,
            porter,
            ..
        } = &mut *self.open;
        let mut answer = pin!(sender.try_send_request(request));
        let mut is_over = false;
        let mut exchange = |context: &mut Context<'_>| {
            is_over = is_over || Pin::new(&mut *connection).poll(context).is_ready();
            match answer.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending if is_over => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        };
        let answer = poll_fn(|context| porter.attend(context, &mut exchange));
        let answer = answer.await;
        self.open.is_over = is_over;
        match answer {
            Some(Ok(response)) => Ok(response),
            Some(Err(mut refused)) => Err(Unanswered::Refused {
                unsent: refused.take_message().map(Box::new),
                why: refused.into_error(),
            }),
            None => Err(Unanswered::Ended),
        }
    }

    fn give_back(self) {
        if !self.open.is_over {
            self.open.porter.leave();
            self.pool.keep(self.open);
        }
    }
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// The connection says why.
    Refused {
        why: hyper::Error,
        /// The request, if it was not sent.
        unsent: Option<Box<Request<Full<Bytes>>>>,
    },
    /// The connection ended.
    Ended,
}

/// The body of an answer, and the connection that it comes from until it is read to its end.
#[derive(Debug)]
pub(super) struct Source {
    body: Incoming,
    loan: Option<Loan>,
}

impl Source {
    pub(super) fn new(body: Incoming, loan: Loan) -> Self {
        Self {
            body,
            loan: Some(loan),
        }
    }

    /// How many bytes will come at least.
    pub(super) fn expected(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// The next part; none at the end. Safe to drop at any time.
    pub(super) async fn frame(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|context| self.poll_frame(context)).await
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, loan } = self;
        let frame = match loan {
            None => Pin::new(body).poll_frame(context),
            Some(loan) => loan.open.read(body, context),
        };
        match frame {
            Poll::Ready(None) => {
                if let Some(loan) = self.loan.take() {
                    loan.give_back();
                }
            }
            Poll::Ready(Some(Err(_))) => self.loan = None,
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        frame
    }
}

impl Drop for Source {
    /// Where nothing is left to read, the connection is kept.
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take().filter(|_| self.body.is_end_stream()) {
            loan.give_back();
        }
    }
}
