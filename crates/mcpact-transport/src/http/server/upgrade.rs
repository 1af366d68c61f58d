//! Upgrade of a request to a WebSocket: RFC 6455, section 4.2.

use std::convert::Infallible;

use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::idle::{RequestGuard, SocketUsage};
use super::message::HttpResponse;
use crate::link::Link;
use crate::websocket::{SUBPROTOCOL, accept};

/// The only WebSocket version.
const VERSION: &str = "13";

/// The upgrade request of a client.
pub(super) struct UpgradeRequest {
    asked: HeaderMap,
    upgrade: OnUpgrade,
}

impl UpgradeRequest {
    pub(super) fn of(request: &mut Request<Incoming>) -> Self {
        Self {
            asked: request.headers().clone(),
            upgrade: hyper::upgrade::on(request),
        }
    }
}

/// Opens the requested socket, or returns the reason for refusing; `open` is held until the socket is closed.
pub(super) fn respond(
    request: Option<Box<UpgradeRequest>>,
    run: Box<dyn FnOnce(Link, SocketUsage) + Send>,
    open: mpsc::Sender<Infallible>,
    guard: &RequestGuard,
) -> HttpResponse {
    let Some(request) = request else {
        return not_asked();
    };
    let UpgradeRequest { asked, upgrade } = *request;
    let asked = &asked;
    if !names(asked, &UPGRADE, "websocket") || !names(asked, &CONNECTION, "upgrade") {
        return not_asked();
    }
    if !names(asked, &SEC_WEBSOCKET_VERSION, VERSION) {
        return HttpResponse::text(426, "only WebSocket version 13 is supported")
            .with(SEC_WEBSOCKET_VERSION, VERSION);
    }
    if !names(asked, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return HttpResponse::text(400, "the subprotocol `mcp` is required");
    }
    let mut keys = asked.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => return HttpResponse::text(400, "the Sec-WebSocket-Key header is missing"),
        (Some(key), None) if is_key(key.as_bytes()) => key,
        (Some(_), _) => {
            let why = "the Sec-WebSocket-Key header must be one value of 16 bytes in Base64";
            return HttpResponse::text(400, why);
        }
    };
    let (connection, usage) = guard.become_socket();
    tokio::spawn(async move {
        match upgrade.await {
            Ok(stream) => {
                let (link, pumping) = accept(TokioIo::new(stream)).await;
                run(link, usage);
                tokio::select! {
                    () = pumping => {}
                    () = connection.closed() => tracing::debug!("idle WebSocket closed to make room for another connection"),
                }
            }
            Err(error) => tracing::debug!(%error, "WebSocket upgrade failed"),
        }
        drop(open);
    });
    HttpResponse::empty(101)
        .with(CONNECTION, "Upgrade")
        .with(UPGRADE, "websocket")
        .with(SEC_WEBSOCKET_ACCEPT, &derive_accept_key(key.as_bytes()))
        .with(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL)
}

/// Returns true for 16 bytes in Base64: 22 characters and padding.
fn is_key(key: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = key.trim_ascii().strip_suffix(b"==");
    digits.is_some_and(|digits| digits.len() == 22 && digits.iter().all(is_digit))
}

fn not_asked() -> HttpResponse {
    HttpResponse::text(426, "this is a WebSocket endpoint").with(UPGRADE, "websocket")
}

/// Returns whether a list header has this item.
fn names(headers: &HeaderMap, header: &HeaderName, item: &str) -> bool {
    let values = headers.get_all(header).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(item))
}
