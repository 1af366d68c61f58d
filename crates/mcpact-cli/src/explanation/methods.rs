use mcpact_engine::gate::require_of_client;
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::Policy;
use mcpact_engine::reason::{Reason, Ruling};
use mcpact_engine::refusal::{Misbehaviour, Refusal};
use mcpact_spec::{Capability, Era, Kind, Method, ParamGate, ParamProbe, Revision, Role, Side};
use serde::Serialize;

/// Kind of message that carries a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageKind {
    /// A JSON-RPC request.
    Request,
    /// A JSON-RPC notification.
    Notification,
    /// An input request inside a result of the server.
    Question,
}

/// Whether a message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Open,
    Closed,
}

impl Verdict {
    const fn of(ruling: &Ruling) -> Self {
        if ruling.is_open() {
            Self::Open
        } else {
            Self::Closed
        }
    }
}

/// Verdict on one method in one direction.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MethodVerdict {
    /// The method.
    pub(crate) method: &'static str,
    /// The kind of message.
    pub(crate) kind: MessageKind,
    /// The sender.
    pub(crate) from: &'static str,
    /// Open if the sender may send it.
    pub(crate) verdict: Verdict,
    /// Stable reason code.
    pub(crate) reason: &'static str,
    /// The deciding capability, if any.
    pub(crate) capability: Option<String>,
    /// Full reason.
    pub(crate) explanation: String,
    /// Change that would allow it.
    pub(crate) remedy: Option<String>,
    /// Revision and page of the specification; `None` for rules of the profile.
    pub(crate) page: Option<String>,
    /// Parameters that must not be used in an allowed request.
    pub(crate) closed_params: Vec<DeniedParam>,
    /// Page of the specification, without the revision.
    #[serde(skip)]
    pub(crate) path: Option<&'static str>,
    /// Short reason for a table.
    #[serde(skip)]
    pub(crate) brief: String,
    /// True if the negotiated revision defines the method in this direction.
    #[serde(skip)]
    pub(crate) in_revision: bool,
}

/// A parameter that must not be used in an allowed request.
#[derive(Debug, Serialize)]
pub(crate) struct DeniedParam {
    /// The parameter, with its value where that matters.
    pub(crate) param: String,
    /// The required capability.
    pub(crate) capability: &'static str,
    /// Reason why the capability is not in effect.
    #[serde(skip)]
    pub(crate) explanation: String,
}

/// Returns a verdict for every method in every direction that any revision defines.
pub(crate) fn verdicts(pact: &Pact, policy: &Policy) -> Vec<MethodVerdict> {
    let mut all = Vec::new();
    for kind in [Kind::Request, Kind::Notification] {
        for from in [Side::Client, Side::Server] {
            let methods = Method::ALL.iter().filter(|m| is_ever_sent(**m, from, kind));
            all.extend(methods.map(|method| message(pact, policy, from, kind, *method)));
        }
    }
    if pact.era() == Era::Modern {
        let questions = Method::ALL.iter().filter(|m| is_question(**m, pact));
        all.extend(questions.map(|method| question(pact, *method)));
    }
    all
}

fn is_ever_sent(method: Method, from: Side, kind: Kind) -> bool {
    Revision::ALL
        .into_iter()
        .any(|revision| method.role(revision).allows(from, kind))
}

fn is_question(method: Method, pact: &Pact) -> bool {
    method.role(pact.revision()) == Role::EmbeddedInput
}

fn message(pact: &Pact, policy: &Policy, from: Side, kind: Kind, method: Method) -> MethodVerdict {
    let ruling = pact.rule_on(from, kind, method);
    let message_kind = match kind {
        Kind::Request => MessageKind::Request,
        Kind::Notification => MessageKind::Notification,
    };
    let verdict = MethodVerdict {
        in_revision: method.role(pact.revision()).allows(from, kind),
        ..verdict(pact, method, &ruling, message_kind)
    };
    if verdict.verdict == Verdict::Open && from == Side::Client {
        return with_profile_rule(verdict, pact, policy);
    }
    verdict
}

fn question(pact: &Pact, method: Method) -> MethodVerdict {
    let ruling = pact.rule_on_input(method);
    verdict(pact, method, &ruling, MessageKind::Question)
}

fn verdict(pact: &Pact, method: Method, ruling: &Ruling, kind: MessageKind) -> MethodVerdict {
    let path = method.page(pact.revision());
    MethodVerdict {
        method: method.as_str(),
        kind,
        from: ruling.sender.as_str(),
        verdict: Verdict::of(ruling),
        reason: reason_code(ruling.reason).as_str(),
        capability: deciding_capability(ruling.reason),
        explanation: ruling.explain(),
        remedy: ruling.remedy(),
        page: Some(format!("{} {path}", pact.revision())),
        closed_params: if ruling.is_open() && kind != MessageKind::Notification {
            denied_params(pact, method)
        } else {
            Vec::new()
        },
        path: Some(path),
        brief: brief(ruling),
        in_revision: true,
    }
}

