//! Cache scope of results: limits which caches between the gateway and a client may reuse a result.

use std::sync::atomic::Ordering;

use mcpact::connection::RawResult;
use mcpact_spec::{Era, Method, Revision};

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::edit;
use crate::upstream::UpstreamServer;

const SCOPE: &str = "cacheScope";

/// Changes the cache scope of a result from public to private. The server cannot know which items the gateway
/// hides from which client. A malicious server could otherwise have one client's result served to all.
pub(crate) fn in_private(
    server: &UpstreamServer,
    method: Option<Method>,
    client: Revision,
    raw: RawResult,
) -> RawResult {
    if server.is_public.load(Ordering::Relaxed)
        || client.era() == Era::Legacy
        || !method.is_some_and(is_cacheable)
        || !raw.contains(SCOPE)
    {
        return raw;
    }
    let private = edit(&raw, SCOPE, |scope| {
        (scope == r#""public""#).then(|| String::from(r#""private""#))
    });
    private.map_or(raw, Into::into)
}

/// Returns true if results of a method are cacheable at all.
fn is_cacheable(method: Method) -> bool {
    ListKind::of(method).is_some() || matches!(method, Method::ResourcesRead | Method::SkillsGet)
}
