//! The report about the hot paths, and what every report is made of.

use super::instructions::Counted;
use super::rows::Measured;
use super::targets::Judgement;

/// The hot paths: the targets first, then every number.
pub(super) fn section(measured: &[Measured], judged: &[Judgement], counted: &Counted) -> String {
    let targets = table(
        &[
            "target",
            "promised",
            "fastest",
            "median",
            "instructions",
            "",
        ],
        judged.iter().map(verdict).collect(),
    );
    let numbers = table(
        &[
            "operation",
            "fastest",
            "median",
            "throughput",
            "instructions",
        ],
        measured.iter().map(numbers).collect(),
    );
    let note = match counted {
        Counted::Done => String::new(),
        Counted::Skipped(why) => format!("\nInstructions were not counted: {why}.\n"),
    };
    format!(
        "## Hot paths\n\nThe ratio of the fastest samples decides, because other work on the machine disturbs it \
         least.\n\n{targets}\n{numbers}{note}"
    )
}

fn verdict(judgement: &Judgement) -> Vec<String> {
    let ratio = |value: f64| format!("{value:.2}x");
    vec![
        judgement.what.to_owned(),
        ratio(judgement.promised),
        ratio(judgement.fastest),
        ratio(judgement.median),
        judgement.instructions.map_or_else(String::new, ratio),
        if judgement.is_met() { "met" } else { "missed" }.to_owned(),
    ]
}

fn numbers(measured: &Measured) -> Vec<String> {
    let speed = |bytes: f64| format!("{:.0} MB/s", bytes / measured.fastest * 1e3);
    vec![
        measured.row.what.to_owned(),
        time(measured.fastest),
        time(measured.median),
        measured.bytes.map_or_else(String::new, speed),
        measured
            .instructions
            .map_or_else(String::new, |count| format!("{count:.0}")),
    ]
}

pub(super) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.1} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n => format!("{:.2} ms", n / 1e6),
    }
}

/// A table with aligned columns; all but the first are numbers.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let columns = all.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = all.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let rule = |(column, width): (usize, &usize)| match column {
        0 => "-".repeat(*width),
        _ => format!("{}:", "-".repeat(width.saturating_sub(1))),
    };
    all.insert(1, widths.iter().enumerate().map(rule).collect());
    all.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut out = String::from("|");
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        out += &match column {
            0 => format!(" {cell:<width$} |"),
            _ => format!(" {cell:>width$} |"),
        };
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_cells_hold() {
        let rows = vec![vec!["a".to_owned(), "1 µs".to_owned()]];
        assert_eq!(
            table(&["what", "n"], rows),
            "| what |    n |\n| ---- | ---: |\n| a    | 1 µs |\n"
        );
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!(time(12.34), "12.3 ns");
        assert_eq!(time(1234.0), "1.23 µs");
        assert_eq!(time(1_234_567.0), "1.23 ms");
    }
}
