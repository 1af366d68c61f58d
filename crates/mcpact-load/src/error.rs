//! Errors of measurements.

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A pipe, socket, file or program failed.
    #[error("a pipe, socket, file or program failed")]
    Io(#[from] std::io::Error),
    /// An HTTP exchange broke off.
    #[error("an HTTP exchange broke off")]
    Http(#[from] hyper::Error),
    /// A request could not be put together.
    #[error("a request could not be put together")]
    Request(#[from] http::Error),
    /// Invalid JSON from a program.
    #[error("what a program wrote is not JSON")]
    Json(#[from] serde_json::Error),
    /// A subject ended or did not say where it listens.
    #[error("the subject `{0}` ended or did not say where it listens")]
    Silent(String),
    /// An answer is not the one that was asked for.
    #[error("status {status} instead of the echo: {body}")]
    WrongAnswer {
        /// The status, 0 where there is none.
        status: u16,
        /// The answer, or its beginning.
        body: String,
    },
    /// Our own client or server failed.
    #[error("our own peer failed: {0}")]
    Ours(String),
    /// The other library's client or server failed.
    #[error("the other peer failed: {0}")]
    Theirs(String),
}

impl LoadError {
    /// An answer that is not the echo.
    #[must_use]
    pub fn wrong(status: u16, body: &[u8]) -> Self {
        let start = body.get(..300).unwrap_or(body);
        Self::WrongAnswer {
            status,
            body: String::from_utf8_lossy(start).into_owned(),
        }
    }
}
