//! A header that is computed for each request.

use std::fmt::Debug;

use http::{HeaderName, HeaderValue};

/// Provides a header for each request to a server.
pub trait RequestHeader: Debug + Send + Sync {
    /// Returns the header of the next request.
    fn header(&self) -> Option<(HeaderName, HeaderValue)>;
}
