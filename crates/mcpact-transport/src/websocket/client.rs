//! The WebSocket client.

use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderValue, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use url::Url;

use super::{SUBPROTOCOL, config, link};
use crate::error::TransportError;
use crate::http::client::{Connector, HttpSettings};
use crate::link::Link;

/// Opens a WebSocket at a `ws://` or `wss://` URL, with the proxies, certificates and headers of HTTP.
///
/// # Errors
/// The URL has another scheme, the connection fails or times out, or the server refuses the upgrade.
pub async fn connect(address: &str, settings: &HttpSettings) -> Result<Link, TransportError> {
    let (request, target) = request(address, settings)?;
    let handshake = async {
        let io = Connector::new(settings)?.tunnel(target).await?;
        let opened = client_async_with_config(request, TokioIo::new(io), Some(config())).await;
        opened.map_err(|error| refused(&error))
    };
    let opened = tokio::time::timeout(settings.connect_timeout, handshake);
    let (socket, _) = opened
        .await
        .map_err(|_| TransportError::Timeout("opening a WebSocket"))??;
    let (link, _) = link(socket, CloseCode::Normal);
    Ok(link)
}

/// Returns the upgrade request and its HTTP URL.
fn request(address: &str, settings: &HttpSettings) -> Result<(Request<()>, Uri), TransportError> {
    let refuse = |why| TransportError::Address {
        address: crate::address::shown(address),
        why,
    };
    let mut url = Url::parse(address).map_err(|_| refuse("it is not a URL"))?;
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return Err(refuse("only `ws://` and `wss://` addresses are possible")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse(
            "credentials belong into a header, not into the address",
        ));
    }
    url.set_fragment(None);
    let target = format!("{scheme}{}", &url.as_str()[url.scheme().len()..]);
    let target = target
        .parse()
        .map_err(|_| refuse("it is not a URL that HTTP can carry"))?;
    let mut request = url
        .as_str()
        .into_client_request()
        .map_err(|error| TransportError::Http(error.to_string()))?;
    let headers = request.headers_mut();
    headers.extend(settings.headers.all().clone());
    headers.insert(
        SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::from_static(SUBPROTOCOL),
    );
    Ok((request, target))
}

fn refused(error: &Error) -> TransportError {
    match error {
        Error::Http(answer) => TransportError::Http(format!(
            "the server answered with status {} instead of opening a WebSocket",
            answer.status()
        )),
        other => TransportError::Http(format!("no WebSocket was opened: {other}")),
    }
}
