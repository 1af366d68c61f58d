//! The JSON-RPC envelope: what kind of message it is, and its raw parts.

use alloc::borrow::Cow;

use mcpact_spec::{Era, Revision};

use crate::id::{Id, IdRef};
use crate::layout::Layout;
use crate::raw::JsonKind;
use crate::scan::{Cursor, ScanError, SeenKeys, text, utf8};

/// A message, borrowed from its bytes.
#[derive(Clone, Debug)]
pub enum Envelope<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// Wants none.
    Notification(Notification<'a>),
    /// Answers a request.
    Response(Response<'a>),
}

/// A message with a method and an id.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Echoed in the answer.
    pub id: IdRef<'a>,
    /// The method name, whatever it is.
    pub method: Cow<'a, str>,
    /// The parameters, unread.
    pub params: Params<'a>,
}

/// A message with a method and no id.
#[derive(Clone, Debug)]
pub struct Notification<'a> {
    /// The method name, whatever it is.
    pub method: Cow<'a, str>,
    /// The parameters, unread.
    pub params: Params<'a>,
}

/// A message with a result or an error.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// The request that it answers; an error about an unreadable request has none.
    pub id: Option<IdRef<'a>>,
    /// Result or error.
    pub outcome: Outcome<'a>,
}

/// Outcome of a request.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// It succeeded.
    Result(ResultBody<'a>),
    /// It failed; the raw error object.
    Error(&'a str),
}

/// The `params` of a request or notification: raw, with the members that routing reads.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    /// The whole object; absent when there is none.
    pub raw: Option<&'a str>,
    /// The reserved members of `_meta`.
    pub meta: Meta<'a>,
    /// The raw token of `name`.
    pub name: Option<&'a str>,
    /// The raw value of `arguments`.
    pub arguments: Option<&'a str>,
    /// The raw token of `uri`.
    pub uri: Option<&'a str>,
    /// The raw token of `taskId`.
    pub task_id: Option<&'a str>,
    /// True if there are members that are not listed here.
    pub has_others: bool,
    /// True if [`ambiguity::check`](crate::ambiguity::check) would find nothing: no object has a key twice, and all
    /// keys of this one and of `_meta` are listed here. False says nothing.
    pub is_clear: bool,
}

/// The `result` of an answer: raw, with the members that the protocol reads.
#[derive(Clone, Debug)]
pub struct ResultBody<'a> {
    /// The whole value.
    pub raw: &'a str,
    /// The reserved members of `_meta`.
    pub meta: Meta<'a>,
    /// The raw token of `resultType`.
    pub result_type: Option<&'a str>,
    /// Keys in the value, at any depth.
    pub seen: SeenKeys,
}

/// The reserved members of `_meta`, each a raw token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The whole value of `_meta`.
    pub raw: Option<&'a str>,
    /// `io.modelcontextprotocol/protocolVersion`
    pub protocol_version: Option<&'a str>,
    /// `io.modelcontextprotocol/clientCapabilities`
    pub client_capabilities: Option<&'a str>,
    /// `io.modelcontextprotocol/clientInfo`
    pub client_info: Option<&'a str>,
    /// `io.modelcontextprotocol/logLevel`
    pub log_level: Option<&'a str>,
    /// `progressToken`
    pub progress_token: Option<&'a str>,
    /// `io.modelcontextprotocol/serverInfo`
    pub server_info: Option<&'a str>,
    /// `io.modelcontextprotocol/subscriptionId`
    pub subscription_id: Option<&'a str>,
    /// `traceparent`
    pub trace_parent: Option<&'a str>,
}

impl Meta<'_> {
    /// Modern revision that the request names; none if it names none that this build supports.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        let named = Revision::parse(&text(self.protocol_version?)?)?;
        (named.era() == Era::Modern).then_some(named)
    }
}

/// Reason why JSON is not a JSON-RPC message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeFault {
    /// The value is neither an object nor an array.
    #[error("a message must be a JSON object")]
    NotAnObject,
    /// `jsonrpc` is not `"2.0"`.
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// The id is neither a string nor an integer.
    #[error("`id` must be a string or an integer")]
    Id,
    /// `method` is not a string.
    #[error("`method` must be a string")]
    Method,
    /// `params` is not an object.
    #[error("`params` must be an object")]
    Params,
    /// A protocol member of `params` stands twice; readers would disagree about which one counts.
    #[error("duplicate member `{0}` in `params`")]
    Duplicate(&'static str),
    /// Neither a method, nor a result, nor an error; or too many of them.
    #[error("exactly one of `method`, `result` and `error` must be there")]
    Parts,
    /// An array with nothing in it.
    #[error("a batch must not be empty")]
    EmptyBatch,
}

/// Reason why a text is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] ScanError),
    /// It is JSON, but not a message.
    #[error("not a JSON-RPC message: {fault}")]
    Shape {
        /// Kind of fault.
        fault: ShapeFault,
        /// The id to answer to, where one could be read and an answer is due.
        id: Option<Id>,
    },
}

