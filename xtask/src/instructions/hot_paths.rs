//! Instructions of ten hot paths of the libraries, compared with the committed counts.

use std::fs;

use crate::bench::instructions::{count_all, instructions};
use crate::bench::{markdown, target_folder};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;

/// Committed counts.
const PAGE: &str = "docs/benchmarks/hot-paths.md";

/// Growth that the check tolerates.
const TOLERANCE: f64 = 1.03;

/// Benchmarks of `crates/mcpact-bench/benches/instructions.rs`.
const PATHS: [&str; 10] = [
    "envelope.call_legacy",
    "envelope.result_blocks",
    "envelope.result_text",
    "envelope.result_quotes",
    "ambiguity.call_legacy",
    "gate.call",
    "classify.http",
    "initialize.from_bytes",
    "ndjson.mebibyte",
    "sse.mebibyte",
];

/// Name of a hot path and its instructions.
type Count = (String, u64);

/// Counts the hot paths, and compares them with the committed page or replaces it.
pub(super) fn run(checkout: &Checkout, is_check: bool) -> Result<(), Failure> {
    let counted = count(checkout)?;
    report::say(table(&counted).trim_end());
    if is_check {
        return check(&read(&checkout.read(PAGE)?), &counted);
    }
    let path = checkout.path(PAGE);
    fs::write(&path, page(&counted)).map_err(Failure::file(&path))
}

fn count(checkout: &Checkout) -> Result<Vec<Count>, Failure> {
    let target = target_folder(checkout);
    count_all(checkout, &target)?;
    let each = PATHS.iter().map(|name| {
        let count = instructions(&target, name)?;
        Ok(((*name).to_owned(), count as u64))
    });
    each.collect()
}

fn table(counts: &[Count]) -> String {
    let rows = counts.iter();
    let rows = rows.map(|(name, count)| vec![name.clone(), count.to_string()]);
    markdown::table(&["hot path", "instructions"], rows.collect())
}

fn page(counts: &[Count]) -> String {
    format!(
        "# Instructions of hot paths\n\n\
         Written by `cargo xtask instructions --quick`. `cargo xtask instructions --quick --check`, a step of \
         `cargo xtask test`, fails if a count grows by more than 3 %.\n\n\
         {}\n\
         The names are those of `crates/mcpact-bench/benches/instructions.rs`. Conditions: x86-64 Linux with AVX2, bench \
         profile, valgrind's callgrind. valgrind shows the same CPU features to the program on each such machine, so the \
         C library selects the same `memcpy`; another version of the C library may change counts of large messages.\n",
        table(counts)
    )
}

fn read(page: &str) -> Vec<Count> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Count> {
    let (name, count) = line.strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
    Some((name.trim().to_owned(), count.trim().parse().ok()?))
}

fn check(committed: &[Count], counted: &[Count]) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for (name, count) in counted {
        let before = committed.iter().find(|(other, _)| other == name);
        let Some((_, before)) = before else {
            findings.push(format!("{name}: not in `{PAGE}`"));
            continue;
        };
        let change = *count as f64 / (*before).max(1) as f64;
        let percent = (change - 1.0) * 100.0;
        let line = format!("{name}: {count} instructions, {before} committed ({percent:+.1} %)");
        if change > TOLERANCE {
            findings.push(line);
        } else if change < 1.0 / TOLERANCE {
            report::say(format_args!("{line}; commit the lower count"));
        }
    }
    Failure::unless_clean(
        "instructions",
        findings,
        "remove the cost, or run `cargo xtask instructions --quick` and commit the page with the reason",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: u64) -> Vec<Count> {
        vec![(String::from("gate.call"), count)]
    }

    #[test]
    fn committed_page_reads_back() {
        assert_eq!(read(&page(&counts(300))), counts(300));
    }

    #[test]
    fn growth_above_three_percent_and_missing_paths_fail() {
        assert!(check(&counts(1000), &counts(1030)).is_ok());
        assert!(check(&counts(1000), &counts(500)).is_ok());
        let failure = check(&counts(1000), &counts(1031)).unwrap_err().to_string();
        assert!(failure.contains("1031 instructions, 1000 committed (+3.1 %)"));
        assert!(check(&[], &counts(1)).is_err());
    }
}
