//! Gateways that start each other: a config that starts `mcpact serve` with the same config, directly or through other
//! programs and configs.
//!
//! Child processes get the digests of the configs above them in a variable. A gateway that finds its own config there does
//! not start. Programs that clear their environment hide it.

use std::path::Path;

use mcpact_transport::stdio::child::VIA_VARIABLE;

use super::MAX_HOPS;
use crate::target::digest;

/// Text in the error of a gateway that does not start. The gateway that started it recognises the loop by it, so it stays
/// the same in all versions.
const MARKER: &str = "[mcpact:start-loop]";

/// Digests of the configs of the gateways above a process, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentConfigs(Vec<String>);

/// Reason why a gateway must not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartLoop {
    /// A gateway with the same config started this one.
    #[error("proxy loop detected: a gateway with this config started this one {MARKER}")]
    SameConfig,
    /// The chain of gateways is too long.
    #[error("proxy loop detected: a chain of {MAX_HOPS} gateways started this one {MARKER}")]
    TooLong,
}

impl StartLoop {
    /// Suggested fix.
    #[must_use]
    pub fn remedy(&self) -> String {
        format!(
            "remove the server that starts `mcpact serve` from the config; to start an independent gateway, unset `{VIA_VARIABLE}`"
        )
    }

    /// Returns true if a child that wrote this to stderr exited because of a loop.
    pub(crate) fn is_in(stderr: &str) -> bool {
        stderr.contains(MARKER)
    }
}

impl ParentConfigs {
    /// Parses the value of the variable.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let digests = text.split(',').take(MAX_HOPS);
        let digests = digests.filter(|digest| !digest.is_empty());
        Self(digests.map(str::to_owned).collect())
    }

    /// Adds the config of this process, by its canonical path.
    ///
    /// # Errors
    /// [`StartLoop`] if the config is already in the chain, or the chain is too long.
    pub fn with(mut self, config: &Path) -> Result<Self, StartLoop> {
        let config = digest([config.as_os_str().as_encoded_bytes()]);
        if self.0.contains(&config) {
            return Err(StartLoop::SameConfig);
        }
        if self.0.len() >= MAX_HOPS {
            return Err(StartLoop::TooLong);
        }
        self.0.push(config);
        Ok(self)
    }

    /// Returns the value of the variable for children; `None` if there is nothing to pass on.
    pub(crate) fn encode(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a gateway with each of these configs, one from the other.
    fn start<'c>(configs: impl IntoIterator<Item = &'c str>) -> Result<(), StartLoop> {
        let mut parents = ParentConfigs::default();
        for config in configs {
            let variable = parents.encode().unwrap_or_default();
            parents = ParentConfigs::parse(&variable).with(Path::new(config))?;
        }
        Ok(())
    }

    #[test]
    fn config_does_not_start_itself() {
        for (configs, expected) in [
            (&["/a"][..], Ok(())),
            (&["/a", "/b", "/c"], Ok(())),
            (&["/a", "/a"], Err(StartLoop::SameConfig)),
            (&["/a", "/b", "/a"], Err(StartLoop::SameConfig)),
            (&["/a", "/b", "/b"], Err(StartLoop::SameConfig)),
        ] {
            assert_eq!(start(configs.iter().copied()), expected, "{configs:?}");
        }
    }

    #[test]
    fn chains_are_limited() {
        let many: Vec<String> = (0..=MAX_HOPS).map(|number| format!("/{number}")).collect();
        let many = || many.iter().map(String::as_str);
        assert_eq!(start(many().skip(1)), Ok(()));
        assert_eq!(start(many()), Err(StartLoop::TooLong));
    }

    #[test]
    fn errors_carry_the_marker() {
        for error in [StartLoop::SameConfig, StartLoop::TooLong] {
            assert!(StartLoop::is_in(&format!("error: {error}\n")));
        }
        assert!(!StartLoop::is_in("error: API_KEY is not set"));
    }

    #[test]
    fn variable_is_bounded() {
        assert_eq!(ParentConfigs::parse(""), ParentConfigs::default());
        let long = "a,".repeat(1000);
        assert_eq!(ParentConfigs::parse(&long).0.len(), MAX_HOPS);
    }
}
