//! Streams of changes.

use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_spec::tables::meta;
use serde_json::{Map, Value, json};

use super::{Core, Served};
use crate::server::context::Context;
use crate::server::error::HandlerError;

impl Core {
    /// A listen request lives until its client ends it or the server stops.
    pub(super) async fn listen(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let call = &context.call;
        let scope = Scope::Request(call.id.clone());
        let params = serde_json::to_string(params)?;
        let wanted = ListenFilter::parse(Some(&params)).unwrap_or_default();
        let agreed = self.agreed(wanted, context).encode();
        let agreed = format!(r#"{{"notifications":{agreed}}}"#);
        let method = Method::SubscriptionsAcknowledged;
        if let Some(first) = call.session.note(scope.clone(), method, &agreed) {
            let (session, outbox) = (&call.session, &call.outbox);
            // A client that has gone away is no longer served, either.
            let _ = self.changes.add_told(first, session, scope, outbox).await;
        }
        let mut stopping = self.stopping.subscribe();
        if stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
        let id: Value = serde_json::from_str(call.id.raw())?;
        let result = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: id}});
        Ok(Served::Final(result.to_string()))
    }

    /// What a client is promised to hear: nothing of a resource or task that it cannot have.
    fn agreed(&self, wanted: ListenFilter, context: &Context) -> ListenFilter {
        let mut agreed = wanted.granted(context.pact());
        agreed.uris.retain(|uri| self.registry.has_resource(uri));
        agreed.tasks.retain(|task| self.tasks.has(task, context));
        agreed
    }
}
