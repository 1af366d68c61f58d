//! Progress of a call, shown on a terminal only.

use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressStyle};
use mcpact::model::Progress;

use super::layout::in_one_line;

/// Line on the terminal that shows the progress of a call. Without a terminal it shows nothing.
#[derive(Debug, Default)]
pub(crate) struct ProgressLine(OnceLock<ProgressBar>);

/// Steps of a bar: servers count in fractions, too.
const STEPS: f64 = 1000.0;

impl ProgressLine {
    /// Shows a progress notification.
    pub(crate) fn update(&self, progress: &Progress) {
        let message = progress.message.as_deref().unwrap_or_default();
        let bar = self.0.get_or_init(|| match progress.total {
            Some(_) => {
                ProgressBar::new(STEPS as u64).with_style(style("{bar:30} {percent}% {msg}"))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} {pos} {msg}")),
        });
        match progress.total {
            Some(total) if total > 0.0 => {
                bar.set_position((progress.progress / total * STEPS).clamp(0.0, STEPS) as u64);
            }
            Some(_) | None => bar.set_position(progress.progress.max(0.0) as u64),
        }
        bar.set_message(in_one_line(message));
        bar.tick();
    }

    /// Hides the line while something else is written to the terminal.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match self.0.get() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        if let Some(bar) = self.0.get() {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
