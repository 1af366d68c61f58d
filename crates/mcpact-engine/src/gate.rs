//! The rules on one message: who may send it, as what, and what must have been declared.

use alloc::boxed::Box;

use mcpact_spec::{Extension, Gate, Kind, Method, ParamGate, ParamProbe, Role, Side, Violation};
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;

use crate::pact::Pact;
use crate::policy::{Enforcement, OnUnknown, Policy};
use crate::reason::{Reason, Ruling};
use crate::refusal::{ApiMisuse, Misbehaviour, Refusal};

impl Pact {
    /// Rules on a message by its name.
    ///
    /// Nothing is allocated; the order is: known at all, in this revision, from this side, as this
    /// kind, with its capability.
    #[must_use]
    pub fn rule(&self, sender: Side, kind: Kind, method: &str) -> Ruling {
        match Method::parse(method) {
            Some(method) => self.rule_on(sender, kind, method),
            None => self.ruling(sender, kind, None, Reason::Unknown),
        }
    }

    /// Rules on a message that no revision may define.
    ///
    /// A client's request may belong to an extension of the server that the tables do not know.
    #[must_use]
    pub fn rule_with(&self, unknown: OnUnknown, sender: Side, kind: Kind, method: &str) -> Ruling {
        let ruling = self.rule(sender, kind, method);
        let is_of_extension = || {
            let server = &self.party(Side::Server).capabilities;
            (sender, kind) == (Side::Client, Kind::Request) && server.has_unknown_extension()
        };
        let is_unknown = ruling.reason == Reason::Unknown;
        if is_unknown && (unknown == OnUnknown::Pass || is_of_extension()) {
            return self.ruling(sender, kind, None, Reason::PassedUnknown);
        }
        ruling
    }

    /// Rules on a message of a known method.
    #[must_use]
    pub fn rule_on(&self, sender: Side, kind: Kind, method: Method) -> Ruling {
        let role = method.role(self.revision());
        let reason = if role.allows(sender, kind) {
            self.ask(method.gate(self.revision()), sender)
        } else {
            wrong_role(role, sender, kind)
        };
        self.ruling(sender, kind, Some(method), reason)
    }

    /// Rules on a question that a modern server would put into an `input_required` result.
    #[must_use]
    pub fn rule_on_input(&self, method: Method) -> Ruling {
        let role = method.role(self.revision());
        let reason = if role == Role::EmbeddedInput {
            self.ask(method.gate(self.revision()), Side::Server)
        } else if role == Role::Absent {
            Reason::NotInRevision
        } else {
            Reason::NeverEmbedded
        };
        self.ruling(Side::Server, Kind::Request, Some(method), reason)
    }

    /// The first parameter of a request that uses something undeclared.
    ///
    /// `params` must be a well-formed object; anything else uses nothing.
    #[must_use]
    pub fn rule_on_params(
        &self,
        method: Method,
        params: Option<&str>,
    ) -> Option<&'static ParamGate> {
        self.first_violated(ParamGate::of(method, self.revision()), params)
    }

    /// The same for a receiver, whom only that concerns which it refuses.
    pub(crate) fn refused_params(
        &self,
        method: Method,
        params: Option<&str>,
    ) -> Option<&'static ParamGate> {
        let gates = ParamGate::of(method, self.revision());
        let refusing = gates.filter(|gate| gate.violation == Violation::Refuse);
        self.first_violated(refusing, params)
    }

    fn first_violated(
        &self,
        gates: impl Iterator<Item = &'static ParamGate>,
        params: Option<&str>,
    ) -> Option<&'static ParamGate> {
        let raw = params.unwrap_or("{}");
        let mut parsed = None;
        let mut undeclared = gates.filter(|gate| !self.declares(gate.capability));
        undeclared.find(|gate| {
            let key = member(gate.probe);
            // Most parameters do not even contain the name, and then there is nothing to look up.
            let is_named = raw.contains(key) || raw.contains('\\');
            let value = is_named
                .then(|| {
                    parsed
                        .get_or_insert_with(|| Object::parse(raw).unwrap_or_default())
                        .get_present(key)
                })
                .flatten();
            is_used(gate.probe, value)
        })
    }

    fn ask(&self, gate: Gate, sender: Side) -> Reason {
        match gate {
            Gate::Open => Reason::Ungated,
            Gate::NeedsAny(all) => all
                .iter()
                .find(|c| self.declares(**c))
                .map_or(Reason::NoneDeclared(all), |c| Reason::Declared(*c)),
            Gate::Shared(extension) => match self.lacking(extension) {
                None => Reason::Shared(extension),
                Some(side) => Reason::NotShared(extension, side),
            },
            Gate::OfServer(extension, setting) => self.ask_server(extension, setting),
            Gate::Needs(_) | Gate::OfReceiver { .. } | Gate::OfSender { .. } => {
                match gate.capability(sender) {
                    Some(c) if self.declares(c) => Reason::Declared(c),
                    Some(c) => Reason::Undeclared(c),
                    None => Reason::Ungated,
                }
            }
        }
    }

    fn ask_server(&self, extension: Extension, setting: Option<&'static str>) -> Reason {
        let server = &self.party(Side::Server).capabilities;
        match (server.extension(extension, self.revision()), setting) {
            (None, _) => Reason::NotShared(extension, Side::Server),
            (Some(_), None) => Reason::OfServer(extension),
            (Some(settings), Some(key)) if settings.get(key) == Some("true") => {
                Reason::OfServer(extension)
            }
            (Some(_), Some(key)) => Reason::NoSetting(extension, key),
        }
    }

    fn ruling(&self, sender: Side, kind: Kind, method: Option<Method>, reason: Reason) -> Ruling {
        Ruling {
            method,
            sender,
            kind,
            revision: self.revision(),
            reason,
        }
    }
}

