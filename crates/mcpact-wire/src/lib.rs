//! stub
#![no_std]
extern crate alloc;
pub mod frame;
pub mod header_value;
