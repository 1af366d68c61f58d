//! Progress that only rises, whatever the rounds below it do.

/// The progress of one call as its client sees it.
///
/// A modern server may begin every round at zero; to the client all rounds are one request, and
/// its progress must increase (`2025-11-25 basic/utilities/progress#behavior-requirements`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Climb {
    last: Option<f64>,
}

impl Climb {
    /// Whether this raw `progress` is more than everything before it; what is not is dropped.
    pub fn rises(&mut self, progress: &str) -> bool {
        let Ok(value) = progress.parse::<f64>() else {
            return false;
        };
        let rises = value.is_finite() && self.last.is_none_or(|last| value > last);
        if rises {
            self.last = Some(value);
        }
        rises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BA-18: a second round that begins again does not go back.
    #[test]
    fn progress_never_goes_back() {
        let mut climb = Climb::default();
        let cells = [
            ("0.5", true),
            ("0.5", false),
            ("0.1", false),
            ("x", false),
            ("1e400", false),
            ("0.75", true),
            ("2", true),
        ];
        for (progress, rises) in cells {
            assert_eq!(climb.rises(progress), rises, "{progress}");
        }
    }
}
