//! One file per table; one row per fact; one column per revision, oldest first.

pub mod capabilities;
pub mod errors;
pub mod extensions;
pub mod features;
pub mod fields;
pub mod gates;
pub mod headers;
pub mod keys;
pub mod levels;
pub mod meta;
pub mod methods;
pub mod pages;
