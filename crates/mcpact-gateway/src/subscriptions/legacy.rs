//! Subscriptions of legacy clients at a legacy server that others may be subscribed at too.

use std::sync::Arc;

use bytestring::ByteString;
use mcpact_spec::Method;
use mcpact_wire::raw::Object;

use crate::downstream::sink::ClientSink;
use crate::error::ServeError;
use crate::exchange::{Exchange, rounds};
use crate::subscriptions::subscribers::Subscribers;
use crate::upstream::UpstreamServer;

/// Whether a request begins or ends a subscription.
pub(crate) const fn is_subscription(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe)
    )
}

/// What a client wants from when it says so, unless the server does not agree: others who end a subscription
/// before the server has answered know of it. It is as before if whoever serves the request stops.
struct Attempt {
    subscribers: Arc<Subscribers>,
    sink: ClientSink,
    params: ByteString,
    /// What brings it back to what it was, as long as the server has not agreed.
    back: Option<Method>,
}

impl Attempt {
    fn begin(exchange: &Exchange, method: Method, params: ByteString, uri: &str) -> Self {
        let subscribers = Arc::clone(exchange.binding.subscribers());
        let sink = exchange.inbound.sink.clone();
        let back = match (method, subscribers.has_subscribed(&sink, uri)) {
            (Method::ResourcesSubscribe, false) => Some(Method::ResourcesUnsubscribe),
            (Method::ResourcesUnsubscribe, true) => Some(Method::ResourcesSubscribe),
            _ => None,
        };
        subscribers.granted(&sink, method, &params);
        Self {
            subscribers,
            sink,
            params,
            back,
        }
    }

    fn agreed(&mut self) {
        self.back = None;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(back) = self.back {
            self.subscribers.granted(&self.sink, back, &self.params);
        }
    }
}

/// `resources/subscribe` and `resources/unsubscribe`; the latter only if nobody else is subscribed.
pub(crate) async fn subscribing_along(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<ByteString, ServeError> {
    let params = exchange.params()?;
    let named = Object::parse(&params).unwrap_or_default();
    let uri = named.get_str("uri").unwrap_or_default();
    let method = exchange.inbound.job.method;
    let mut attempt = method.map(|method| Attempt::begin(&exchange, method, params.clone(), &uri));
    let is_wanted =
        method == Some(Method::ResourcesUnsubscribe) && exchange.binding.subscribers().wants(&uri);
    let served = match is_wanted {
        true => Ok(ByteString::from_static("{}")),
        false => rounds::asking_along(server, exchange).await,
    };
    if let (Some(attempt), Ok(_)) = (&mut attempt, &served) {
        attempt.agreed();
    }
    served
}
