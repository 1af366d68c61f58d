//! `subscriptions/listen`.

use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_spec::tables::meta;
use serde_json::{Map, Value, json};

use super::{Core, Served};
use crate::server::context::Context;
use crate::server::handler_error::HandlerError;

impl Core {
    /// Serves a listen request until its client ends it or the server stops.
    pub(super) async fn listen(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let call = &context.call;
        let scope = Scope::Request(call.id.clone());
        let params = serde_json::to_string(params)?;
        let wanted = ListenFilter::parse(Some(&params)).unwrap_or_default();
        let granted = self.granted(wanted, context).encode();
        let granted = format!(r#"{{"notifications":{granted}}}"#);
        let method = Method::SubscriptionsAcknowledged;
        if let Some(first) = call
            .session
            .encode_notification(scope.clone(), method, &granted)
        {
            let (session, outbox) = (&call.session, &call.outbox);
            // A disconnected client is no longer served.
            let _ = self
                .subscribers
                .add_after(first, session, scope, outbox)
                .await;
        }
        let mut stopping = self.stopping.subscribe();
        if stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
        let id: Value = serde_json::from_str(call.id.raw())?;
        let result = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: id}});
        Ok(Served::Final(result.to_string()))
    }

    /// Returns the filter granted to a client, without resources and tasks that it cannot access.
    fn granted(&self, wanted: ListenFilter, context: &Context) -> ListenFilter {
        let mut granted = wanted.granted(context.pact());
        granted.uris.retain(|uri| self.registry.has_resource(uri));
        granted.tasks.retain(|task| self.tasks.has(task, context));
        granted
    }
}
