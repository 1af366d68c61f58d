//! Questions to the client, with the same interface in both eras.

use futures_util::future::join_all;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::refusal::Misbehaviour;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, ErrorCode, Method};
use mcpact_translate::shape::{adapt_params, with_elicitation_id};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::context::{CallScope, Context};
use super::handler_error::{HandlerError, Kind};
use super::session::QuestionOutcome;
use crate::lock;
use crate::model::{
    CreateMessageRequest, CreateMessageResult, ElicitAction, ElicitRequest, ElicitResult, Root,
};

/// Question to the client.
#[derive(Clone, Debug)]
pub enum Question {
    /// To the user: a form or a URL.
    Elicit(Box<ElicitRequest>),
    /// To the client's model.
    Sample(Box<CreateMessageRequest>),
    /// To the client itself.
    Roots,
}

impl Question {
    /// Creates a question to the user.
    #[must_use]
    pub fn elicit(request: ElicitRequest) -> Self {
        Self::Elicit(Box::new(request))
    }

    /// Creates a question to the client's model.
    #[must_use]
    pub fn sample(request: CreateMessageRequest) -> Self {
        Self::Sample(Box::new(request))
    }

    const fn method(&self) -> Method {
        match self {
            Self::Elicit(_) => Method::ElicitationCreate,
            Self::Sample(_) => Method::SamplingCreateMessage,
            Self::Roots => Method::RootsList,
        }
    }

    fn params(&self) -> Option<Value> {
        match self {
            Self::Elicit(request) => serde_json::to_value(request).ok(),
            Self::Sample(request) => serde_json::to_value(request).ok(),
            Self::Roots => None,
        }
    }

    /// Encodes the question as it appears in a result or a task.
    pub(super) fn request(&self) -> Value {
        let mut request = json!({"method": self.method().as_str()});
        if let Some(params) = self.params() {
            request["params"] = params;
        }
        request
    }

    /// Checks the question; an invalid one is an error of the handler.
    fn check(&self) -> Result<(), HandlerError> {
        match self {
            Self::Elicit(request) => {
                if let ElicitRequest::Form(form) = request.as_ref() {
                    form.check()?;
                    form.check_secrets()?;
                }
                Ok(())
            }
            Self::Sample(request) => Ok(request.check()?),
            Self::Roots => Ok(()),
        }
    }

    /// Returns `true` if an answer has the required shape; otherwise the question is asked again.
    pub(super) fn accepts(&self, answer: &Value) -> bool {
        match self {
            Self::Elicit(request) => serde_json::from_value::<ElicitResult>(answer.clone())
                .is_ok_and(|result| match (request.as_ref(), &result.content) {
                    (ElicitRequest::Form(form), Some(content))
                        if result.action == ElicitAction::Accept =>
                    {
                        form.validate(content).is_ok()
                    }
                    _ => true,
                }),
            Self::Sample(_) => {
                serde_json::from_value::<CreateMessageResult>(answer.clone()).is_ok()
            }
            Self::Roots => answer.get("roots").is_some_and(Value::is_array),
        }
    }
}

impl Context {
    /// Asks the user to fill in a form or to visit a URL.
    ///
    /// `key` identifies the question. On a modern connection the future stays pending: the call ends with the question,
    /// and the handler runs again from its start with the answer. Put side effects after the last question.
    ///
    /// `?`, `.ok()`, `match` and `join!` mean the same in both eras; a dropped question is withdrawn. A `select!`
    /// between a question and a timer does not: on a modern connection the question ends the call at once, so the
    /// timer never wins. Clients limit the time of their users themselves.
    ///
    /// # Errors
    /// The client does not support the question, returned an error, or disconnected; or `key` was used before.
    pub async fn elicit(
        &self,
        key: &str,
        request: ElicitRequest,
    ) -> Result<ElicitResult, HandlerError> {
        read(self.ask(key, Question::elicit(request)).await?)
    }

