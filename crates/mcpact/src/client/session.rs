//! Sessions with the server: the connection layer with the hooks of a client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mcpact_engine::client::{ClientTerms, EraVerdict, Failure, ProbeFailure};
use mcpact_engine::pact::Pact;
use mcpact_engine::transcript::Transcript;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::stdio::child::Process;
use tokio::sync::watch;

use super::client_error::ClientError;
use super::incoming::SessionHandler;
use super::shared::Shared;
use crate::connection::{
    self, ConnectError, Connected, Connection, Endpoint, FailureText, Hooks, MessageHandler,
};
use crate::lock;
use crate::log::{ProcessEvent, ProcessLog};

/// One connection or HTTP session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) transcript: Transcript,
    handler: Option<Arc<SessionHandler>>,
    /// The server does not know the session.
    is_lost: AtomicBool,
    /// Closed when the connection and its process have ended.
    ended: watch::Receiver<()>,
}

impl Session {
    /// Connects and negotiates.
    pub(super) async fn open(
        shared: &Arc<Shared>,
        endpoint: Endpoint<'_>,
        prior: Option<EraVerdict>,
    ) -> Result<(Self, Option<EraVerdict>), ClientError> {
        let (alive, ended) = watch::channel(());
        let hooks = Arc::new(SessionHooks {
            shared: Arc::clone(shared),
            process_log: Mutex::new(ProcessLog::new(&shared.target)),
            handler: OnceLock::new(),
            _alive: alive,
        });
        let dynamic: Arc<dyn Hooks> = Arc::<SessionHooks>::clone(&hooks);
        let terms = ClientTerms {
            prior,
            ..shared.terms.clone()
        };
        let connected = connection::connect(endpoint, &shared.target, terms, &dynamic).await;
        let Connected {
            connection,
            verdict,
            transcript,
            ..
        } = connected.map_err(|error| connect_error(&shared.target, error))?;
        let session = Self {
            connection,
            transcript,
            handler: hooks.handler.get().cloned(),
            is_lost: AtomicBool::new(false),
            ended,
        };
        Ok((session, verdict))
    }

    /// Returns true if the connection has ended. An HTTP session can be replaced.
    fn is_over(&self) -> bool {
        !self.connection.has_own_streams() && self.connection.is_gone()
    }

    fn stop(&self) {
        if let Some(handler) = &self.handler {
            handler.stop();
        }
        self.connection.close();
    }
}

/// The sessions of a client, one after the other. Dropping them closes the connection.
#[derive(Debug)]
pub(super) struct Sessions {
    shared: Arc<Shared>,
    current: Mutex<Arc<Session>>,
    reopening: tokio::sync::Mutex<()>,
    /// URL and settings for another session; none for a connection that cannot be reopened.
    http: Option<(String, HttpSettings)>,
}

impl Sessions {
    pub(super) fn new(
        shared: Arc<Shared>,
        first: Session,
        http: Option<(String, HttpSettings)>,
    ) -> Arc<Self> {
        let sessions = Arc::new(Self {
            shared,
            current: Mutex::new(Arc::new(first)),
            reopening: tokio::sync::Mutex::default(),
            http,
        });
        sessions.shared.set_sessions(&sessions);
        sessions
    }

    pub(super) fn current(&self) -> Arc<Session> {
        Arc::clone(&lock(&self.current))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.shared.pending.is_closed() || self.current().is_over()
    }

    /// Returns the session for a request. Returns true if it was reopened: the caller restores its state.
    pub(super) async fn ready(&self) -> Result<(Arc<Session>, bool), ClientError> {
        let current = self.current();
        match current.is_lost.load(Ordering::Relaxed) {
            true => self.reopen(&current).await,
            false => Ok((current, false)),
        }
    }

    /// Opens another session after the server has forgotten this one. One caller opens it, others wait for it.
    pub(super) async fn reopen(
        &self,
        lost: &Arc<Session>,
    ) -> Result<(Arc<Session>, bool), ClientError> {
        lost.is_lost.store(true, Ordering::Relaxed);
        let _only = self.reopening.lock().await;
        let current = self.current();
        let Some((url, settings)) = &self.http else {
            return Err(ClientError::SessionLost);
        };
        if !Arc::ptr_eq(&current, lost) {
            return Ok((current, false));
        }
        let endpoint = Endpoint::Http { url, settings };
        let (session, _) = Session::open(&self.shared, endpoint, Some(EraVerdict::Legacy)).await?;
        let session = Arc::new(session);
        *lock(&self.current) = Arc::clone(&session);
        // Requests in flight go on: they have streams of their own.
        lost.stop();
        Ok((session, true))
    }

    /// Closes the connection and waits until it and its process have ended.
    pub(super) async fn close(&self) {
        let _only = self.reopening.lock().await;
        let current = self.current();
        let mut ended = current.ended.clone();
        self.stop();
        // Fails when the sender is dropped, with the hooks.
        while ended.changed().await.is_ok() {}
    }

    /// Closes the connection.
    pub(super) fn stop(&self) {
        self.shared.pending.close();
        self.current().stop();
        self.shared.end_changes();
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Hooks of a session, held until the connection and its process have ended.
#[derive(Debug)]
struct SessionHooks {
    shared: Arc<Shared>,
    process_log: Mutex<ProcessLog>,
    handler: OnceLock<Arc<SessionHandler>>,
    _alive: watch::Sender<()>,
}

impl Hooks for SessionHooks {
    fn server(&self) -> &Arc<str> {
        &self.shared.target
    }

    fn message_handler(&self, pact: &Arc<Pact>) -> Option<Arc<dyn MessageHandler>> {
        let new = || SessionHandler::new(Arc::clone(&self.shared), Arc::clone(pact));
        let handler = self.handler.get_or_init(|| Arc::new(new()));
        Some(Arc::<SessionHandler>::clone(handler))
    }

    fn process_event(&self, event: ProcessEvent<'_>) {
        lock(&self.process_log).record(event);
    }

    fn spawned(&self, process: &Process) {
        lock(&self.process_log).started(process.id());
    }

    fn lost(&self, _why: FailureText) {
        if let Some(handler) = self.handler.get() {
            handler.stop();
        }
        self.shared.end_changes();
    }
}

fn connect_error(target: &str, error: ConnectError) -> ClientError {
    let (failure, stderr, transcript) = match error {
        ConnectError::Transport(source) | ConnectError::NotMcp { source, .. } => {
            return ClientError::unreachable(target, source);
        }
        ConnectError::HttpStatus(refusal) => return ClientError::refused(refusal),
        ConnectError::Exited {
            stderr, transcript, ..
        } => (Failure::ConnectionClosed, stderr, transcript),
        ConnectError::Negotiation {
            failure,
            stderr,
            transcript,
        } => (failure, stderr, transcript),
    };
    match failure {
        Failure::ConnectionClosed | Failure::Probe(ProbeFailure::Closed) if !stderr.is_empty() => {
            let end = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            ClientError::Unreachable {
                target: target.to_owned(),
                stderr,
                source: end.into(),
            }
        }
        Failure::Probe(ProbeFailure::Authentication(status)) => ClientError::Auth {
            status,
            challenge: None,
        },
        Failure::Probe(ProbeFailure::TooManyRequests) => ClientError::Http {
            status: 429,
            retry_after: None,
        },
        failure => ClientError::Refused {
            target: target.to_owned(),
            failure,
            transcript,
        },
    }
}
