//! Errors of rows.

/// Error that ends a row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
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
    /// A task of the driver was lost.
    #[error("a task of the driver was lost")]
    Task(#[from] tokio::task::JoinError),
    /// The library's own peer failed.
    #[error("our own peer failed: {0}")]
    Ours(String),
    /// Something that must be so before the fault can be shown is not so.
    #[error("{0}")]
    Stage(String),
    /// Something did not come to pass in time.
    #[error("in vain waited for {0}")]
    Patience(&'static str),
}

impl RowError {
    /// Something that must be so before the fault can be shown is not so.
    pub(crate) fn stage(text: impl Into<String>) -> Self {
        Self::Stage(text.into())
    }

    /// With everything that caused it.
    pub(crate) fn told(&self) -> String {
        let mut text = self.to_string();
        let mut next = std::error::Error::source(self);
        while let Some(cause) = next {
            text = format!("{text}: {cause}");
            next = cause.source();
        }
        text
    }
}