/// Applies the capability requirement of the profile, which the specification does not have.
fn with_profile_rule(verdict: MethodVerdict, pact: &Pact, policy: &Policy) -> MethodVerdict {
    let path = match require_of_client(pact, policy, verdict.method) {
        Err(Refusal::PeerMisbehaved(Misbehaviour::ClientRequirement { path, .. })) => path,
        _ => return verdict,
    };
    MethodVerdict {
        verdict: Verdict::Closed,
        reason: MethodReason::ClientRequirement.as_str(),
        capability: Some(String::from(&*path)),
        brief: format!("client lacks `{path}` (profile rule)"),
        explanation: format!("the profile requires clients to declare `{path}`"),
        remedy: Some(format!(
            "declare `{path}` in the client, or use another profile"
        )),
        page: None,
        path: None,
        ..verdict
    }
}

fn denied_params(pact: &Pact, method: Method) -> Vec<DeniedParam> {
    ParamGate::of(method, pact.revision())
        .filter(|gate| !pact.declares(gate.capability))
        .map(|gate| DeniedParam {
            param: match gate.probe {
                ParamProbe::Present(key) => key.to_owned(),
                ParamProbe::Equals(key, values) => format!("{key}: {}", values.join(" or ")),
                ParamProbe::AbsentOr(key, value) => format!("{key}: {value}"),
            },
            capability: gate.capability.path(),
            explanation: absence(pact, gate.capability),
        })
        .collect()
}

fn absence(pact: &Pact, capability: Capability) -> String {
    let revision = pact.revision();
    if capability.presence(revision).counts() {
        format!("the {} did not declare `{capability}`", capability.owner())
    } else {
        format!("{revision} does not define `{capability}`")
    }
}

/// Returns the short reason for a table.
fn brief(ruling: &Ruling) -> String {
    match ruling.reason {
        Reason::Declared(capability) => format!("{} has `{capability}`", capability.owner()),
        Reason::Undeclared(capability) => format!("{} lacks `{capability}`", capability.owner()),
        Reason::Shared(extension) => format!("both have `{}`", extension.id()),
        Reason::OfServer(extension) => format!("server has `{}`", extension.id()),
        Reason::NotShared(extension, side) => format!("{side} lacks `{}`", extension.id()),
        Reason::NotInRevision => format!("not in {}", ruling.revision),
        _ => ruling.explain(),
    }
}

mcpact_spec::stable_strings! {
    /// Reason of a verdict on a method: `methods[].reason` in `mcpact explain --json`.
    pub(crate) enum MethodReason {
        /// The policy requires a client capability.
        ClientRequirement = "client-requirement",
        /// The capability is declared.
        Declared = "declared",
        /// The revision has the method, but never inside a result.
        NeverEmbedded = "never-embedded",
        /// None of several capabilities is declared.
        NoneDeclared = "none-declared",
        /// The revision does not have the method.
        NotInRevision = "not-in-revision",
        /// One side does not declare the extension.
        NotShared = "not-shared",
        /// The revision has the method only inside a result.
        OnlyEmbedded = "only-embedded",
        /// An unknown method that the policy lets pass.
        PassedUnknown = "passed-unknown",
        /// Both sides declare the extension.
        Shared = "shared",
        /// The capability is not declared.
        Undeclared = "undeclared",
        /// The method needs no capability.
        Ungated = "ungated",
        /// No revision defines the method.
        Unknown = "unknown",
        /// A request where the revision has a notification, or the reverse.
        WrongKind = "wrong-kind",
        /// The other side sends the method.
        WrongSender = "wrong-sender",
    }
}

const fn reason_code(reason: Reason) -> MethodReason {
    match reason {
        Reason::Ungated => MethodReason::Ungated,
        Reason::Declared(_) => MethodReason::Declared,
        Reason::Shared(_) => MethodReason::Shared,
        Reason::OfServer(_) => MethodReason::Declared,
        Reason::NoSetting(..) => MethodReason::Undeclared,
        Reason::PassedUnknown => MethodReason::PassedUnknown,
        Reason::Undeclared(_) => MethodReason::Undeclared,
        Reason::NoneDeclared(_) => MethodReason::NoneDeclared,
        Reason::NotShared(..) => MethodReason::NotShared,
        Reason::NotInRevision => MethodReason::NotInRevision,
        Reason::WrongSender => MethodReason::WrongSender,
        Reason::WrongKind => MethodReason::WrongKind,
        Reason::OnlyEmbedded => MethodReason::OnlyEmbedded,
        Reason::NeverEmbedded => MethodReason::NeverEmbedded,
        Reason::Unknown => MethodReason::Unknown,
    }
}

fn deciding_capability(reason: Reason) -> Option<String> {
    match reason {
        Reason::Declared(capability) | Reason::Undeclared(capability) => {
            Some(capability.path().to_owned())
        }
        Reason::NoneDeclared(all) => all.first().map(|capability| capability.path().to_owned()),
        Reason::Shared(extension)
        | Reason::OfServer(extension)
        | Reason::NotShared(extension, _)
        | Reason::NoSetting(extension, _) => Some(format!("extensions.{}", extension.id())),
        _ => None,
    }
}
