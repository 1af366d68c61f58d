//! The machines' clock: time since the process began to serve.

use std::sync::LazyLock;

use mcpact_engine::time::Moment;
use tokio::time::Instant;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(super) fn now() -> Moment {
    Moment::at(START.elapsed())
}
