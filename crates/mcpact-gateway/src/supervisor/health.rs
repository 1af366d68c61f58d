//! Whether an instance is well.

use std::time::Duration;

use mcpact_config::{Health, Probe};
use mcpact_engine::time::Moment;
use mcpact_spec::{Era, Method};
use mcpact_wire::raw::{Object, ObjectWriter};

/// The longest that an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an instance is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) method: Method,
    /// Raw parameters.
    pub(crate) params: String,
    /// Whether an error is an answer: who says that it does not know `ping` is well.
    pub(crate) reading: Reading,
}

/// Which answers are good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Any.
    Any,
    /// A result that says no error.
    Results,
}

/// What an instance of this era is asked, if anything.
pub(crate) fn question(probe: &Probe, era: Era) -> Option<Question> {
    let plain = |method| Question {
        method,
        params: String::from("{}"),
        reading: Reading::Any,
    };
    let with = |method, key, value: &str| Question {
        method,
        params: ObjectWriter::new().text(key, value).finish(),
        reading: Reading::Results,
    };
    match (probe, era) {
        (Probe::Off, _) => None,
        // The other era does not have it.
        (Probe::Auto | Probe::Ping | Probe::Discover, Era::Legacy) => Some(plain(Method::Ping)),
        (Probe::Auto | Probe::Ping | Probe::Discover, Era::Modern) => Some(plain(Method::Discover)),
        (Probe::Tool(name), _) => Some(with(Method::ToolsCall, "name", name)),
        (Probe::Resource(uri), _) => Some(with(Method::ResourcesRead, "uri", uri)),
    }
}

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is well.
    Good,
    /// It is not, or there was none.
    Bad,
}

/// What a raw result or error is worth.
pub(crate) fn judge(reading: Reading, answer: Result<&str, &str>) -> Answer {
    let is_good = match (reading, answer) {
        (Reading::Any, _) => true,
        (Reading::Results, Err(_)) => false,
        (Reading::Results, Ok(result)) => {
            let result = Object::parse(result).unwrap_or_default();
            result.get("isError") != Some("true")
        }
    };
    if is_good { Answer::Good } else { Answer::Bad }
}

/// The health of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkup {
    settings: Health,
    failures: u32,
    due: Moment,
}

/// What an answer, or none, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Diagnosis {
    /// It is well.
    Well,
    /// It is asked again.
    Shaky,
    /// It has failed.
    Failed,
    /// It has calls, and may not be able to answer meanwhile.
    Silent,
}

impl Checkup {
    /// Other questions from here on, with their own pauses.
    pub(crate) fn retune(&mut self, settings: Health, now: Moment) {
        if self.settings != settings {
            self.settings = settings;
            self.put_off(now);
        }
    }

    pub(crate) fn new(settings: Health, now: Moment) -> Self {
        let due = now.after(settings.interval);
        Self {
            settings,
            failures: 0,
            due,
        }
    }

    /// When it is to be asked.
    pub(crate) const fn due(&self) -> Moment {
        self.due
    }

    /// How long an answer is waited for: before the next question, there is one or none.
    pub(crate) fn patience(&self) -> Duration {
        self.settings.interval.min(PATIENCE)
    }

    /// It is asked; there is an answer before it is asked again.
    pub(crate) fn asked(&mut self, now: Moment) {
        self.due = now.after(self.settings.interval.saturating_mul(2));
    }

    /// It is asked as soon as possible.
    pub(crate) const fn hurry(&mut self, now: Moment) {
        self.due = now;
    }

    /// There was no answer, which means nothing.
    pub(crate) fn put_off(&mut self, now: Moment) {
        self.due = now.after(self.settings.interval);
    }

    /// Goes on after an answer.
    pub(crate) fn handle(&mut self, answer: Answer, now: Moment) -> Diagnosis {
        self.put_off(now);
        match answer {
            Answer::Good => {
                self.failures = 0;
                Diagnosis::Well
            }
            Answer::Bad => {
                self.failures += 1;
                if self.failures >= self.settings.failures {
                    Diagnosis::Failed
                } else {
                    Diagnosis::Shaky
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked in which era.
    #[test]
    fn questions() {
        let sheet = [
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
        for (probe, era, expected) in sheet {
            let asked = question(&probe, era).unwrap();
            assert_eq!(format!("{} {}", asked.method, asked.params), expected);
        }
        assert_eq!(question(&Probe::Off, Era::Legacy), None);
    }

    /// Any answer to a ping is one; a tool that fails is not well.
    #[test]
    fn answers() {
        let sheet = [
            (Reading::Any, Err(r#"{"code":-32601}"#), Answer::Good),
            (Reading::Any, Ok("{}"), Answer::Good),
            (Reading::Results, Err("{}"), Answer::Bad),
            (Reading::Results, Ok(r#"{"isError":true}"#), Answer::Bad),
            (Reading::Results, Ok(r#"{"isError":false}"#), Answer::Good),
            (Reading::Results, Ok(r#"{"contents":[]}"#), Answer::Good),
        ];
        for (reading, answer, expected) in sheet {
            assert_eq!(judge(reading, answer), expected, "{answer:?}");
        }
    }

    /// Bad answers in a row make it failed; a good one makes them forgotten.
    #[test]
    fn failures_in_a_row() {
        let settings = Health {
            probe: Probe::Auto,
            interval: Duration::from_secs(5),
            failures: 2,
        };
        let mut checkup = Checkup::new(settings, Moment::ZERO);
        assert_eq!(checkup.patience(), Duration::from_secs(5));
        assert_eq!(checkup.due(), Moment::at(Duration::from_secs(5)));
        let answers = [Answer::Bad, Answer::Good, Answer::Bad, Answer::Bad];
        let diagnoses = answers.map(|answer| checkup.handle(answer, Moment::ZERO));
        use Diagnosis::{Failed, Shaky, Well};
        assert_eq!(diagnoses, [Shaky, Well, Shaky, Failed]);
    }
    /// Other pauses hold at once, and only others do.
    #[test]
    fn a_pause_is_not_waited_out() {
        let every = |seconds| Health {
            probe: Probe::Auto,
            interval: Duration::from_secs(seconds),
            failures: 2,
        };
        let at = |seconds| Moment::at(Duration::from_secs(seconds));
        let mut checkup = Checkup::new(every(600), Moment::ZERO);
        for (pause, now, due) in [(600, 7, 600), (1, 8, 9), (600, 9, 609), (600, 10, 609)] {
            checkup.retune(every(pause), at(now));
            assert_eq!(checkup.due(), at(due), "{pause} s at {now}");
        }
    }
}
