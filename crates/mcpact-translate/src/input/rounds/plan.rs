//! One round read as a whole, before the client is asked anything.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::pact::Pact;
use mcpact_spec::Method;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::Question;
use crate::input::answer::{ACCEPTED, CANCELLED, Outcome};
use crate::input::check_boxes::{CheckBoxes, spread};
use crate::input::default_answers::DefaultAnswers;
use crate::input::question::{QuestionError, is_question, question_to_legacy};
use crate::shape::with_elicitation_id;

/// A URL that the client is sent to.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) id: Box<str>,
    url: Box<str>,
    message: Box<str>,
    /// The user agreed to go there.
    pub(super) is_accepted: bool,
}

impl Visit {
    /// As 2025-11-25 names it in the data of an error.
    pub(super) fn encode(&self) -> String {
        ObjectWriter::new()
            .text("mode", "url")
            .text("elicitationId", &self.id)
            .text("url", &self.url)
            .text("message", &self.message)
            .finish()
    }

    /// The URL that the question sends to, if it sends to one.
    fn parse(method: Method, params: &str) -> Option<Self> {
        let params = Object::parse(params).ok()?;
        let is_url =
            method == Method::ElicitationCreate && params.get_str("mode").as_deref() == Some("url");
        is_url.then(|| Self {
            id: Box::default(),
            url: params.get_str("url").unwrap_or_default().into(),
            message: params.get_str("message").unwrap_or_default().into(),
            is_accepted: false,
        })
    }
}

/// A question, and what must be known to understand its answer.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) question: Question,
    pub(super) visit: Option<Visit>,
    pub(super) boxes: Option<CheckBoxes>,
}

/// Plan of a round.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Questions to the client.
    pub(super) questions: Vec<Planned>,
    /// Answers known without asking.
    pub(super) answers: Vec<(Box<str>, String)>,
    /// The earlier visits that the server still waits for.
    pub(super) awaited: Vec<usize>,
    /// Question that a default answer refuses: key, method and raw error.
    pub(super) refused: Option<(Box<str>, Method, String)>,
}

/// Client, default answers and earlier questions.
pub(super) struct Reading<'a> {
    pub(super) downstream: &'a Pact,
    pub(super) default_answers: &'a DefaultAnswers,
    pub(super) visits: &'a [Visit],
    pub(super) most: usize,
    pub(super) mint: &'a mut dyn FnMut() -> String,
}

impl Reading<'_> {
    /// Reads the raw `inputRequests`; one question that is not allowed spoils the round.
    pub(super) fn plan(&mut self, requests: &str) -> Result<Plan, String> {
        let requests =
            Object::parse(requests).map_err(|fault| format!("`inputRequests`: {fault}"))?;
        if requests.len() > self.most {
            return Err(format!("{} questions at once", requests.len()));
        }
        let mut plan = Plan::default();
        for (key, raw) in requests.iter() {
            self.add(&mut plan, key, raw)
                .map_err(|fault| format!("input request `{key}`: {fault}"))?;
        }
        Ok(plan)
    }

    fn add(&mut self, plan: &mut Plan, key: &str, raw: &str) -> Result<(), String> {
        let request = Object::parse(raw).map_err(|fault| format!("{fault}"))?;
        let method = request
            .get_str("method")
            .and_then(|name| Method::parse(&name))
            .filter(|method| is_question(*method))
            .ok_or("its method is none that a result can ask with")?;
        let params = request.get_present("params").unwrap_or("{}");
        let mut visit = Visit::parse(method, params);
        if let Some(known) = self.accepted(visit.as_ref()) {
            plan.awaited.push(known);
            plan.answers.push((key.into(), ACCEPTED.into()));
            return Ok(());
        }
        let params = self.identify(visit.as_mut(), params)?;
        match self.adapt(method, &params) {
            Ok((params, boxes)) => {
                let key = key.into();
                let question = Question {
                    key,
                    method,
                    params,
                };
                plan.questions.push(Planned {
                    question,
                    visit,
                    boxes,
                });
            }
            // The nearest meaning: the user saw no form and chose nothing.
            Err(QuestionError::Inexpressible) => plan.answers.push((key.into(), CANCELLED.into())),
            Err(QuestionError::Undeclared(what)) => match self.default_answers.answer(method) {
                Some(Outcome::Result(answer)) => plan.answers.push((key.into(), answer)),
                Some(Outcome::Error(error)) => plan.refused = Some((key.into(), method, error)),
                None => return Err(what),
            },
            Err(QuestionError::Violation(what)) => return Err(what),
        }
        Ok(())
    }

    fn adapt(
        &self,
        method: Method,
        params: &str,
    ) -> Result<(String, Option<CheckBoxes>), QuestionError> {
        match question_to_legacy(method, params, self.downstream) {
            Err(QuestionError::Inexpressible) => {
                let (form, boxes) = spread(params).ok_or(QuestionError::Inexpressible)?;
                let adapted = question_to_legacy(method, &form, self.downstream)?;
                Ok((adapted, Some(boxes)))
            }
            adapted => adapted.map(|params| (params, None)),
        }
    }

    /// A URL that the user already agreed to visit is not shown again.
    fn accepted(&self, visit: Option<&Visit>) -> Option<usize> {
        let url = &visit?.url;
        self.visits
            .iter()
            .position(|known| known.is_accepted && known.url == *url)
    }

    fn identify<'p>(
        &mut self,
        visit: Option<&mut Visit>,
        params: &'p str,
    ) -> Result<Cow<'p, str>, String> {
        let Some(visit) = visit else {
            return Ok(Cow::Borrowed(params));
        };
        visit.id = (self.mint)().into();
        with_elicitation_id(params, &visit.id).map_err(|fault| format!("{fault}"))
    }
}