impl<'a> Envelope<'a> {
    /// Reads one message from bytes.
    ///
    /// # Errors
    /// The bytes are not UTF-8, not JSON, or not a message.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EnvelopeError> {
        Self::read(utf8(bytes)?)
    }

    /// The same for what is known to be text.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn read(text: &'a str) -> Result<Self, EnvelopeError> {
        let layout = Layout::parse(text)?;
        Self::view(text, &layout)
    }

    /// Looks again at a message that was scanned before.
    ///
    /// # Errors
    /// The text is not a message, or `layout` is not its own.
    pub fn view(text: &'a str, layout: &Layout) -> Result<Self, EnvelopeError> {
        let shape = |fault| {
            // An answer to an answer would never end: only what looks like a request gets one.
            let is_answer = layout.result.is_there() || layout.error.is_there();
            let id = layout.id.of(text).and_then(IdRef::from_token);
            EnvelopeError::Shape {
                fault,
                id: id.filter(|_| !is_answer).map(IdRef::to_id),
            }
        };
        let version = layout.jsonrpc.of(text);
        let is_current = version == Some(r#""2.0""#)
            || version.and_then(crate::scan::text).as_deref() == Some("2.0");
        if !is_current {
            return Err(shape(ShapeFault::Version));
        }
        if let Some(name) = layout.doubled {
            return Err(shape(ShapeFault::Duplicate(name)));
        }
        let id = layout.id.of(text).map(IdRef::from_token);
        let parts = (
            layout.method.is_there(),
            layout.result.is_there(),
            layout.error.is_there(),
        );
        if !parts.0 && layout.params.is_there() {
            // Two readers could take the members of one body for those of the other.
            return Err(shape(ShapeFault::Parts));
        }
        match parts {
            (true, false, false) => {
                let method = layout
                    .method(text)
                    .ok_or_else(|| shape(ShapeFault::Method))?;
                let params = layout
                    .params(text)
                    .ok_or_else(|| shape(ShapeFault::Params))?;
                match id {
                    None => Ok(Self::Notification(Notification { method, params })),
                    Some(Some(id)) => Ok(Self::Request(Request { id, method, params })),
                    Some(None) => Err(shape(ShapeFault::Id)),
                }
            }
            (false, true, false) => match (id, layout.result.of(text)) {
                (Some(Some(id)), Some(raw)) => Ok(Self::Response(Response {
                    id: Some(id),
                    outcome: Outcome::Result(ResultBody {
                        raw,
                        meta: layout.meta(text),
                        result_type: layout.result_type.of(text),
                        seen: layout.seen,
                    }),
                })),
                _ => Err(shape(ShapeFault::Id)),
            },
            (false, false, true) => match (layout.id.of(text), layout.error.of(text)) {
                (Some(token), _) if id == Some(None) && JsonKind::of(token) != JsonKind::Null => {
                    Err(shape(ShapeFault::Id))
                }
                (_, Some(raw)) => Ok(Self::Response(Response {
                    id: id.flatten(),
                    outcome: Outcome::Error(raw),
                })),
                _ => Err(shape(ShapeFault::Parts)),
            },
            _ => Err(shape(ShapeFault::Parts)),
        }
    }

    /// The method, where there is one.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(&request.method),
            Self::Notification(note) => Some(&note.method),
            Self::Response(_) => None,
        }
    }

    /// The parameters, where there can be some.
    #[must_use]
    pub const fn params(&self) -> Option<&Params<'a>> {
        match self {
            Self::Request(request) => Some(&request.params),
            Self::Notification(note) => Some(&note.params),
            Self::Response(_) => None,
        }
    }
}

impl Layout {
    /// Scans a text that is exactly one message object.
    ///
    /// # Errors
    /// The text is not JSON, or JSON of another kind.
    pub fn parse(text: &str) -> Result<Self, EnvelopeError> {
        let mut cursor = Cursor::new(text);
        if cursor.next_byte()? != b'{' {
            crate::scan::check(text)?;
            return Err(EnvelopeError::Shape {
                fault: ShapeFault::NotAnObject,
                id: None,
            });
        }
        let layout = Self::scan(&mut cursor)?;
        cursor.end()?;
        Ok(layout)
    }

    fn method<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        self.method.of(text).and_then(crate::scan::text)
    }

    /// `null` counts as no parameters: some peers write it.
    fn params<'a>(&self, text: &'a str) -> Option<Params<'a>> {
        let raw = match self.params.of(text) {
            Some(raw) if raw.starts_with('{') => Some(raw),
            Some(raw) if JsonKind::of(raw) == JsonKind::Null => None,
            None => None,
            Some(_) => return None,
        };
        Some(Params {
            raw,
            meta: self.meta(text),
            name: self.name.of(text),
            arguments: self.arguments.of(text),
            uri: self.uri.of(text),
            task_id: self.task_id.of(text),
            has_others: self.has_others,
            is_clear: raw.is_some() && self.is_clear && !self.has_others && !self.meta.has_others,
        })
    }

    fn meta<'a>(&self, text: &'a str) -> Meta<'a> {
        if !self.meta.whole.is_there() {
            return Meta::default();
        }
        Meta {
            raw: self.meta.whole.of(text),
            protocol_version: self.meta.protocol_version.of(text),
            client_capabilities: self.meta.client_capabilities.of(text),
            client_info: self.meta.client_info.of(text),
            log_level: self.meta.log_level.of(text),
            progress_token: self.meta.progress_token.of(text),
            server_info: self.meta.server_info.of(text),
            subscription_id: self.meta.subscription_id.of(text),
            trace_parent: self.meta.trace_parent.of(text),
        }
    }
}

impl<'a> Params<'a> {
    /// The raw token of a member that [`mcpact_spec::Method::name_param`] names.
    #[must_use]
    pub fn routing_member(&self, key: &str) -> Option<&'a str> {
        match key {
            "name" => self.name,
            "uri" => self.uri,
            "taskId" => self.task_id,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
