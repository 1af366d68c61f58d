//! For whom caches on the way to a client may keep a result.

use std::sync::atomic::Ordering;

use bytestring::ByteString;
use mcpact_spec::{Era, Method, Revision};

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::edit;
use crate::upstream::UpstreamServer;

const SCOPE: &str = "cacheScope";

impl UpstreamServer {
    /// A result that nobody keeps for others. A server cannot know what the gateway hides from whom, and a
    /// bad one could have everybody served what it has said to one.
    pub(crate) fn in_private(
        &self,
        method: Option<Method>,
        client: Revision,
        raw: ByteString,
    ) -> ByteString {
        if self.is_public.load(Ordering::Relaxed)
            || client.era() == Era::Legacy
            || !method.is_some_and(is_kept)
            || !raw.contains(SCOPE)
        {
            return raw;
        }
        let private = edit(&raw, SCOPE, |scope| {
            (scope == r#""public""#).then(|| String::from(r#""private""#))
        });
        private.map_or(raw, Into::into)
    }
}

/// Whether results of a method may be kept at all.
fn is_kept(method: Method) -> bool {
    ListKind::of(method).is_some() || method == Method::ResourcesRead
}
