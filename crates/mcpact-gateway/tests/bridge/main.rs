//! Real clients and real servers of every revision, with a bridge between them.

mod matrix;
mod middle;
