//! Questions of a legacy server that modern clients find in a result, and answer later.

use mcpact_translate::input::{Outcome, ServerAnswer};
use mcpact_wire::id::Id;

use mcpact::connection::ServerRequest;

/// What is not answered yet. Dropped with the call or the task that it belongs to, it is refused.
#[derive(Debug, Default)]
pub(crate) struct UnansweredQuestions(Vec<ServerRequest>);

/// Answers, and what they are for.
#[must_use]
pub(crate) struct QuestionAnswers(Vec<(ServerRequest, Outcome)>);

impl UnansweredQuestions {
    pub(crate) fn keep(&mut self, ask: ServerRequest) {
        self.0.push(ask);
    }

    fn take(&mut self, id: &Id) -> Option<ServerRequest> {
        let at = self.0.iter().position(|ask| ask.id == *id)?;
        Some(self.0.remove(at))
    }

    /// The server takes a question back.
    pub(crate) fn withdrawn(&mut self, id: &Id) {
        if let Some(ask) = self.take(id) {
            ask.cancelled();
        }
    }

    /// These are answered from here on; what is asked no more needs no answer.
    pub(crate) fn due(&mut self, answers: Vec<ServerAnswer>) -> QuestionAnswers {
        let due = answers.into_iter();
        QuestionAnswers(
            due.filter_map(|ServerAnswer { id, outcome }| Some((self.take(&id)?, outcome)))
                .collect(),
        )
    }
}

impl QuestionAnswers {
    /// Tells the server.
    pub(crate) async fn tell(self) {
        for (ask, outcome) in self.0 {
            ask.answer(&outcome).await;
        }
    }
}
