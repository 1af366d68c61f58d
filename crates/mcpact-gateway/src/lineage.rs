//! Gateways that start each other: one whose config starts `mcpact serve` with the same config, directly or by way of
//! other programs and configs, would start without end.
//!
//! What a gateway starts is told which gateways have led to it, by a variable. A gateway that finds its own config there
//! does not start. Programs that clear their variables hide it.

use std::fmt::Write as _;
use std::path::Path;

use mcpact_transport::stdio::child::LINEAGE;

use crate::target::digest;

/// How many gateways may start one another.
const DEEPEST: usize = 16;

/// The words by which a gateway is known that did not start.
const WORDS: &str = "has started this one, directly or by way of other programs";

/// The gateways that have led to a process, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage(Vec<Ancestor>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Ancestor {
    process: u32,
    /// A digest of its config's path.
    config: String,
}

/// Why a gateway must not start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Descent {
    /// It would start itself.
    #[error(
        "the gateway of this very config (process {process}) {WORDS}; each would start the next one, without end"
    )]
    Itself {
        /// Which one is running.
        process: u32,
    },
    /// There are too many already.
    #[error("each of {DEEPEST} gateways {WORDS}; there may be no more")]
    TooDeep,
}

impl Descent {
    /// What helps.
    #[must_use]
    pub fn remedy(&self) -> String {
        format!(
            "take the server that leads to `mcpact serve` out of the config; start a gateway that stands for itself without \
             the variable `{LINEAGE}`"
        )
    }

    /// Whether these are the last words of a gateway that did not start.
    pub(crate) fn is_told_in(stderr: &str) -> bool {
        stderr.contains(WORDS)
    }
}

impl Lineage {
    /// What the variable says; what cannot be read is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let ancestors = text.split(',').take(DEEPEST).filter_map(|ancestor| {
            let (process, config) = ancestor.split_once(':')?;
            Some(Ancestor {
                process: process.parse().ok()?,
                config: config.to_owned(),
            })
        });
        Self(ancestors.collect())
    }

    /// The same with a gateway that starts with the config at this path, which has to be the only one to the file. Those
    /// that do not run any more do not count.
    ///
    /// # Errors
    /// It would start itself, or there are too many.
    pub fn with(
        self,
        config: &Path,
        process: u32,
        is_running: impl Fn(u32) -> bool,
    ) -> Result<Self, Descent> {
        let config = digest([config.as_os_str().as_encoded_bytes()]);
        let mut ancestors = self.0;
        ancestors.retain(|ancestor| is_running(ancestor.process));
        if let Some(same) = ancestors.iter().find(|ancestor| ancestor.config == config) {
            let process = same.process;
            return Err(Descent::Itself { process });
        }
        if ancestors.len() >= DEEPEST {
            return Err(Descent::TooDeep);
        }
        ancestors.push(Ancestor { process, config });
        Ok(Self(ancestors))
    }

    /// As the variable says it; none if there is nothing to say.
    pub(crate) fn encode(&self) -> Option<String> {
        let mut text = String::new();
        for Ancestor { process, config } in &self.0 {
            let between = if text.is_empty() { "" } else { "," };
            // To write into memory never fails.
            let _ = write!(text, "{between}{process}:{config}");
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a gateway with each of these configs, one by the other, as process 1, 2 and so on.
    fn started(configs: &[&str], is_running: impl Fn(u32) -> bool) -> Result<Lineage, Descent> {
        let mut lineage = Lineage::default();
        for (process, config) in (1..).zip(configs) {
            let told = lineage.encode().unwrap_or_default();
            lineage = Lineage::parse(&told).with(Path::new(config), process, &is_running)?;
        }
        Ok(lineage)
    }

    /// A gateway may start others, and none that has led to it, as long as that one runs.
    #[test]
    fn no_gateway_starts_itself() {
        let all = |_| true;
        for (configs, expected) in [
            (&["/a"][..], Ok(())),
            (&["/a", "/b", "/c"], Ok(())),
            (&["/a", "/a"], Err(Descent::Itself { process: 1 })),
            (&["/a", "/b", "/a"], Err(Descent::Itself { process: 1 })),
            (&["/a", "/b", "/b"], Err(Descent::Itself { process: 2 })),
        ] {
            assert_eq!(started(configs, all).map(drop), expected, "{configs:?}");
        }
        assert!(started(&["/a", "/b", "/a"], |process| process != 1).is_ok());
    }

    /// There is an end to it even if every one has another config.
    #[test]
    fn gateways_do_not_start_each_other_without_end() {
        let many: Vec<String> = (0..=DEEPEST).map(|number| format!("/{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(started(&many[1..], |_| true).is_ok());
        assert_eq!(started(&many, |_| true), Err(Descent::TooDeep));
    }

    /// Whatever the variable says, it can be read.
    #[test]
    fn what_is_no_lineage_is_left_out() {
        for nothing in ["", ",,", ":", "x:y", "-1:a", "99999999999:a"] {
            assert_eq!(Lineage::parse(nothing), Lineage::default(), "{nothing}");
        }
        let long = "1:a,".repeat(1000);
        assert_eq!(Lineage::parse(&long).0.len(), DEEPEST);
    }

    /// Who starts a gateway that does not start knows why.
    #[test]
    fn the_words_are_known_again() {
        for descent in [Descent::Itself { process: 7 }, Descent::TooDeep] {
            assert!(Descent::is_told_in(&format!("error: {descent}\n")));
        }
        assert!(!Descent::is_told_in("error: unknown argument"));
    }
}
