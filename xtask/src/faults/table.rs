//! Readable form of the rows.

use super::judge::{Figure, Limit, Row};

/// A row on a terminal.
pub(super) fn text(row: &Row, quick: bool) -> String {
    let verdict = if row.findings(quick).is_empty() {
        "ok"
    } else {
        "FAILED"
    };
    let mut lines = vec![format!(
        "{} {}: {verdict} ({:.1} s)",
        row.id, row.fault, row.seconds
    )];
    let figures = row.figures.iter();
    lines.extend(figures.map(|figure| format!("    {}", one(figure, quick))));
    lines.extend(
        row.broke
            .iter()
            .map(|why| format!("    ended early: {why}")),
    );
    lines.join("\n")
}

/// All rows as a page.
pub(super) fn page(rows: &[Row], quick: bool) -> String {
    let kind = if quick {
        "A quick run: a little of each fault; times are shown and not judged."
    } else {
        "Every number is judged."
    };
    let mut page = format!(
        "# Faults\n\n{kind}\n\n| | fault | figure | seen | limit | |\n|---|---|---|--:|--:|---|\n"
    );
    for row in rows {
        for figure in &row.figures {
            let mark = if figure.is_good(quick) {
                ""
            } else {
                "**missed**"
            };
            page.push_str(&format!(
                "| {} | {} | {} | {} | {} | {mark} |\n",
                row.id,
                row.fault,
                figure.what,
                number(figure.seen, &figure.unit),
                limit(figure)
            ));
        }
        if let Some(why) = &row.broke {
            page.push_str(&format!(
                "| {} | {} | ended early: {why} | | | **missed** |\n",
                row.id, row.fault
            ));
        }
    }
    page
}

fn one(figure: &Figure, quick: bool) -> String {
    let mark = if figure.is_good(quick) {
        ""
    } else {
        "  <-- missed"
    };
    let seen = number(figure.seen, &figure.unit);
    match limit(figure) {
        limit if limit.is_empty() => format!("{}: {seen}", figure.what),
        limit => format!("{}: {seen} (limit {limit}){mark}", figure.what),
    }
}

fn limit(figure: &Figure) -> String {
    match figure.limit {
        Limit::AtMost(most) | Limit::Within(most) => format!("≤ {}", number(most, &figure.unit)),
        Limit::AtLeast(least) => format!("≥ {}", number(least, &figure.unit)),
        Limit::Shown => String::new(),
    }
}

fn number(value: f64, unit: &str) -> String {
    let text = if value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{value:.2}")
    };
    format!("{text} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{page, text};
    use crate::faults::judge::{Figure, Limit, Row};

    #[test]
    fn missed_values_are_marked() {
        let figure = |seen| Figure {
            what: String::from("lost"),
            seen,
            unit: String::new(),
            limit: Limit::AtMost(0.0),
        };
        let row = Row {
            id: String::from("F01"),
            fault: String::from("killed"),
            seconds: 1.0,
            figures: vec![figure(0.0), figure(2.5)],
            broke: None,
        };
        let shown = text(&row, true);
        assert!(shown.contains("FAILED") && shown.contains("lost: 2.50 (limit ≤ 0)  <-- missed"));
        let page = page(&[row], true);
        assert!(page.contains("| F01 | killed | lost | 0 | ≤ 0 |  |\n"));
        assert!(page.contains("| F01 | killed | lost | 2.50 | ≤ 0 | **missed** |\n"));
    }
}
