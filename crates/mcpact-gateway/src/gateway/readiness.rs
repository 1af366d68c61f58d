//! Whether the gateway can do its work, and what keeps it from that.

use mcpact_transport::http::server::Answer;
use mcpact_wire::raw::ObjectWriter;

use super::{Gateway, Served, State};
use crate::error::AGAIN;
use crate::supervisor::{InstanceState, ServerStatus};

/// How a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It can be used, or nobody has tried yet.
    Usable,
    /// It cannot be used; others can.
    Missing,
    /// As many instances as it must always have are not there.
    Short,
}

/// How one server stands, given how many instances it must have.
fn standing(wanted: usize, status: &ServerStatus, is_missing: bool) -> Standing {
    let is_open =
        |state: &InstanceState| matches!(state, InstanceState::Ready | InstanceState::Busy { .. });
    let open = status.instances.iter();
    let open = open.filter(|instance| is_open(&instance.state)).count();
    let is_resting = status.state.wait().is_some();
    if open < wanted {
        Standing::Short
    } else if is_missing || is_resting {
        Standing::Missing
    } else {
        Standing::Usable
    }
}

/// Whether the whole is ready: it is not about to go, nothing is short, and something can be used.
fn is_ready(is_draining: bool, standings: &[Standing]) -> bool {
    let is_usable = standings.is_empty() || standings.contains(&Standing::Usable);
    !is_draining && is_usable && !standings.contains(&Standing::Short)
}

impl Gateway {
    /// The answer to `/readyz`.
    pub(super) fn readiness(&self, state: &State) -> Answer {
        let is_draining = self.turnstile.is_closed();
        let mut standings = Vec::new();
        let mut servers = ObjectWriter::new();
        for (name, served) in &state.servers {
            let status = served.member.bridge().status();
            let failure = served.member.failure_in_short();
            let wanted = served.member.bridge().least();
            let standing = standing(wanted, &status, failure.is_some());
            standings.push(standing);
            servers = servers.raw(
                name.as_str(),
                &told(served, standing, &status, failure.as_deref()),
            );
        }
        for name in state.catalog.wrong.keys() {
            standings.push(Standing::Missing);
            servers = servers.raw(name.as_str(), WRONG);
        }
        let is_ready = is_ready(is_draining, &standings);
        let body = ObjectWriter::new()
            .raw("ready", truth(is_ready))
            .raw("draining", truth(is_draining))
            .raw("servers", &servers.finish())
            .finish();
        Answer::json(if is_ready { 200 } else { 503 }, format!("{body}\n"))
    }
}

/// What is told of a server that is left out: what is wrong with it is told to its owner alone.
const WRONG: &str =
    r#"{"ready":false,"state":"wrong","why":"its config is wrong; `mcpact status` tells it"}"#;

const fn truth(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}

/// One server, for people and machines.
fn told(
    served: &Served,
    standing: Standing,
    status: &ServerStatus,
    failure: Option<&str>,
) -> String {
    let mut out = ObjectWriter::new()
        .raw("ready", truth(standing == Standing::Usable))
        .text("state", status.word(failure.is_some()));
    if let Some(revision) = served.member.report().revision {
        out = out.text("revision", revision.as_str());
    }
    if standing != Standing::Usable {
        // The log is for the owner.
        let mishap = status.last_error.as_ref();
        let mishap = mishap.map(|mishap| mishap.why.in_short());
        let why = failure.or(mishap.as_deref()).unwrap_or("it is on its way");
        out = match status.state.wait().filter(|wait| !wait.is_zero()) {
            None => out.text("why", why),
            Some(wait) => out.text("why", &format!("{why}; {AGAIN}{wait:.1?}")),
        };
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must be there decides, what is missing beside others does not, and a gateway that is about
    /// to go takes nobody in.
    #[test]
    fn readiness_follows_from_how_servers_stand() {
        use Standing::{Missing, Short, Usable};
        let cells: [(bool, &[Standing], bool); 7] = [
            (false, &[], true),
            (false, &[Usable, Usable], true),
            (false, &[Usable, Missing], true),
            (false, &[Missing, Missing], false),
            (false, &[Usable, Short], false),
            (true, &[Usable], false),
            (true, &[], false),
        ];
        for (is_draining, standings, expected) in cells {
            let found = is_ready(is_draining, standings);
            assert_eq!(found, expected, "{is_draining} {standings:?}");
        }
    }
}
