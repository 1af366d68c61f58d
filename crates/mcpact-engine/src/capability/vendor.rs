use alloc::boxed::Box;
use alloc::vec::Vec;

use mcpact_spec::LogLevel;

/// Capabilities that no revision defines and that peers in the field announce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VendorExtras {
    /// `supportedProtocolVersions`: what else the server speaks.
    pub supported_versions: Vec<Box<str>>,
    /// `maxBatchSize`: how many messages it takes in a batch.
    pub max_batch_size: Option<u64>,
    /// `logging.levels`: the levels that it can be set to.
    pub log_levels: Vec<LogLevel>,
}

impl VendorExtras {
    /// The level to set on the peer: at least as verbose as `wanted`, and among the announced ones if it announces any.
    #[must_use]
    pub fn settable(&self, wanted: LogLevel) -> LogLevel {
        let announced = self.log_levels.iter().copied();
        let fitting = announced.filter(|level| *level <= wanted).max();
        fitting
            .or(self.log_levels.iter().copied().min())
            .unwrap_or(wanted)
    }

    /// Dotted paths of the extras, as they stand in a server's document.
    pub(super) const PATHS: [&'static str; 3] = [
        "supportedProtocolVersions",
        "maxBatchSize",
        "logging.levels",
    ];
}
