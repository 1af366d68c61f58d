//! Who goes along with requests.

use std::fmt::Debug;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Goes along with every request to a server: says something that changes from one to the next, and hears what the
/// answers say.
pub trait Escort: Debug + Send + Sync {
    /// What the next request says beside everything else.
    fn header(&self) -> Option<(HeaderName, HeaderValue)>;

    /// The head of an answer.
    fn answered(&self, status: StatusCode, headers: &HeaderMap);
}
