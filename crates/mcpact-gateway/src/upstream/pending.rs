//! A client that was told what the server said of itself earlier, and meets it when it first needs it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::downstream::{ClientKind, ClientState};
use crate::error::ServeError;
use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::{Era, Method, Revision};
use mcpact_wire::envelope::{Meta, Params};
use tokio::sync::OnceCell;

use crate::downstream::sink::ClientSink;
use crate::downstream::sink::WeakClientSink;
use crate::handover::SuccessorBinding;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::LegacyHello;
use crate::upstream::binding::ServerBinding;

/// How a client began, for servers that it meets later.
#[derive(Debug)]
pub(crate) enum SavedHello {
    Handshake {
        params: Box<str>,
    },
    Request {
        capabilities: Box<str>,
        info: Option<Box<str>>,
    },
}

impl SavedHello {
    pub(crate) fn of(opening: &ClientHello<'_>) -> Self {
        match opening {
            ClientHello::Handshake(params) => Self::Handshake {
                params: Box::from(params.raw.unwrap_or("{}")),
            },
            ClientHello::Request(params) => Self::Request {
                capabilities: Box::from(params.meta.client_capabilities.unwrap_or("{}")),
                info: params.meta.client_info.map(Box::from),
            },
        }
    }

    /// ClientRef stands for the client at a server, which is reached.
    pub(crate) async fn receive(
        &self,
        bridge: &UpstreamServer,
        visitor: &ClientIdentity,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let (raw, meta) = match self {
            Self::Handshake { params } => (&**params, Meta::default()),
            Self::Request { capabilities, info } => {
                let meta = Meta {
                    // Only marks the request as modern.
                    protocol_version: Some(Revision::newest(Era::Modern).as_str()),
                    client_capabilities: Some(capabilities),
                    client_info: info.as_deref(),
                    ..Meta::default()
                };
                ("{}", meta)
            }
        };
        let params = Params {
            raw: Some(raw),
            meta,
            ..Params::default()
        };
        let opening = match self {
            Self::Handshake { .. } => ClientHello::Handshake(&params),
            Self::Request { .. } => ClientHello::Request(&params),
        };
        bridge.receive(opening, visitor).await
    }
}

/// A client whose server sleeps.
#[derive(Debug)]
pub(crate) struct PendingBinding {
    opening: SavedHello,
    visitor: ClientIdentity,
    caller: OnceCell<Arc<ServerBinding>>,
    /// ClientRef stands for it at a server that has taken the place of this one.
    followed: SuccessorBinding,
    /// A legacy client, which stays.
    ear: OnceLock<WeakClientSink>,
    is_ready: AtomicBool,
    /// Which log messages a legacy client wants, as it said it.
    level: Mutex<Option<BackendRequest>>,
}

impl PendingBinding {
    fn new(opening: &ClientHello<'_>, visitor: &ClientIdentity) -> Self {
        Self {
            opening: SavedHello::of(opening),
            visitor: visitor.clone(),
            caller: OnceCell::new(),
            followed: SuccessorBinding::default(),
            ear: OnceLock::new(),
            is_ready: AtomicBool::new(false),
            level: Mutex::default(),
        }
    }

