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
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::message::HttpResponse;
use crate::link::Link;
use crate::websocket::{SUBPROTOCOL, config, link};

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
    run: Box<dyn FnOnce(Link) + Send>,
    open: mpsc::Sender<Infallible>,
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
    let Some(key) = asked.get(SEC_WEBSOCKET_KEY) else {
        return HttpResponse::text(400, "the Sec-WebSocket-Key header is missing");
    };
    tokio::spawn(async move {
        match upgrade.await {
            Ok(stream) => {
                let stream = TokioIo::new(stream);
                let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config()));
                // Close code 1001: the server is going away.
                let (link, pumping) = link(socket.await, CloseCode::Away);
                run(link);
                let _ = pumping.await;
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
