//! `docs/COMPATIBILITY.md`, written by the test that uses every feature between every pair of revisions.
//! Among the other tests it fails where the page says something else.

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{cargo, run as run_program};

/// Variable that makes the test write the page.
const WRITE: &str = "MCPACT_WRITE_COMPATIBILITY";

/// Runs the test and writes the page.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let mut command = cargo(checkout);
    command.env(WRITE, "yes");
    run_program(command.args(["test", "-p", "mcpact-cli", "--test", "compatibility"]))
}
