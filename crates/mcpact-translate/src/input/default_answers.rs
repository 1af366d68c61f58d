//! Configured answers for clients that cannot be asked.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, Era, ErrorCode, Extension, Kind, Method, Revision, Side};
use mcpact_wire::model::error::{ErrorBody, encode};
use mcpact_wire::raw::{Object, ObjectWriter};

use super::answer::{CANCELLED, DECLINED, Outcome};
use super::ending::unanswered_call;
use super::question::{is_question, refused_param};

/// Answers for clients that did not declare that they can be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultAnswers {
    /// Answer to forms and URLs.
    pub elicitation: Option<Dismissal>,
    /// The words in which a sample is refused.
    pub sampling: Option<String>,
    /// The addresses of the roots.
    pub roots: Option<Vec<String>>,
}

/// Refusal of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dismissal {
    /// The user said no.
    Decline,
    /// The user said nothing.
    Cancel,
}

/// Result of a modern server after the default answers were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnsweredResult {
    /// It is the client's as it is.
    Pass,
    /// The client is asked what it can answer; for the rest the server asks again.
    Ask(String),
    /// The server is called again with these parameters.
    Again(String),
    /// The client gets this result.
    Answer(String),
    /// The client gets this error.
    Fail(WireError),
}

impl DefaultAnswers {
    /// Returns whether it answers nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.elicitation.is_none() && self.sampling.is_none() && self.roots.is_none()
    }

    /// Capabilities that the answers cover.
    #[must_use]
    pub fn capabilities(&self) -> CapabilityBits {
        let rows = [
            (Capability::Elicitation, self.elicitation.is_some()),
            (Capability::ElicitationForm, self.elicitation.is_some()),
            (Capability::ElicitationUrl, self.elicitation.is_some()),
            (Capability::Sampling, self.sampling.is_some()),
            (Capability::Roots, self.roots.is_some()),
        ];
        let there = rows.into_iter().filter(|(_, is_there)| *is_there);
        there.map(|(row, _)| row).collect()
    }

    /// Declaration of a client together with the default answers.
    #[must_use]
    pub fn added_to(&self, client: &CapabilitySet) -> CapabilitySet {
        let rows = self.capabilities();
        if rows.iter().all(|row| client.declared().has(row)) {
            return client.clone();
        }
        let own = CapabilitySet::declaring(Side::Client, rows.iter());
        let document = merged(client.raw(), own.raw());
        CapabilitySet::lenient(Side::Client, Some(&document))
    }

    /// Capabilities that only the default answers cover, for servers that cannot ask this client.
    #[must_use]
    pub fn missing_from(&self, client: &CapabilitySet) -> CapabilitySet {
        let declared = client.declared();
        let is_form = |row: Capability| row.path().starts_with("elicitation");
        // A client that has one form of elicitation is asked in no other.
        let has_form = declared.has(Capability::Elicitation);
        let is_ours = |row: &Capability| !(declared.has(*row) || has_form && is_form(*row));
        CapabilitySet::declaring(Side::Client, self.capabilities().iter().filter(is_ours))
    }

    /// Declaration for a modern server, if it differs from that of its modern client. None for a client
    /// with tasks: it would have to answer itself what it never declared.
    #[must_use]
    pub fn declared_for(&self, client: &CapabilitySet) -> Option<CapabilitySet> {
        if self.is_empty() {
            return None;
        }
        let mut extensions = client.extensions();
        if extensions.any(|(id, _)| id == Extension::Tasks.id()) {
            return None;
        }
        let joined = self.added_to(client);
        (joined != *client).then_some(joined)
    }

    /// Answer to a question of any server.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "there are three questions, and nothing answers any other"
    )]
    #[must_use]
    pub fn answer(&self, method: Method) -> Option<Outcome> {
        match method {
            Method::ElicitationCreate => self.elicitation.map(|dismissal| {
                Outcome::Result(String::from(match dismissal {
                    Dismissal::Decline => DECLINED,
                    Dismissal::Cancel => CANCELLED,
                }))
            }),
            Method::SamplingCreateMessage => self.sampling.as_ref().map(|words| {
                let code = ErrorCode::UserRejected.code();
                Outcome::Error(encode(code, words, None))
            }),
            Method::RootsList => self.roots.as_ref().map(|roots| {
                let roots: Vec<String> = roots
                    .iter()
                    .map(|uri| ObjectWriter::new().text("uri", uri).finish())
                    .collect();
                let list = format!("[{}]", roots.join(","));
                Outcome::Result(ObjectWriter::new().raw("roots", &list).finish())
            }),
            _ => None,
        }
    }

    /// Answer to a question without a recipient, if no client that could be meant declared that it can
    /// be asked.
    #[must_use]
    pub fn answer_unless_declared(
        &self,
        declared: CapabilityBits,
        method: Method,
        server: Revision,
    ) -> Option<Outcome> {
        let needed = method.gate(server).capability(Side::Server)?;
        if declared.has(needed) {
            return None;
        }
        self.answer(method)
    }

    /// Answer to a question that this client cannot be asked; none if it can, or if there is no default.
    #[must_use]
    pub fn answer_for(&self, client: &Pact, method: Method, params: &str) -> Option<Outcome> {
        let ruling = match client.era() {
            Era::Legacy => client.rule_on(Side::Server, Kind::Request, method),
            Era::Modern => client.rule_on_input(method),
        };
        let can = ruling.is_open() && refused_param(client, method, params).is_none();
        if can { None } else { self.answer(method) }
    }

    /// Applies the answers to the `result` of a modern server that was called with these `params` for a
    /// modern client.
    #[must_use]
    pub fn apply(
        &self,
        client: &Pact,
        method: Method,
        params: &str,
        result: &str,
    ) -> AnsweredResult {
        let Some(round) = Object::parse(result).ok().filter(asks) else {
            return AnsweredResult::Pass;
        };
        let requests = round.get_present("inputRequests").unwrap_or("{}");
        let requests = Object::parse(requests).unwrap_or_default();
        let (mut theirs, mut ours) = (ObjectWriter::new(), ObjectWriter::new());
        let (mut is_theirs, mut is_ours) = (false, false);
        for (key, raw) in requests.iter() {
            match self.answer_to(client, raw) {
                None => {
                    theirs = theirs.raw(key, raw);
                    is_theirs = true;
                }
                Some((_, Outcome::Result(answer))) => {
                    ours = ours.raw(key, &answer);
                    is_ours = true;
                }
                // There is no place for an error among the answers: the call is over.
                Some((asked, Outcome::Error(error))) => {
                    return refused(client, method, asked, &error);
                }
            }
        }
        match (is_ours, is_theirs) {
            (false, _) => AnsweredResult::Pass,
            (true, true) => {
                let kept = round.keep(|key| key != "inputRequests");
                AnsweredResult::Ask(kept.raw("inputRequests", &theirs.finish()).finish())
            }
            (true, false) => AnsweredResult::Again(again(params, &round, &ours.finish())),
        }
    }

    fn answer_to(&self, client: &Pact, request: &str) -> Option<(Method, Outcome)> {
        let request = Object::parse(request).ok()?;
        let method = Method::parse(&request.get_str("method")?)?;
        let params = request.get_present("params").unwrap_or("{}");
        let answer = self.answer_for(client, method, params)?;
        is_question(method).then_some((method, answer))
    }
}

