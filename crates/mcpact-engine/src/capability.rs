//! Declared capabilities: the document as received, and its meaning.

mod bits;
mod encode;
mod extension;
mod parse;
mod set;
mod vendor;

pub use bits::CapabilityBits;
pub use encode::Trimmed;
pub use extension::{Agreement, SharedExtension, agree};
pub(crate) use extension::{agree_experimental, share, share_experimental};
pub use set::{CapabilitySet, State};
pub use vendor::VendorExtras;
