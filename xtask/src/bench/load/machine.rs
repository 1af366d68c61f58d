//! Description of the machine.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// CPU model, number of cores and kernel.
pub(super) fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    format!(
        "{}, {cores} cores, Linux {}",
        model(&cpu).unwrap_or("unknown CPU"),
        kernel.trim()
    )
}

fn model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

#[cfg(test)]
mod tests {
    #[test]
    fn cpu_model_is_read() {
        let text = "processor\t: 0\nmodel name\t: Example CPU @ 2 GHz\n";
        assert_eq!(super::model(text), Some("Example CPU @ 2 GHz"));
        assert_eq!(super::model(""), None);
    }
}
