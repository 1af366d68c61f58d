//! Connections of the HTTP client.

use hyper::rt::{Read, Write};

/// Bidirectional byte stream.
pub(crate) trait Duplex: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Duplex for T {}

/// Connection to a server or proxy, plain or TLS.
pub(crate) type ClientStream = Box<dyn Duplex>;
