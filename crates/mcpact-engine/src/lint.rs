//! Does a server do what it says, and say what it does?

use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Gate, Kind, Method, Revision, Role, Side};

use crate::capability::{CapabilityBits, CapabilitySet};

/// A difference between the handlers and the declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// There is a handler, but no peer may call it.
    Undeclared {
        /// The handler's method.
        method: Method,
        /// Capability that would have to be declared.
        capability: Capability,
    },
    /// It is declared, but a call would find no handler.
    Unimplemented {
        /// The declaration.
        capability: Capability,
        /// The method without a handler.
        method: Method,
    },
}

impl Mismatch {
    /// The difference as a sentence with its remedy.
    #[must_use]
    pub fn explain(self) -> String {
        match self {
            Self::Undeclared { method, capability } => alloc::format!(
                "`{method}` has a handler but `{capability}` is not declared: declare it, or \
                 remove the handler"
            ),
            Self::Unimplemented { capability, method } => alloc::format!(
                "`{capability}` is declared but `{method}` has no handler: add it, or do not \
                 declare"
            ),
        }
    }
}

/// Compares handlers with a declaration, under a revision.
#[must_use]
pub fn compare(handlers: &[Method], declared: &CapabilitySet, revision: Revision) -> Vec<Mismatch> {
    let owner = declared.owner();
    let effective = declared.declared().under(revision);
    let mut all = Vec::new();
    for &method in Method::ALL {
        let Some(capability) = gating(method, owner, revision) else {
            continue;
        };
        match (handlers.contains(&method), effective.has(capability)) {
            (true, false) => all.push(Mismatch::Undeclared { method, capability }),
            (false, true) => all.push(Mismatch::Unimplemented { capability, method }),
            (true, true) | (false, false) => {}
        }
    }
    all
}

/// The declaration that follows from handlers and flags: nothing forgotten, nothing invented.
///
/// `flags` are the capabilities that no handler implies, such as `tools.listChanged`; a flag without
/// a handler for its parent is left out.
#[must_use]
pub fn declaration(
    owner: Side,
    handlers: &[Method],
    flags: &[Capability],
    revision: Revision,
) -> CapabilitySet {
    let implied: CapabilityBits = handlers
        .iter()
        .filter_map(|method| gating(*method, owner, revision))
        .collect();
    let has_parent = |flag: &Capability| {
        let parent = flag.path().split('.').next().unwrap_or_default();
        flag.path() == parent
            || implied
                .iter()
                .any(|c| c.path().split('.').next() == Some(parent))
    };
    let flags = flags.iter().copied().filter(has_parent);
    CapabilitySet::declaring(owner, implied.iter().chain(flags))
}

/// The capability that lets the peer send `method` to `owner`, if it is a request behind one.
fn gating(method: Method, owner: Side, revision: Revision) -> Option<Capability> {
    let role = method.role(revision);
    let receives = role.allows(owner.peer(), Kind::Request) || role == Role::EmbeddedInput;
    let gate: Gate = method.gate(revision);
    gate.capability(owner.peer())
        .filter(|c| receives && c.owner() == owner)
}
