//! Health checks of one instance: probe, judgement, schedule. Pure.

use std::time::Duration;

use mcpact_config::{Health, Probe};
use mcpact_engine::time::Moment;
use mcpact_spec::{Era, Method};
use mcpact_wire::raw::{Object, ObjectWriter};

/// Maximum time to wait for an answer.
const MAX_TIMEOUT: Duration = Duration::from_secs(10);

/// Request that checks an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthProbe {
    pub(crate) method: Method,
    /// Raw parameters.
    pub(crate) params: String,
    /// Only a result without `isError` passes. Otherwise any answer does, even an error: a server that does not know
    /// `ping` is alive.
    pub(crate) needs_success: bool,
}

/// Returns the request for an instance of this era, or none if checks are disabled.
pub(super) fn probe_request(probe: &Probe, era: Era, errors_fail: bool) -> Option<HealthProbe> {
    let plain = |method| HealthProbe {
        method,
        params: String::from("{}"),
        needs_success: errors_fail,
    };
    let with = |method, key, value: &str| HealthProbe {
        method,
        params: ObjectWriter::new().text(key, value).finish(),
        needs_success: true,
    };
    match (probe, era) {
        (Probe::Off, _) => None,
        // Each method exists in one era only.
        (Probe::Auto | Probe::Ping | Probe::Discover, Era::Legacy) => Some(plain(Method::Ping)),
        (Probe::Auto | Probe::Ping | Probe::Discover, Era::Modern) => Some(plain(Method::Discover)),
        (Probe::Tool(name), _) => Some(with(Method::ToolsCall, "name", name)),
        (Probe::Resource(uri), _) => Some(with(Method::ResourcesRead, "uri", uri)),
    }
}

/// Returns true if a raw result or error passes.
pub(super) fn has_passed(needs_success: bool, answer: Result<String, String>) -> bool {
    let is_success = |result: String| {
        let result = Object::parse(&result).unwrap_or_default();
        result.get("isError") != Some("true")
    };
    !needs_success || answer.is_ok_and(is_success)
}

/// Schedule and failure count of the checks of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HealthCheck {
    settings: Health,
    failures: u32,
    /// Time of the next check.
    pub(super) due: Moment,
}

/// Conclusion from a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Diagnosis {
    /// Passed.
    Healthy,
    /// Failed, but not often enough in a row.
    Suspect,
    /// Failed too often in a row.
    Failed,
    /// No answer while calls run, which may keep the instance from answering.
    Unresponsive,
}

impl HealthCheck {
    /// Replaces the settings and, if they differ, restarts the interval.
    pub(super) fn update_settings(&mut self, settings: Health, now: Moment) {
        if self.settings != settings {
            self.settings = settings;
            self.postpone(now);
        }
    }

    pub(super) fn new(settings: Health, now: Moment) -> Self {
        let due = now.after(settings.interval);
        Self {
            settings,
            failures: 0,
            due,
        }
    }

    /// Returns the timeout of a check, which ends before the next one.
    pub(super) fn timeout(&self) -> Duration {
        self.settings.interval.min(MAX_TIMEOUT)
    }

    /// Records the start of a check. It finishes before the next one is due.
    pub(super) fn started(&mut self, now: Moment) {
        self.due = now.after(self.settings.interval.saturating_mul(2));
    }

    /// Schedules the next check without counting a result.
    pub(super) fn postpone(&mut self, now: Moment) {
        self.due = now.after(self.settings.interval);
    }

    /// Records the result of a check.
    pub(super) fn finished(&mut self, has_passed: bool, now: Moment) -> Diagnosis {
        self.postpone(now);
        if has_passed {
            self.failures = 0;
            return Diagnosis::Healthy;
        }
        self.failures += 1;
        if self.failures >= self.settings.failures {
            Diagnosis::Failed
        } else {
            Diagnosis::Suspect
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G11: a legacy server is pinged, a modern one asked for its description, and a configured probe runs in both eras.
    #[test]
    fn probe_depends_on_the_era() {
        let cases = [
            (Probe::Auto, Era::Legacy, "ping {}"),
            (Probe::Auto, Era::Modern, "server/discover {}"),
            (Probe::Ping, Era::Modern, "server/discover {}"),
            (Probe::Discover, Era::Legacy, "ping {}"),
            (
                Probe::Tool("t".into()),
                Era::Modern,
                r#"tools/call {"name":"t"}"#,
            ),
            (
                Probe::Resource("a:b".into()),
                Era::Legacy,
                r#"resources/read {"uri":"a:b"}"#,
            ),
        ];
        for (probe, era, expected) in cases {
            let asked = probe_request(&probe, era, false).unwrap();
            assert_eq!(format!("{} {}", asked.method, asked.params), expected);
        }
        assert_eq!(probe_request(&Probe::Off, Era::Legacy, true), None);
    }

    #[test]
    fn any_answer_to_a_ping_passes_but_a_failing_tool_does_not() {
        let cases = [
            (false, Err(r#"{"code":-32601}"#), true),
            (false, Ok("{}"), true),
            (true, Err("{}"), false),
            (true, Ok(r#"{"isError":true}"#), false),
            (true, Ok(r#"{"isError":false}"#), true),
            (true, Ok(r#"{"contents":[]}"#), true),
        ];
        for (needs_success, answer, expected) in cases {
            let raw = answer.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(has_passed(needs_success, raw), expected, "{answer:?}");
        }
    }

    #[test]
    fn instance_fails_after_too_many_failed_checks_in_a_row() {
        let settings = Health {
            probe: Probe::Auto,
            interval: Duration::from_secs(5),
            failures: 2,
            errors_fail: false,
        };
        let mut check = HealthCheck::new(settings, Moment::ZERO);
        assert_eq!(check.timeout(), Duration::from_secs(5));
        assert_eq!(check.due, Moment::at(Duration::from_secs(5)));
        let results = [false, true, false, false];
        let diagnoses = results.map(|result| check.finished(result, Moment::ZERO));
        use Diagnosis::{Failed, Healthy, Suspect};
        assert_eq!(diagnoses, [Suspect, Healthy, Suspect, Failed]);
    }

    #[test]
    fn changed_interval_applies_at_once() {
        let every = |seconds| Health {
            probe: Probe::Auto,
            interval: Duration::from_secs(seconds),
            failures: 2,
            errors_fail: false,
        };
        let at = |seconds| Moment::at(Duration::from_secs(seconds));
        let mut check = HealthCheck::new(every(600), Moment::ZERO);
        for (interval, now, due) in [(600, 7, 600), (1, 8, 9), (600, 9, 609), (600, 10, 609)] {
            check.update_settings(every(interval), at(now));
            assert_eq!(check.due, at(due), "{interval} s at {now}");
        }
    }
}
