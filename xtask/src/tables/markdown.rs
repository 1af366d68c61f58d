//! Markdown that is pleasant to read as text, too.

/// A section: heading, a paragraph on how to read the table, the table.
pub(super) fn section(
    heading: &str,
    reading: &str,
    head: &[String],
    rows: &[Vec<String>],
) -> String {
    format!("## {heading}\n\n{reading}\n\n{}", table(head, rows))
}

/// Text in code style.
pub(super) fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = std::iter::once(head).chain(rows.iter().map(Vec::as_slice));
            cells
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let lines = [head, &rule]
        .into_iter()
        .chain(rows.iter().map(Vec::as_slice));
    lines.map(|cells| line(cells, &widths)).collect()
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    format!("| {} |\n", padded.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_aligned() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let text = table(&words(&["a", "b"]), &[words(&["long", "–"])]);
        assert_eq!(text, "| a    | b |\n| ---- | - |\n| long | – |\n");
    }
}
