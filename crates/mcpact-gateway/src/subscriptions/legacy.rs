//! Resource subscriptions of legacy clients at a legacy server.

use std::sync::Arc;

use mcpact::connection::RawResult;
use mcpact_spec::Method;
use mcpact_wire::raw::Object;

use crate::error::ServeError;
use crate::exchange::{Exchange, rounds};
use crate::sync::OnDrop;
use crate::upstream::UpstreamServer;

/// Returns true for a request that starts or ends a subscription.
pub(crate) const fn is_subscription(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe)
    )
}

/// Serves `resources/subscribe` and `resources/unsubscribe` of a legacy client at a legacy server. The server gets the
/// latter only if no other client is subscribed.
pub(crate) async fn change_subscription(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let params = exchange.params()?;
    let named = Object::parse(&params).unwrap_or_default();
    let uri = named.get_str("uri").unwrap_or_default();
    let subscribers = Arc::clone(exchange.binding.subscribers());
    let sink = exchange.inbound.sink.clone();
    let method = exchange.inbound.job.method;
    let reversal = match (method, subscribers.has_subscribed(&sink, &uri)) {
        (Some(Method::ResourcesSubscribe), false) => Some(Method::ResourcesUnsubscribe),
        (Some(Method::ResourcesUnsubscribe), true) => Some(Method::ResourcesSubscribe),
        _ => None,
    };
    // The change counts from the request on, because a client that unsubscribes meanwhile sees it.
    if let Some(method) = method {
        subscribers.record(&sink, method, &params);
    }
    let is_wanted = method == Some(Method::ResourcesUnsubscribe) && subscribers.wants(&uri);
    let revert = OnDrop::new(|| {
        if let Some(method) = reversal {
            subscribers.record(&sink, method, &params);
        }
    });
    let served = match is_wanted {
        true => Ok("{}".into()),
        false => rounds::relay_with_questions(server, exchange).await,
    };
    if served.is_ok() {
        revert.disarm();
    }
    served
}
