//! Our reference server, as the suite wants it.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::listening::Listening;

/// Starts `mcpact everything` on a free port.
pub(super) fn start(binary: &Path, log: &Path) -> Result<Listening, Failure> {
    let mut command = Command::new(binary);
    command.args(["everything", "--listen", "127.0.0.1:0"]);
    Listening::start("mcpact everything", command, log)
}

/// The suite's check against DNS rebinding wants a host by name.
pub(super) fn by_name(url: &str) -> String {
    url.replacen("//127.0.0.1:", "//localhost:", 1)
}

#[cfg(test)]
mod tests {
    use super::by_name;

    #[test]
    fn the_suite_gets_a_host_by_name() {
        assert_eq!(
            by_name("http://127.0.0.1:4711/mcp"),
            "http://localhost:4711/mcp"
        );
    }
}