    /// It is there to stay.
    pub(crate) fn settle(&self, ear: &ClientSink) {
        // A session opens once.
        let _ = self.ear.set(ear.downgrade());
    }

    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        if method == Method::Initialized {
            self.is_ready.store(true, Ordering::Release);
        }
        if let Some(caller) = self.caller.get() {
            caller.observe(method, params);
        }
    }

    /// Remembers which log messages it wants; whether that is enough, because it has not met the server.
    pub(crate) fn wants_logs(&self, job: &BackendRequest) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        *level = Some(again(job));
        !self.caller.initialized()
    }

    /// ClientRef stands for it at the server, which is woken if it sleeps.
    pub(crate) async fn caller(
        &self,
        bridge: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let met = self.caller.get_or_try_init(|| self.meet(bridge));
        met.await.cloned()
    }

    /// Whether it is there to stay, and has not met the server.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_ready.load(Ordering::Acquire) && !self.caller.initialized()
    }

    /// Somebody else has woken the server: it hears of its changes from here on, and that there may have been some since
    /// it was told what the server said earlier.
    async fn hear(&self, bridge: &Arc<UpstreamServer>) -> Result<(), ServeError> {
        let caller = self.caller(bridge).await?;
        if let Some(wishing) = caller.wishing() {
            wishing.missed(&caller);
        }
        Ok(())
    }

    /// The same at the server that has taken the place of this one.
    pub(crate) async fn follow(
        &self,
        bridge: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        self.followed.to(bridge, self.meet(bridge)).await
    }

    async fn meet(&self, bridge: &Arc<UpstreamServer>) -> Result<Arc<ServerBinding>, ServeError> {
        let caller = self.opening.receive(bridge, &self.visitor).await?;
        let ear = self.ear.get().and_then(WeakClientSink::near);
        if let Some(ear) = &ear {
            bridge.settle(&caller, ear);
        }
        if self.is_ready.load(Ordering::Acquire) {
            caller.observe(Method::Initialized, None);
        }
        let level = {
            let level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
            level.as_ref().map(again)
        };
        if let (Some(level), Some(ear)) = (level, ear) {
            // A server that keeps no log any more has nothing to leave out.
            let _ = bridge.carry(level, Arc::clone(&caller), ear).await;
        }
        Ok(caller)
    }
}

/// The same request once more.
pub(crate) fn again(job: &BackendRequest) -> BackendRequest {
    BackendRequest {
        id: job.id.clone(),
        method: job.method,
        name: job.name.clone(),
        params: job.params.clone(),
        progress_token: None,
        log_level: job.log_level,
        response_mode: job.response_mode,
        trace: job.trace.clone(),
        pact: Arc::clone(&job.pact),
    }
}

impl UpstreamServer {
    /// Lets clients that wait meet a modern server whenever it is woken by others.
    pub(crate) fn introduce_latecomers(self: &Arc<Self>) {
        let mut connections = self.shared.acquaintance.connections();
        let bridge = Arc::downgrade(self);
        tokio::spawn(async move {
            while connections.changed().await.is_ok() {
                let Some(bridge) = bridge.upgrade() else {
                    return;
                };
                // It is not woken again for those who only listen.
                let Some(_awake) = bridge.everybody().and_then(|caller| caller.hold()) else {
                    continue;
                };
                for latecomer in bridge.regulars.latecomers() {
                    if let Err(error) = latecomer.hear(&bridge).await {
                        tracing::debug!(
                            error = &*error.message(),
                            "a client hears of no changes yet"
                        );
                    }
                }
            }
        });
    }

    /// On which terms a client is served while the server sleeps, if it is known well enough. Only whoever
    /// keeps many servers lets them sleep.
    pub(crate) fn welcome_asleep(
        &self,
        opening: &ClientHello<'_>,
        visitor: &ClientIdentity,
    ) -> Option<ClientSetup<ClientState>> {
        if !self.shared.acquaintance.has_herald() || self.is_awake_for(opening, visitor) {
            return None;
        }
        let met = self.met()?;
        let revision = match opening {
            ClientHello::Handshake(params) => LegacyHello::parse(params)?.revision,
            ClientHello::Request(params) => {
                let named = params.meta.revision();
                named.unwrap_or(Revision::newest(Era::Modern))
            }
        };
        let terms = self.terms_of(
            &met.introduction,
            met.revision,
            revision,
            &visitor.principal,
        );
        Some(ClientSetup {
            terms: Arc::new(terms),
            state: Some(ClientState(ClientKind::Pending(Arc::new(
                PendingBinding::new(opening, visitor),
            )))),
        })
    }
}
