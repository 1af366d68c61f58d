//! Principals of requests.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use http::HeaderMap;

/// Derives the principal of an HTTP request from its headers.
///
/// Sessions, tasks and questions belong to the principal that created them and are invisible to others. Requests
/// without a principal are anonymous and share everything. This is not authentication: a token or a proxy in front
/// must authenticate the request.
#[derive(Clone, Default)]
pub struct PrincipalSource {
    derive: Option<Arc<Derive>>,
}

type Derive = dyn Fn(&HeaderMap) -> Option<String> + Send + Sync;

impl PrincipalSource {
    /// Uses this function; its result is compared, never logged.
    pub fn from_fn(derive: impl Fn(&HeaderMap) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            derive: Some(Arc::new(derive)),
        }
    }

    pub(super) fn principal(&self, headers: &HeaderMap) -> Arc<str> {
        let derived = self.derive.as_ref().and_then(|derive| derive(headers));
        derived.map_or_else(anonymous, Arc::from)
    }
}

impl fmt::Debug for PrincipalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrincipalSource(..)")
    }
}

/// Principal of anonymous requests.
pub(super) fn anonymous() -> Arc<str> {
    static ANONYMOUS: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));
    Arc::clone(&ANONYMOUS)
}

/// Unique principal of an anonymous client with its own connection. No header can name it.
pub(super) fn unique_connection() -> Arc<str> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("\0connection {number}").into()
}
