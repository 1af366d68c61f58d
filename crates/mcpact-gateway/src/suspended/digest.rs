//! What a state is good for: this binding and this call.

use mcpact::server::backend::ClientKey;
use mcpact_spec::Method;
use mcpact_translate::input::Binding;
use mcpact_translate::lifecycle::canonical;
use mcpact_wire::raw::{Object, ObjectWriter};
use sha2::{Digest, Sha256};

use crate::exchange::Inbound;

/// What a call is bound to. A key belongs to the call rather than to the principal, who has no more calls for having
/// many keys.
pub(crate) fn binding(inbound: &Inbound) -> Binding {
    let Inbound { job, sink } = inbound;
    let params = Object::parse(&job.params).unwrap_or_default();
    let stable = params
        .iter()
        .filter(|(key, _)| !matches!(*key, "inputResponses" | "requestState" | "_meta"))
        .fold(ObjectWriter::new(), |out, (key, raw)| out.raw(key, raw))
        .finish();
    let key = match &sink.identity().key {
        ClientKey::Key(key) => &**key,
        // A connection is its owner's already.
        ClientKey::None | ClientKey::Connection(_) => "",
    };
    // The parameters are an object, so that it is plain where the key begins.
    let about = Sha256::new_with_prefix(canonical(&stable)).chain_update(key);
    Binding {
        principal: Sha256::digest(sink.owner()).into(),
        method: job.method.unwrap_or(Method::ToolsCall),
        params: about.finalize().into(),
    }
}
