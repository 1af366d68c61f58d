//! Proof that a capability was negotiated: a value that only a pact hands out.

use core::marker::PhantomData;

use mcpact_spec::{Capability, Revision};

use crate::pact::Pact;

/// A capability as a type.
pub trait Grant {
    /// The row that must be in effect.
    const CAPABILITY: Capability;
}

macro_rules! grants {
    ($($name:ident)+) => {
        $(
            #[doc = concat!("Proof of [`Capability::", stringify!($name), "`].")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name {}

            impl Grant for $name {
                const CAPABILITY: Capability = Capability::$name;
            }
        )+
    };
}

grants! {
    Roots RootsListChanged Sampling SamplingTools SamplingContext Elicitation ElicitationForm
    ElicitationUrl ClientTasks Logging Completions Prompts PromptsListChanged Resources
    ResourcesSubscribe ResourcesListChanged Tools ToolsListChanged ServerTasks ServerTasksToolsCall
}

/// The right to use a capability. A capability that was not negotiated is a value that the program
/// does not hold.
///
/// ```compile_fail
/// use mcpact_engine::permit::{Permit, Sampling};
/// // There is no way to make one without a pact.
/// let forged: Permit<Sampling> = Permit { revision: todo!(), grant: todo!() };
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Permit<G: Grant> {
    revision: Revision,
    grant: PhantomData<G>,
}

impl<G: Grant> Permit<G> {
    /// The revision under which the capability may be used.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }
}

impl Pact {
    /// The permit for a capability, if it is in effect.
    #[must_use]
    pub fn permit<G: Grant>(&self) -> Option<Permit<G>> {
        self.declares(G::CAPABILITY).then_some(Permit {
            revision: self.revision(),
            grant: PhantomData,
        })
    }
}
