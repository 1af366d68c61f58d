//! Asking the client for input: one way to write it, two ways to carry it.

use futures_util::future::join_all;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::refusal::Misbehaviour;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Method};
use mcpact_translate::shape::{adapt_params, with_elicitation_id};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::context::{CallScope, Context};
use super::error::{HandlerError, Kind};
use super::session::Heard;
use crate::model::{
    CreateMessageRequest, CreateMessageResult, ElicitAction, ElicitRequest, ElicitResult, Root,
};

/// Something that only the client can answer.
#[derive(Clone, Debug)]
pub enum Question {
    /// For the user: a form, or a page to visit.
    Elicit(Box<ElicitRequest>),
    /// For the client's model.
    Sample(Box<CreateMessageRequest>),
    /// For the client itself.
    Roots,
}

impl Question {
    /// A question for the user.
    #[must_use]
    pub fn elicit(request: ElicitRequest) -> Self {
        Self::Elicit(Box::new(request))
    }

    /// A question for the client's model.
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

    /// The question as it stands inside a result or a task.
    pub(super) fn request(&self) -> Value {
        let mut request = json!({"method": self.method().as_str()});
        if let Some(params) = self.params() {
            request["params"] = params;
        }
        request
    }

    /// A question that no client should be asked is the handler's own mistake.
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

    /// Whether an answer has the shape that this question needs; any other is asked for again.
    pub(super) fn accepts(&self, answer: &Value) -> bool {
        match self {
            Self::Elicit(request) => serde_json::from_value::<ElicitResult>(answer.clone())
                .is_ok_and(|result| match (request.as_ref(), &result.content) {
                    (ElicitRequest::Form(form), Some(content))
                        if result.action == ElicitAction::Accept =>
                    {
                        form.fits(content).is_ok()
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
    /// Asks the user to fill in a form or to visit a page.
    ///
    /// `key` names the question: on a modern connection the handler runs again from its start once
    /// the answer is there, and finds it under this name. Do what must not happen twice after the
    /// last question.
    ///
    /// # Errors
    /// The client cannot be asked this, or went away. Pass the error on with `?`.
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

    /// Asks one question and gives the raw answer.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    pub async fn ask(&self, key: &str, question: Question) -> Result<Value, HandlerError> {
        let mut answers = self.ask_all([(key.to_owned(), question)]).await?;
        Ok(answers.remove(key).unwrap_or_default())
    }

    /// Asks several questions in one round and gives the raw answers by key.
    ///
    /// # Errors
    /// As for [`Context::elicit`].
    pub async fn ask_all(
        &self,
        questions: impl IntoIterator<Item = (String, Question)>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let questions: Vec<_> = questions.into_iter().collect();
        for (_, question) in &questions {
            self.may_ask(question)?;
            question.check()?;
        }
        if let Some(task) = &self.call.task {
            return task.ask(questions).await;
        }
        match self.pact().era() {
            Era::Legacy => self.push_all(questions, None).await,
            Era::Modern => self.look_up_all(questions),
        }
    }

    /// What the client did not declare is not asked for, in either era.
    fn may_ask(&self, question: &Question) -> Result<(), HandlerError> {
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
                // The client's own method exists; it is ours that its revision lacks.
                None => {
                    return Err(HandlerError::invalid_params(format!(
                        "this needs `{}` of the client: {}",
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

    /// Sends the questions as requests of a legacy connection, for a task where there is one.
    pub(super) async fn push_all(
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
                // Whoever wants to tell of its completion has given it an id; others need none but here.
                let minted = super::http::random_id().unwrap_or_else(|| key.clone());
                params = with_elicitation_id(&params, &minted)?.into_owned();
            }
            let params = adapt_params(method, &params, self.pact().revision())?.into_owned();
            open.push(async move {
                let CallScope {
                    session, outbox, ..
                } = &*self.call;
                let heard = session.ask(method, &params, RequestTimeout::default(), outbox);
                (key, question, heard.await)
            });
        }
        let mut answers = Map::new();
        for (key, question, heard) in join_all(open).await {
            let raw = match heard {
                Heard::Result(raw) => raw,
                Heard::Error(raw) => {
                    return Err(HandlerError::failed(format!("the client refused: {raw}")));
                }
                Heard::Lost(why) => return Err(HandlerError::failed(why)),
                Heard::Refused(why) => return Err(HandlerError::failed(why)),
            };
            let answer = serde_json::from_str(&raw)?;
            if !question.accepts(&answer) {
                let text = format!("the client's answer to `{key}` does not fit the question");
                return Err(HandlerError::failed(text));
            }
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Takes the answers that are there and asks for the rest by ending this run of the handler.
    fn look_up_all(
        &self,
        questions: Vec<(String, Question)>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let mut rounds = self.rounds();
        let mut answers = Map::new();
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
                    rounds.open.insert(key, question.request());
                }
            }
        }
        if rounds.open.is_empty() {
            Ok(answers)
        } else {
            Err(HandlerError(Kind::Interrupted))
        }
    }
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, HandlerError> {
    Ok(serde_json::from_value(answer)?)
}
