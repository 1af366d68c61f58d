//! What a legacy server on HTTP says without being asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use mcpact_transport::http::client::{Answer, AnswerBody, HttpClient};
use tokio::sync::mpsc;

use super::ATTEMPTS;
use super::reading::{Reading, Resume};
use super::refusal::{disagrees, forgot_session};
use super::way_back::WayBack;
use crate::figures::ServerFigures;
use crate::stable::DropReason;
use crate::upstream::mail::{Sorted, Stray, sort};

/// Who hears what belongs to no call.
pub(super) struct Ear {
    pub(super) strays: mpsc::Sender<Stray>,
    pub(super) figures: Arc<ServerFigures>,
}

/// The stream of a session, for what the server says without being asked.
pub(super) async fn listen(
    http: HttpClient,
    facts: Arc<HeaderMap>,
    ear: Ear,
    open: tokio::sync::oneshot::Sender<bool>,
    is_gone: Arc<AtomicBool>,
) {
    let mut open = Some(open);
    let mut was_there = false;
    let mut resume = Resume::default();
    while resume.attempt <= ATTEMPTS {
        let opened = http.listen(&facts, resume.last_id.as_deref()).await;
        if let Some(open) = open.take() {
            // Whoever connects may not wait any more.
            let is_there =
                matches!(&opened, Ok(answer) if matches!(answer.body, AnswerBody::Events(_)));
            let _ = open.send(is_there);
        }
        match opened {
            Ok(Answer {
                body: AnswerBody::Events(events),
                ..
            }) => {
                was_there = true;
                let mut reading = Reading { events, resume };
                while let Some(read) = reading.next().await {
                    let Ok(bytes) = read else {
                        ear.figures.dropped(DropReason::TooLong);
                        continue;
                    };
                    let stray = match sort(&bytes) {
                        Sorted::Note(note) => Stray::Note(note),
                        Sorted::Ask(ask) => {
                            let back = WayBack {
                                http: http.clone(),
                                facts: Arc::clone(&facts),
                            };
                            Stray::Ask(back.of(ask))
                        }
                        Sorted::Reply(..) => {
                            ear.figures.dropped(DropReason::LateAnswer);
                            continue;
                        }
                        Sorted::Nothing(why) => {
                            ear.figures.dropped(why);
                            continue;
                        }
                    };
                    if ear.strays.send(stray).await.is_err() {
                        return;
                    }
                }
                resume = reading.resume;
            }
            // 405 is the polite way to say that there is no such stream.
            Ok(answer) => {
                let status = answer.status;
                let is_another = status == 405 || disagrees(&answer);
                if was_there && (is_another || forgot_session(&answer)) {
                    is_gone.store(true, Ordering::Relaxed);
                }
                return tracing::debug!(status, "server offers no SSE stream");
            }
            Err(error) => tracing::debug!(%error, "failed to open the SSE stream"),
        }
        resume.attempt += 1;
        tokio::time::sleep(resume.pause()).await;
    }
    tracing::warn!("SSE stream lost; retries exhausted");
    // Whoever listens is better off with a new session than with one that says nothing.
    is_gone.store(true, Ordering::Relaxed);
}
