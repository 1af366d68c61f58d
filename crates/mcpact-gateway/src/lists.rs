//! Lists of tools, prompts and resources: fetched, cached and merged.

pub(crate) mod bindings;
pub(crate) mod cache;
pub(crate) mod cache_entry;
pub(crate) mod merged;
pub(crate) mod own;
pub(crate) mod pages;
pub(crate) mod refresh;
pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod server_list;
pub(crate) mod watch;
