//! Questions of a server to the user: answered from a file or on the terminal, otherwise declined.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mcpact::client::AnswerError;
use mcpact::model::{ElicitResult, FormRequest, UrlRequest};
use tokio::sync::{mpsc, watch};

use super::answers::{Answers, fitting};
use super::failure::ClientFailure;
use crate::commands::approve::is_interactive;
use crate::report::{self, ask, progress::ProgressLine};

/// Answers the questions of one server, one after the other.
#[derive(Debug)]
pub(super) struct Questions {
    server: String,
    source: Source,
    progress: Arc<ProgressLine>,
    /// Number of open questions; changes with every event that restarts the timeout.
    open: watch::Sender<usize>,
    turn: tokio::sync::Mutex<()>,
    failed: mpsc::Sender<ClientFailure>,
    #[cfg(unix)]
    modes: Option<ask::TerminalModes>,
}

#[derive(Debug)]
enum Source {
    File(PathBuf, Box<Mutex<Answers>>),
    Terminal,
    None,
}

/// An open question, during which the server has no timeout.
struct OpenQuestion<'a>(&'a watch::Sender<usize>);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

impl Questions {
    /// Reads the answers. A failure to answer is sent to `failed`.
    pub(super) fn new(
        server: &str,
        answers: Option<&Path>,
        progress: Arc<ProgressLine>,
        failed: mpsc::Sender<ClientFailure>,
    ) -> Result<Self, ClientFailure> {
        let source = match answers {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|source| ClientFailure::ReadFile {
                    path: path.to_owned(),
                    source,
                })?;
                let answers = Answers::parse(&text).map_err(|reason| ClientFailure::Answer {
                    path: path.to_owned(),
                    reason,
                })?;
                Source::File(path.to_owned(), Box::new(Mutex::new(answers)))
            }
            None if is_interactive() => Source::Terminal,
            None => Source::None,
        };
        Ok(Self {
            server: server.to_owned(),
            source,
            progress,
            open: watch::Sender::new(0),
            turn: tokio::sync::Mutex::new(()),
            failed,
            #[cfg(unix)]
            modes: ask::TerminalModes::read(),
        })
    }

    /// Restores the terminal: a prompt may still wait for a key.
    pub(super) fn end(&self) {
        #[cfg(unix)]
        if matches!(self.source, Source::Terminal)
            && let Some(modes) = &self.modes
        {
            modes.restore();
        }
    }

    /// Restarts the timeout.
    pub(super) fn touch(&self) {
        self.open.send_modify(|_| {});
    }

    /// Returns the number of open questions, and its changes.
    pub(super) fn watch(&self) -> watch::Receiver<usize> {
        self.open.subscribe()
    }

    fn opened(&self) -> OpenQuestion<'_> {
        self.open.send_modify(|open| *open += 1);
        OpenQuestion(&self.open)
    }

    /// Answers a form.
    pub(super) async fn form(
        self: Arc<Self>,
        form: FormRequest,
    ) -> Result<ElicitResult, AnswerError> {
        let _turn = self.turn.lock().await;
        let _open = self.opened();
        match &self.source {
            Source::File(path, answers) => {
                let Some(answer) = next(answers) else {
                    return Ok(self.declined(&form.message));
                };
                fitting(&form, answer).map_err(|reason| self.unanswerable(path, reason))
            }
            Source::Terminal => {
                let this = Arc::clone(&self);
                self.blocking(move || this.progress.suspend(|| ask::form(&this.server, &form)))
                    .await
            }
            Source::None => Ok(self.declined(&form.message)),
        }
    }

    /// Answers a request to visit a URL.
    pub(super) async fn url(
        self: Arc<Self>,
        request: UrlRequest,
    ) -> Result<ElicitResult, AnswerError> {
        let _turn = self.turn.lock().await;
        let _open = self.opened();
        match &self.source {
            Source::Terminal => {
                let this = Arc::clone(&self);
                self.blocking(move || this.progress.suspend(|| ask::url(&this.server, &request)))
                    .await
            }
            Source::File(_, answers) => {
                self.progress
                    .suspend(|| ask::show_url(&self.server, &request));
                match next(answers) {
                    // Values of a form are no consent to visit a URL.
                    Some(answer) if answer.content.is_none() => Ok(answer),
                    Some(_) | None => Ok(self.declined(&request.message)),
                }
            }
            Source::None => {
                self.progress
                    .suspend(|| ask::show_url(&self.server, &request));
                Ok(self.declined(&request.message))
            }
        }
    }

    async fn blocking(
        &self,
        ask: impl FnOnce() -> ElicitResult + Send + 'static,
    ) -> Result<ElicitResult, AnswerError> {
        let asked = tokio::task::spawn_blocking(ask).await;
        asked.map_err(|error| AnswerError::internal(error.to_string()))
    }

    fn declined(&self, message: &str) -> ElicitResult {
        self.progress.suspend(|| {
            report::warn(
                &format!("declined a question of `{}`: {message}", self.server),
                "answer it in a terminal, or with `--answer FILE`",
            );
        });
        ElicitResult::decline()
    }

    fn unanswerable(&self, path: &Path, reason: String) -> AnswerError {
        // Only the first failure is reported.
        let _ = self.failed.try_send(ClientFailure::Answer {
            path: path.to_owned(),
            reason: reason.clone(),
        });
        AnswerError::rejected(reason)
    }
}

fn next(answers: &Mutex<Answers>) -> Option<ElicitResult> {
    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    answers.next()
}
