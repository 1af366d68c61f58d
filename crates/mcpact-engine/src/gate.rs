//! The rules on one message: who may send it, as what, and what must have been declared.

use alloc::boxed::Box;

use mcpact_spec::{Gate, Kind, Method, ParamGate, ParamProbe, Role, Side, Violation};
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;

use crate::pact::Pact;
use crate::policy::{OnUnknown, Policy};
use crate::reason::{Reason, Ruling};
use crate::refusal::{Misbehaviour, Refusal};

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
    #[must_use]
    pub fn rule_with(&self, unknown: OnUnknown, sender: Side, kind: Kind, method: &str) -> Ruling {
        let ruling = self.rule(sender, kind, method);
        match (ruling.reason, unknown) {
            (Reason::Unknown, OnUnknown::Pass) => {
                self.ruling(sender, kind, None, Reason::PassedUnknown)
            }
            _ => ruling,
        }
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
        let reason = match method.role(self.revision()) {
            Role::EmbeddedInput => self.ask(method.gate(self.revision()), Side::Server),
            Role::Absent => Reason::NotInRevision,
            Role::ClientRequest
            | Role::ServerRequest
            | Role::EitherRequest
            | Role::ClientNote
            | Role::ServerNote
            | Role::EitherNote => Reason::NeverEmbedded,
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
            Gate::Needs(_) | Gate::OfReceiver { .. } | Gate::OfSender { .. } => {
                match gate.capability(sender) {
                    Some(c) if self.declares(c) => Reason::Declared(c),
                    Some(c) => Reason::Undeclared(c),
                    None => Reason::Ungated,
                }
            }
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
    match role {
        Role::Absent => Reason::NotInRevision,
        Role::EmbeddedInput => Reason::OnlyEmbedded,
        Role::ClientRequest
        | Role::ServerRequest
        | Role::EitherRequest
        | Role::ClientNote
        | Role::ServerNote
        | Role::EitherNote => {
            if role.allows(sender, other) || role.allows(sender.peer(), other) {
                Reason::WrongKind
            } else {
                Reason::WrongSender
            }
        }
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
