//! Who is behind a request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use http::HeaderMap;

/// Tells from the headers of an HTTP request on whose behalf it comes.
///
/// A session, a task and a question belong to the principal that began them: to every other one they
/// do not exist. Where nothing is told, everybody is the same nobody. This is not authentication; it
/// names somebody whom a token or a proxy in front has let in.
#[derive(Clone, Default)]
pub struct Principals {
    tell: Option<Arc<dyn Tells>>,
}

trait Tells: Send + Sync {
    fn tell(&self, headers: &HeaderMap) -> Option<String>;
}

impl<F: Fn(&HeaderMap) -> Option<String> + Send + Sync> Tells for F {
    fn tell(&self, headers: &HeaderMap) -> Option<String> {
        self(headers)
    }
}

impl Principals {
    /// As the function tells; what it gives is compared, never written down.
    pub fn told_by(tell: impl Fn(&HeaderMap) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            tell: Some(Arc::new(tell)),
        }
    }

    pub(super) fn of(&self, headers: &HeaderMap) -> Arc<str> {
        let told = self.tell.as_ref().and_then(|tell| tell.tell(headers));
        told.map_or_else(nobody, Arc::from)
    }
}

impl fmt::Debug for Principals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principals(..)")
    }
}

/// The principal of everybody who has none.
pub(super) fn nobody() -> Arc<str> {
    static NOBODY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));
    Arc::clone(&NOBODY)
}

/// Somebody who is nobody else: a client that has a connection for itself. No header can name it.
pub(super) fn somebody() -> Arc<str> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("\0connection {number}").into()
}
