//! Reasons why a message may or may not be sent: data first, sentences from it.

use alloc::string::String;

use mcpact_spec::{Capability, Extension, Kind, Method, Revision, Role, Side};

/// Reason of a verdict. Small and copyable, so that a ruling allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The method needs no capability.
    Ungated,
    /// The capability was declared.
    Declared(Capability),
    /// Both sides declared the extension.
    Shared(Extension),
    /// The server declared the extension.
    OfServer(Extension),
    /// No revision defines the method. The policy lets such methods pass, or the server declared an
    /// extension that the tables do not know.
    PassedUnknown,
    /// The owner of the capability did not declare it.
    Undeclared(Capability),
    /// None of these was declared.
    NoneDeclared(&'static [Capability]),
    /// This side did not declare the extension.
    NotShared(Extension, Side),
    /// The server declared the extension without this setting.
    NoSetting(Extension, &'static str),
    /// The revision does not have the method.
    NotInRevision,
    /// The revision has the method, but this side does not send it.
    WrongSender,
    /// The revision has the method, but as a request where this is a notification, or the reverse.
    WrongKind,
    /// The revision has the method only as a question inside a result.
    OnlyEmbedded,
    /// The revision has the method as a message of its own, never inside a result.
    NeverEmbedded,
    /// No revision defines the method.
    Unknown,
}

/// A verdict on one message, with everything that explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The method, if any revision defines it.
    pub method: Option<Method>,
    /// Sender.
    pub sender: Side,
    /// Kind of message.
    pub kind: Kind,
    /// The revision that the peers agreed on.
    pub revision: Revision,
    /// Reason.
    pub reason: Reason,
}

impl Ruling {
    /// Returns whether the message may be said.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(
            self.reason,
            Reason::Ungated
                | Reason::Declared(_)
                | Reason::Shared(_)
                | Reason::OfServer(_)
                | Reason::PassedUnknown
        )
    }

    /// The reason as a sentence.
    #[must_use]
    pub fn explain(&self) -> String {
        let revision = self.revision;
        match self.reason {
            Reason::Ungated => String::from("needs no capability"),
            Reason::Declared(c) => alloc::format!("the {} declared `{c}`", c.owner()),
            Reason::Shared(e) => alloc::format!("both sides declared `{}`", e.id()),
            Reason::OfServer(e) => alloc::format!("the server declared `{}`", e.id()),
            Reason::PassedUnknown => {
                String::from("no revision defines it; unknown methods may pass here")
            }
            Reason::Undeclared(c) => alloc::format!("the {} did not declare `{c}`", c.owner()),
            Reason::NoneDeclared(all) => {
                let mut text = String::from("the server declared none of");
                for c in all {
                    text.push_str(&alloc::format!(" `{c}`"));
                }
                text
            }
            Reason::NotShared(e, lacking) => {
                alloc::format!("the {lacking} did not declare the extension `{}`", e.id())
            }
            Reason::NoSetting(e, key) => {
                alloc::format!("the server declared `{}` without `{key}`", e.id())
            }
            Reason::NotInRevision => match self.method.and_then(|m| availability(m, revision)) {
                Some(other) => alloc::format!("{revision} does not have it ({other})"),
                None => alloc::format!("{revision} does not have it"),
            },
            Reason::WrongSender => {
                alloc::format!("in {revision} only the {} sends it", self.sender.peer())
            }
            Reason::WrongKind => match self.kind {
                Kind::Request => alloc::format!("in {revision} it is a notification"),
                Kind::Notification => alloc::format!("in {revision} it is a request"),
            },
            Reason::OnlyEmbedded => alloc::format!(
                "in {revision} it is a question inside an `input_required` result, not a message"
            ),
            Reason::NeverEmbedded => alloc::format!(
                "in {revision} it is a message of its own, not a question inside a result"
            ),
            Reason::Unknown => String::from("no revision defines it"),
        }
    }

    /// Remedy for a closed verdict.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self.reason {
            Reason::Ungated
            | Reason::Declared(_)
            | Reason::Shared(_)
            | Reason::OfServer(_)
            | Reason::PassedUnknown => None,
            Reason::NoSetting(_, key) => Some(alloc::format!(
                "declare `{key}` as true in the settings of the extension"
            )),
            Reason::Undeclared(capability) => Some(declare(capability)),
            Reason::NoneDeclared(all) => all.first().copied().map(declare),
            Reason::NotShared(e, lacking) => Some(alloc::format!(
                "declare `{}` under `extensions` in the {lacking}'s capabilities",
                e.id()
            )),
            Reason::NotInRevision => self
                .method
                .and_then(|m| availability(m, self.revision))
                .map(|other| alloc::format!("{other}; a bridge can translate")),
            Reason::WrongSender | Reason::WrongKind => Some(String::from(
                "correct the sender; no setting makes this valid",
            )),
            Reason::NeverEmbedded => Some(String::from("send it as a request")),
            Reason::OnlyEmbedded => Some(String::from(
                "answer the client's request with `input_required` and put the question in it",
            )),
            Reason::Unknown => Some(String::from(
                "check the spelling, or let unknown methods pass if it is an extension",
            )),
        }
    }

    /// Page of the specification.
    #[must_use]
    pub fn page(&self) -> Option<String> {
        self.method
            .map(|m| alloc::format!("{} {}", self.revision, m.page(self.revision)))
    }
}

fn declare(capability: Capability) -> String {
    let owner = capability.owner();
    alloc::format!("declare `{capability}` in the {owner}'s capabilities, or do without")
}

/// Methods that a later revision replaced, with what took their place.
const SUCCESSORS: [(Method, &str); 6] = [
    (
        Method::LoggingSetLevel,
        "`_meta` `io.modelcontextprotocol/logLevel`",
    ),
    (Method::ResourcesSubscribe, "`subscriptions/listen`"),
    (Method::ResourcesUnsubscribe, "`subscriptions/listen`"),
    (Method::Initialize, "`server/discover`"),
    (Method::Initialized, "`server/discover`"),
    (Method::TasksResult, "`tasks/get`"),
];

/// Revisions that have a method, or its successor, as a sentence.
fn availability(method: Method, revision: Revision) -> Option<String> {
    let having = |r: &Revision| method.role(*r) != Role::Absent;
    let first = Revision::ALL.into_iter().find(having)?;
    let last = Revision::ALL.into_iter().rev().find(having)?;
    let successor = SUCCESSORS.iter().find(|(gone, _)| *gone == method);
    // What came later can only have taken the place of what was there before.
    if let Some((_, successor)) = successor.filter(|_| revision > last) {
        return Some(alloc::format!("{successor} took its place"));
    }
    Some(if first == last {
        alloc::format!("only {first} has it")
    } else if Revision::ALL.ends_with(&[last]) {
        alloc::format!("it came with {first}")
    } else {
        alloc::format!("it went after {last}")
    })
}
