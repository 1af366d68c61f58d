//! Client of one server, for the commands that list, call and read.

pub(crate) mod answers;
pub(crate) mod arguments;
mod failure;
pub(crate) mod form_fields;
pub(crate) mod input_schema;
pub(crate) mod output;
mod questions;
mod session;

pub(crate) use self::failure::ClientFailure;
pub(crate) use self::session::{Session, Tasks, run};
