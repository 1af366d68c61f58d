//! Memory that this process may use: of the machine, of its cgroup, and its address space.

use std::fs;
use std::path::{Path, PathBuf};

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// Returns the smallest of the limits that are known.
pub(super) fn memory() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| total_of(&text));
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cgroup = limit_files(&cgroups)
        .iter()
        .filter_map(|path| limit_in(&fs::read_to_string(path).ok()?))
        .min();
    let space = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let space = space.and_then(|bytes| usize::try_from(bytes).ok());
    [machine, cgroup, space].into_iter().flatten().min()
}

/// Returns the total memory in the text of `/proc/meminfo`.
fn total_of(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes: usize = line?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the limit in a file of a cgroup; none if there is no limit.
fn limit_in(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

/// Returns the files that may limit the memory of a process with these cgroups, of its own cgroup and those above it.
fn limit_files(cgroups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (V2, "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (V1, "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let folders = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(folders.map(|folder| Path::new(root).join(folder).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_the_files_of_the_kernel() {
        assert_eq!(
            total_of("MemTotal:  2048 kB\nMemFree: 1 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(total_of("MemFree: 1 kB\n"), None);
        assert_eq!(limit_in("max\n"), None);
        assert_eq!(limit_in("1048576\n"), Some(1 << 20));
    }

    #[test]
    fn own_cgroup_and_those_above_it_limit_the_memory() {
        let text = |path: &Path| path.display().to_string();
        let files = |cgroups: &str| {
            limit_files(cgroups)
                .iter()
                .map(|path| text(path))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            files("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            files("3:cpu:/x\n2:hugetlb,memory:/c\n"),
            [
                "/sys/fs/cgroup/memory/c/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
        assert!(files("garbage\n").is_empty());
    }

    #[test]
    fn memory_of_this_machine_is_known() {
        assert!(memory().is_some_and(|bytes| bytes > 16 << 20));
    }
}
