use mcpact_engine::gate::require_of_client;
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::Policy;
use mcpact_engine::reason::{Reason, Ruling};
use mcpact_engine::refusal::{Misbehaviour, Refusal};
use mcpact_spec::{Capability, Era, Kind, Method, ParamGate, ParamProbe, Revision, Role, Side};

/// In what a method travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// A message that wants an answer.
    Request,
    /// A message that wants none.
    Notification,
    /// A question inside the server's result.
    Question,
}

impl Carrier {
    /// The stable word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Question => "question",
        }
    }
}

/// The verdict on one method in one direction.
#[derive(Debug)]
pub(crate) struct Row {
    /// The method.
    pub(crate) method: Method,
    /// Who would say it.
    pub(crate) from: Side,
    /// As what.
    pub(crate) carrier: Carrier,
    /// May it be said?
    pub(crate) is_open: bool,
    /// Whether the agreed revision has the method in this direction at all.
    pub(crate) in_revision: bool,
    /// Why, as a stable word.
    pub(crate) reason: &'static str,
    /// The capability that decided, if one did.
    pub(crate) capability: Option<String>,
    /// Why, in a few words.
    pub(crate) brief: String,
    /// Why, as a sentence.
    pub(crate) explanation: String,
    /// What would open it.
    pub(crate) remedy: Option<String>,
    /// Where the specification describes it; a rule of the profile stands nowhere in it.
    pub(crate) page: Option<&'static str>,
    /// What must not be used in an open request.
    pub(crate) params: Vec<ParamRow>,
}

/// A parameter of an open request that stays closed.
#[derive(Debug)]
pub(crate) struct ParamRow {
    /// The parameter, with its value where that matters.
    pub(crate) member: String,
    /// What it would need.
    pub(crate) capability: Capability,
    /// Why that is not there.
    pub(crate) explanation: String,
}

/// Every method in every direction in which any revision has it.
pub(crate) fn rows(pact: &Pact, policy: &Policy) -> Vec<Row> {
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

fn message(pact: &Pact, policy: &Policy, from: Side, kind: Kind, method: Method) -> Row {
    let ruling = pact.rule_on(from, kind, method);
    let carrier = match kind {
        Kind::Request => Carrier::Request,
        Kind::Notification => Carrier::Notification,
    };
    let row = Row {
        in_revision: method.role(pact.revision()).allows(from, kind),
        ..row(pact, method, &ruling, carrier)
    };
    if row.is_open && from == Side::Client {
        return require(row, pact, policy);
    }
    row
}

fn question(pact: &Pact, method: Method) -> Row {
    let ruling = pact.rule_on_input(method);
    row(pact, method, &ruling, Carrier::Question)
}

fn row(pact: &Pact, method: Method, ruling: &Ruling, carrier: Carrier) -> Row {
    Row {
        method,
        from: ruling.sender,
        carrier,
        is_open: ruling.is_open(),
        in_revision: true,
        reason: stable(ruling.reason).as_str(),
        capability: deciding(ruling.reason),
        brief: brief(ruling),
        explanation: ruling.explain(),
        remedy: ruling.remedy(),
        page: Some(method.page(pact.revision())),
        params: if ruling.is_open() && carrier != Carrier::Notification {
            closed_params(pact, method)
        } else {
            Vec::new()
        },
    }
}

/// The profile's own rule on top of the specification.
fn require(row: Row, pact: &Pact, policy: &Policy) -> Row {
    let path = match require_of_client(pact, policy, row.method.as_str()) {
        Err(Refusal::PeerMisbehaved(Misbehaviour::ClientRequirement { path, .. })) => path,
        _ => return row,
    };
    Row {
        is_open: false,
        reason: MethodReason::ClientRequirement.as_str(),
        capability: Some(String::from(&*path)),
        brief: format!("client lacks `{path}` (rule of the profile)"),
        explanation: format!("the profile serves it only to clients that declare `{path}`"),
        remedy: Some(format!(
            "declare `{path}` in the client's capabilities, or choose another profile"
        )),
        page: None,
        ..row
    }
}

fn closed_params(pact: &Pact, method: Method) -> Vec<ParamRow> {
    ParamGate::of(method, pact.revision())
        .filter(|gate| !pact.declares(gate.capability))
        .map(|gate| ParamRow {
            member: match gate.probe {
                ParamProbe::Present(key) => key.to_owned(),
                ParamProbe::Equals(key, values) => format!("{key}: {}", values.join(" or ")),
                ParamProbe::AbsentOr(key, value) => format!("{key}: {value}"),
            },
            capability: gate.capability,
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

/// The reason as it stands in a table.
fn brief(ruling: &Ruling) -> String {
    match ruling.reason {
        Reason::Declared(capability) => format!("{} has `{capability}`", capability.owner()),
        Reason::Undeclared(capability) => format!("{} lacks `{capability}`", capability.owner()),
        Reason::Shared(extension) => format!("both have `{}`", extension.id()),
        Reason::NotShared(extension, side) => format!("{side} lacks `{}`", extension.id()),
        Reason::NotInRevision => format!("{} does not have it", ruling.revision),
        Reason::Ungated
        | Reason::PassedUnknown
        | Reason::NoneDeclared(_)
        | Reason::WrongSender
        | Reason::WrongKind
        | Reason::OnlyEmbedded
        | Reason::NeverEmbedded
        | Reason::Unknown => ruling.explain(),
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

const fn stable(reason: Reason) -> MethodReason {
    match reason {
        Reason::Ungated => MethodReason::Ungated,
        Reason::Declared(_) => MethodReason::Declared,
        Reason::Shared(_) => MethodReason::Shared,
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

fn deciding(reason: Reason) -> Option<String> {
    match reason {
        Reason::Declared(capability) | Reason::Undeclared(capability) => {
            Some(capability.path().to_owned())
        }
        Reason::NoneDeclared(all) => all.first().map(|capability| capability.path().to_owned()),
        Reason::Shared(extension) | Reason::NotShared(extension, _) => {
            Some(format!("extensions.{}", extension.id()))
        }
        Reason::Ungated
        | Reason::PassedUnknown
        | Reason::NotInRevision
        | Reason::WrongSender
        | Reason::WrongKind
        | Reason::OnlyEmbedded
        | Reason::NeverEmbedded
        | Reason::Unknown => None,
    }
}