fn wrong_role(role: Role, sender: Side, kind: Kind) -> Reason {
    let other = match kind {
        Kind::Request => Kind::Notification,
        Kind::Notification => Kind::Request,
    };
    if role == Role::Absent {
        Reason::NotInRevision
    } else if role == Role::EmbeddedInput {
        Reason::OnlyEmbedded
    } else if role.allows(sender, other) || role.allows(sender.peer(), other) {
        Reason::WrongKind
    } else {
        Reason::WrongSender
    }
}

fn is_used(probe: ParamProbe, value: Option<&str>) -> bool {
    match probe {
        ParamProbe::Present(_) => value.is_some(),
        ParamProbe::Equals(_, values) => value
            .and_then(text)
            .is_some_and(|v| values.contains(&v.as_ref())),
        ParamProbe::AbsentOr(_, default) => match value {
            None => true,
            Some(raw) => text(raw).as_deref() == Some(default),
        },
    }
}

/// The parameter that a probe looks at.
pub(crate) const fn member(probe: ParamProbe) -> &'static str {
    match probe {
        ParamProbe::Present(key) | ParamProbe::Equals(key, _) | ParamProbe::AbsentOr(key, _) => key,
    }
}

/// Our own rule on top of the specification: some methods only for clients with a capability.
///
/// # Errors
/// The path that the client did not declare.
pub fn require_of_client(pact: &Pact, policy: &Policy, method: &str) -> Result<(), Refusal> {
    let rule = policy
        .client_requirements
        .iter()
        .find(|rule| rule.method == method && !pact.has(Side::Client, &rule.path));
    match rule {
        None => Ok(()),
        Some(rule) => Err(Misbehaviour::ClientRequirement {
            method: Box::from(method),
            path: Box::from(rule.path.as_ref()),
        }
        .into()),
    }
}

/// Checks a message before it is written.
///
/// # Errors
/// The parameters are no object, or the pact does not allow the message or one of its parameters.
pub fn may_send(
    pact: &Pact,
    policy: &Policy,
    sender: Side,
    kind: Kind,
    method: &str,
    params: Option<&str>,
) -> Result<(), ApiMisuse> {
    if params.is_some_and(|raw| Object::parse(raw).is_err()) {
        return Err(ApiMisuse::Params);
    }
    if policy.outgoing == Enforcement::Lenient {
        return Ok(());
    }
    let ruling = pact.rule_with(policy.unknown, sender, kind, method);
    if !ruling.is_open() {
        return Err(ApiMisuse::NotNegotiated {
            method: Box::from(method),
            ruling,
        });
    }
    let Some(known) = ruling.method else {
        return Ok(());
    };
    match pact.rule_on_params(known, params) {
        None => Ok(()),
        Some(gate) => Err(ApiMisuse::ParamNotNegotiated {
            method: known,
            member: member(gate.probe),
            capability: gate.capability,
            revision: pact.revision(),
        }),
    }
}

/// Checks a request of the server.
///
/// # Errors
/// The pact does not allow the request or one of its parameters.
pub fn check_server_request(
    pact: &Pact,
    policy: &Policy,
    method: &str,
    params: Option<&str>,
) -> Result<(), Refusal> {
    let ruling = pact.rule_with(policy.unknown, Side::Server, Kind::Request, method);
    if !ruling.is_open() {
        let method = Box::from(method);
        return Err(Misbehaviour::Method { method, ruling }.into());
    }
    match ruling.method {
        Some(method) => check_params(pact, method, params),
        None => Ok(()),
    }
}

/// Checks a notification of the server and returns its method; none if no revision defines it.
///
/// # Errors
/// The pact does not allow the notification.
pub fn check_server_notification(
    pact: &Pact,
    policy: &Policy,
    name: &str,
) -> Result<Option<Method>, Refusal> {
    let method = Method::parse(name).or_else(|| Method::parse_alias(name));
    let ruling = match method {
        Some(method) => pact.rule_on(Side::Server, Kind::Notification, method),
        None => pact.rule_with(policy.unknown, Side::Server, Kind::Notification, name),
    };
    if ruling.is_open() {
        return Ok(method);
    }
    let method = Box::from(name);
    Err(Misbehaviour::Method { method, ruling }.into())
}

/// Refuses a parameter that uses something undeclared, unless the rule is to ignore it.
pub(crate) fn check_params(
    pact: &Pact,
    method: Method,
    params: Option<&str>,
) -> Result<(), Refusal> {
    match pact.refused_params(method, params) {
        Some(gate) => Err(Misbehaviour::Param {
            method,
            member: member(gate.probe),
            capability: gate.capability,
            revision: pact.revision(),
        }
        .into()),
        None => Ok(()),
    }
}
