//! Terms of both owners, chosen by the first line of a script.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::{ClientTerms, EraMode, EraVerdict, TransportKind};
use mcpact_engine::policy::{OnEarly, OnUndeclared, OnUnknown, Policy, Profile, Reading};
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{Era, Revision, Side};
use mcpact_wire::model::implementation::Implementation;

const SERVER: [&str; 3] = [
    r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"x":{}}}"#,
    "{}",
    r#"{"tools":{},"extensions":{"com.example/a":{"versions":["1"]}}}"#,
];

const CLIENT: [&str; 3] = [
    r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"cancel":{}},"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"x":{}}}"#,
    "{}",
    r#"{"roots":{},"extensions":{"com.example/a":{"versions":["1","2"]}}}"#,
];

/// The first line: each byte is a choice, and a missing one is `0`.
///
/// 0 profile, 1 undeclared notifications, 2 unknown methods and early requests, 3 era mode,
/// 4 carrier and earlier verdict, 5 requests in flight, 6 the server's revisions, 7 capabilities.
pub(super) struct Choices<'a>(pub(super) &'a [u8]);

impl Choices<'_> {
    fn among(&self, place: usize, count: usize) -> usize {
        usize::from(
            self.0
                .get(place)
                .copied()
                .unwrap_or(b'0')
                .wrapping_sub(b'0'),
        ) % count
    }

    fn policy(&self) -> Policy {
        let profile = Profile::ALL[self.among(0, Profile::ALL.len())];
        let undeclared = [
            OnUndeclared::Drop,
            OnUndeclared::Warn,
            OnUndeclared::Error,
            OnUndeclared::Disconnect,
        ];
        let bits = self.among(2, 8);
        Policy {
            undeclared: undeclared[self.among(1, undeclared.len())],
            unknown: [OnUnknown::Refuse, OnUnknown::Pass][bits & 1],
            early: [OnEarly::Accept, OnEarly::Refuse][bits >> 1 & 1],
            reading: [Reading::Lenient, Reading::Strict][bits >> 2 & 1],
            batch_limit: 3,
            ..profile.policy()
        }
    }

    fn capabilities(&self, owner: Side) -> CapabilitySet {
        let documents = match owner {
            Side::Client => CLIENT,
            Side::Server => SERVER,
        };
        let raw = documents[self.among(7, documents.len())];
        CapabilitySet::parse(owner, Some(raw), Reading::Lenient)
            .unwrap_or_else(|_| CapabilitySet::empty(owner))
    }

    fn in_flight(&self) -> usize {
        [1024, 1, 2, 3][self.among(5, 4)]
    }

    pub(super) fn server(&self) -> ServerTerms {
        let mut policy = self.policy();
        let only = Revision::ALL.map(|revision| RevisionSet::of(&[revision]));
        policy.version.supported = match self.among(6, 8) {
            0 => RevisionSet::ALL,
            1 => RevisionSet::of_era(Era::Legacy),
            2 => RevisionSet::of_era(Era::Modern),
            other => only[other - 3],
        };
        let info = Implementation::new("fuzzed server", "1");
        ServerTerms {
            in_flight_limit: self.in_flight(),
            ..ServerTerms::new(info, self.capabilities(Side::Server), policy)
        }
    }

    pub(super) fn client(&self) -> ClientTerms {
        let info = Implementation::new("fuzzed client", "1");
        let pinned = Revision::ALL.map(EraMode::Pin);
        let carriers = [
            TransportKind::Stream,
            TransportKind::Child,
            TransportKind::Http,
        ];
        let priors = [
            None,
            Some(EraVerdict::Modern),
            Some(EraVerdict::Legacy),
            Some(EraVerdict::LegacyDiesOnProbe),
        ];
        let kind = self.among(4, carriers.len() * priors.len());
        ClientTerms {
            mode: match self.among(3, 8) {
                0 => EraMode::Auto,
                1 => EraMode::Legacy,
                2 => EraMode::Modern,
                other => pinned[other - 3],
            },
            transport: carriers[kind % carriers.len()],
            prior: priors[kind / carriers.len()],
            in_flight_limit: self.in_flight(),
            ..ClientTerms::new(info, self.capabilities(Side::Client), self.policy())
        }
    }
}
