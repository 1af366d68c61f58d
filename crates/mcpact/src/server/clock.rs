//! The machines' clock: time since the process began to serve.

use std::sync::LazyLock;
use std::time::Instant;

use mcpact_engine::time::Moment;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(super) fn now() -> Moment {
    Moment::at(START.elapsed())
}