fn asks(result: &Object<'_>) -> bool {
    result.get_str("resultType").as_deref() == Some("input_required")
}

/// The same call with what is known now.
fn again(params: &str, round: &Object<'_>, answers: &str) -> String {
    let params = Object::parse(params).unwrap_or_default();
    params
        .keep(|key| !matches!(key, "inputResponses" | "requestState"))
        .raw("inputResponses", answers)
        .maybe_raw("requestState", round.get_present("requestState"))
        .finish()
}

fn refused(client: &Pact, method: Method, asked: Method, error: &str) -> AnsweredResult {
    let message = ErrorBody::parse(error).map(|body| body.message);
    let text = format!("{asked} was refused: {}", message.unwrap_or_default());
    let data = ObjectWriter::new().raw("clientError", error).finish();
    unanswered_call(method, client.revision(), &text, Some(data))
        .map_or_else(AnsweredResult::Fail, AnsweredResult::Answer)
}

/// Everything that one document has, and what only the other one has, level by level.
fn merged(one: &str, other: &str) -> String {
    let (one, other) = (
        Object::parse(one).unwrap_or_default(),
        Object::parse(other).unwrap_or_default(),
    );
    let out = one.iter().fold(ObjectWriter::new(), |out, (key, raw)| {
        match (Object::parse(raw), other.get(key)) {
            (Ok(_), Some(more)) => out.raw(key, &merged(raw, more)),
            // What is no object says that it is not there.
            (Err(_), Some(more)) => out.raw(key, more),
            (_, None) => out.raw(key, raw),
        }
    });
    let is_new = |(key, _): &(&str, &str)| one.get(key).is_none();
    out.members(other.iter().filter(is_new)).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_engine::policy::Reading;

    fn declared(raw: &str) -> CapabilitySet {
        CapabilitySet::parse(Side::Client, Some(raw), Reading::Strict).unwrap()
    }

    /// A server sees what the client declares and what is answered here, and nothing else.
    #[test]
    fn servers_see_declared_and_default_answers() {
        let default_answers = DefaultAnswers {
            elicitation: Some(Dismissal::Cancel),
            roots: Some(Vec::new()),
            ..DefaultAnswers::default()
        };
        let all = r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#;
        let cells = [
            ("{}", all, all),
            (
                r#"{"elicitation":{},"x":1}"#,
                r#"{"elicitation":{"form":{},"url":{}},"x":1,"roots":{}}"#,
                r#"{"roots":{}}"#,
            ),
            (
                r#"{"roots":{"listChanged":true},"sampling":{}}"#,
                r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#,
                r#"{"elicitation":{"form":{},"url":{}}}"#,
            ),
        ];
        let value = |raw: &str| serde_json::from_str::<serde_json::Value>(raw).unwrap();
        for (client, joined, alone) in cells {
            let client = declared(client);
            assert_eq!(
                value(default_answers.added_to(&client).raw()),
                value(joined)
            );
            assert_eq!(
                value(default_answers.missing_from(&client).raw()),
                value(alone)
            );
        }
        let none = DefaultAnswers::default();
        assert_eq!(none.added_to(&declared("{}")), declared("{}"));
        assert!(none.declared_for(&declared("{}")).is_none() && none.is_empty());
    }
}
