//! Resource subscriptions of legacy clients at a legacy server.

use std::sync::Arc;

use bytestring::ByteString;
use mcpact_spec::Method;
use mcpact_wire::raw::Object;

use crate::downstream::sink::ClientSink;
use crate::error::ServeError;
use crate::exchange::{Exchange, rounds};
use crate::subscriptions::subscribers::Subscribers;
use crate::upstream::UpstreamServer;

/// Returns true for a request that starts or ends a subscription.
pub(crate) const fn is_subscription(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe)
    )
}

/// Change of a subscription that counts from the request on: a client that unsubscribes meanwhile sees it. Dropping it
/// reverts the change unless the server accepted it.
struct SubscriptionAttempt {
    subscribers: Arc<Subscribers>,
    sink: ClientSink,
    params: ByteString,
    /// Request that reverts the change.
    revert: Option<Method>,
}

impl SubscriptionAttempt {
    fn begin(exchange: &Exchange, method: Method, params: ByteString, uri: &str) -> Self {
        let subscribers = Arc::clone(exchange.binding.subscribers());
        let sink = exchange.inbound.sink.clone();
        let revert = match (method, subscribers.has_subscribed(&sink, uri)) {
            (Method::ResourcesSubscribe, false) => Some(Method::ResourcesUnsubscribe),
            (Method::ResourcesUnsubscribe, true) => Some(Method::ResourcesSubscribe),
            _ => None,
        };
        subscribers.record(&sink, method, &params);
        Self {
            subscribers,
            sink,
            params,
            revert,
        }
    }
}

impl Drop for SubscriptionAttempt {
    fn drop(&mut self) {
        if let Some(revert) = self.revert {
            self.subscribers.record(&self.sink, revert, &self.params);
        }
    }
}

/// Serves `resources/subscribe` and `resources/unsubscribe` of a legacy client at a legacy server. The server gets the
/// latter only if no other client is subscribed.
pub(crate) async fn change_subscription(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<ByteString, ServeError> {
    let params = exchange.params()?;
    let named = Object::parse(&params).unwrap_or_default();
    let uri = named.get_str("uri").unwrap_or_default();
    let method = exchange.inbound.job.method;
    let attempt =
        method.map(|method| SubscriptionAttempt::begin(&exchange, method, params.clone(), &uri));
    let is_wanted =
        method == Some(Method::ResourcesUnsubscribe) && exchange.binding.subscribers().wants(&uri);
    let served = match is_wanted {
        true => Ok(ByteString::from_static("{}")),
        false => rounds::asking_along(server, exchange).await,
    };
    if let (Some(mut attempt), Ok(_)) = (attempt, &served) {
        attempt.revert = None;
    }
    served
}
