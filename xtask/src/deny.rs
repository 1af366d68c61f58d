use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{cargo, ensure_installed, run as run_program};

/// Checks the dependencies against `deny.toml`.
///
/// A command of its own and no step of `test`: the advisories change from day to day, so the same
/// commit could pass today and fail tomorrow.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    ensure_installed(checkout, "deny")?;
    run_program(cargo(checkout).args(["deny", "check"]))
}