    /// Asks the client's model; see [`Context::elicit`] for `key`.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    pub async fn sample(
        &self,
        key: &str,
        request: CreateMessageRequest,
    ) -> Result<CreateMessageResult, HandlerError> {
        read(self.ask(key, Question::sample(request)).await?)
    }

    /// Asks for the client's roots; see [`Context::elicit`] for `key`.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, HandlerError> {
        let mut answer = self.ask(key, Question::Roots).await?;
        read(answer["roots"].take())
    }

    /// Asks one question and returns the raw answer.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    pub async fn ask(&self, key: &str, question: Question) -> Result<Value, HandlerError> {
        let mut answers = self.ask_all([(key.to_owned(), question)]).await?;
        Ok(answers.remove(key).unwrap_or_default())
    }

    /// Asks several questions in one round and returns the raw answers by key.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    pub async fn ask_all(
        &self,
        questions: impl IntoIterator<Item = (String, Question)>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let questions: Vec<_> = questions.into_iter().collect();
        for (_, question) in &questions {
            self.check_capability(question)?;
            question.check()?;
        }
        for (key, _) in &questions {
            if !lock(&self.call.rounds).keys.insert(key.clone()) {
                return Err(HandlerError::failed(format!(
                    "the key `{key}` was used for a question before"
                )));
            }
        }
        if let Some(task) = &self.call.task {
            return task.ask(questions).await;
        }
        match self.pact().era() {
            Era::Legacy => self.send_all(questions, None).await,
            Era::Modern => self.resolve_all(questions).await,
        }
    }

    /// Checks that the client declared the capability, in both eras.
    fn check_capability(&self, question: &Question) -> Result<(), HandlerError> {
        let pact = self.pact();
        let method = question.method();
        let ruling = match pact.era() {
            Era::Modern => pact.rule_on_input(method),
            Era::Legacy => pact.rule_on(
                mcpact_spec::Side::Server,
                mcpact_spec::Kind::Request,
                method,
            ),
        };
        let params = question.params().map(|params| params.to_string());
        let refusal = if !ruling.is_open() {
            let path = match ruling.reason {
                mcpact_engine::reason::Reason::Undeclared(capability) => Some(capability.path()),
                _ => None,
            };
            match path {
                Some(path) => Misbehaviour::ClientRequirement {
                    method: self.call.name.as_str().into(),
                    path: path.into(),
                },
                // The client's method exists; its revision lacks the question.
                None => {
                    return Err(HandlerError::invalid_params(format!(
                        "this request needs `{}` on the client: {}",
                        method.as_str(),
                        ruling.explain()
                    )));
                }
            }
        } else if let Some(gate) = pact.rule_on_params(method, params.as_deref()) {
            Misbehaviour::ClientRequirement {
                method: self.call.name.as_str().into(),
                path: gate.capability.path().into(),
            }
        } else {
            return Ok(());
        };
        Err(HandlerError(Kind::Refused(Box::new(refusal.into()))))
    }

    /// Sends the questions as legacy requests, on behalf of a task if given.
    pub(super) async fn send_all(
        &self,
        questions: Vec<(String, Question)>,
        task: Option<&str>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let mut open = Vec::new();
        for (key, question) in questions {
            let mut params = question.params().unwrap_or_else(|| json!({}));
            if let Some(task) = task {
                params["_meta"] = json!({ meta::RELATED_TASK: {"taskId": task} });
            }
            let mut params = params.to_string();
            let method = question.method();
            if let Question::Elicit(_) = &question {
                // A handler that announces completion has set an id; others need one only here.
                let id = super::http::random_id().unwrap_or_else(|| key.clone());
                params = with_elicitation_id(&params, &id)?.into_owned();
            }
            let params = adapt_params(method, &params, self.pact().revision())?.into_owned();
            open.push(async move {
                let CallScope {
                    session, outbox, ..
                } = &*self.call;
                let outcome = session.ask(method, &params, RequestTimeout::default(), outbox);
                (key, question, outcome.await)
            });
        }
        let mut answers = Map::new();
        for (key, question, outcome) in join_all(open).await {
            let raw = match outcome {
                QuestionOutcome::Result(raw) => raw,
                QuestionOutcome::Error(raw) => {
                    return Err(HandlerError::failed(format!(
                        "the client returned an error: {raw}"
                    )));
                }
                QuestionOutcome::Lost(why) => return Err(HandlerError::failed(why)),
                QuestionOutcome::Refused(why) => return Err(HandlerError::failed(why)),
            };
            let answer = serde_json::from_str(&raw)?;
            if !question.accepts(&answer) {
                let text = format!("the client's answer to `{key}` is invalid");
                return Err(HandlerError::failed(text));
            }
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Returns the answers, or stays pending: the call ends with the open questions.
    async fn resolve_all(
        &self,
        questions: Vec<(String, Question)>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let Some(mut lifetime) = self.call.lifetime.clone() else {
            return Err(HandlerError::rpc(
                ErrorCode::InternalError.code(),
                "the handler asked for input in a request that does not support it",
            ));
        };
        let (answers, open) = self.look_up(questions);
        if open.keys.is_empty() {
            return Ok(answers);
        }
        self.call.asked.notify_one();
        // Only a job that outlives the call sees its end; the handler is dropped.
        let _ = lifetime.changed().await;
        Err(HandlerError::failed("the call has ended"))
    }

    /// Returns the available answers, and opens the other questions.
    fn look_up(&self, questions: Vec<(String, Question)>) -> (Map<String, Value>, OpenKeys<'_>) {
        let mut rounds = lock(&self.call.rounds);
        let mut answers = Map::new();
        let mut keys = Vec::new();
        for (key, question) in questions {
            match rounds
                .answers
                .get(&key)
                .filter(|answer| question.accepts(answer))
            {
                Some(answer) => {
                    let answer = answer.clone();
                    rounds.used.insert(key.clone(), answer.clone());
                    answers.insert(key, answer);
                }
                None => {
                    rounds.open.insert(key.clone(), question.request());
                    keys.push(key);
                }
            }
        }
        let call = &self.call;
        (answers, OpenKeys { call, keys })
    }
}

/// Open questions of a future. Dropping it withdraws them.
struct OpenKeys<'a> {
    call: &'a CallScope,
    keys: Vec<String>,
}

impl Drop for OpenKeys<'_> {
    fn drop(&mut self) {
        for key in &self.keys {
            lock(&self.call.rounds).open.remove(key);
        }
    }
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, HandlerError> {
    Ok(serde_json::from_value(answer)?)
}
