//! Binding of a sealed state to a client and a call.

use mcpact::server::backend::ClientKey;
use mcpact_spec::Method;
use mcpact_translate::input::Binding;
use mcpact_translate::lifecycle::canonical;
use mcpact_wire::raw::{Object, ObjectWriter};
use sha2::{Digest, Sha256};

use crate::exchange::Inbound;

/// Returns the binding of a call. A client key is part of the call digest rather than of the principal. Otherwise a
/// principal could raise its limit of calls by using many keys.
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
        // A connection already belongs to its owner.
        ClientKey::None | ClientKey::Connection(_) => "",
    };
    // The parameters are a JSON object, so the start of the key is unambiguous.
    let about = Sha256::new_with_prefix(canonical(&stable)).chain_update(key);
    Binding {
        principal: Sha256::digest(sink.owner()).into(),
        method: job.method.unwrap_or(Method::ToolsCall),
        params: about.finalize().into(),
    }
}
