//! Text layout: aligned columns and wrapped text.

use anstream::stream::RawStream;
use mcpact_config::is_misleading;

use super::style::{self, Tone};

/// Default width.
const DEFAULT_WIDTH: usize = 80;
/// Minimum width of wrapped text.
const MIN_TEXT: usize = 24;

/// Returns the output width: `COLUMNS`, or the width of the terminal, from 60 to 120.
pub(super) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size_of(std::io::stdout());
    columns
        .or_else(|| terminal().map(|(width, _)| usize::from(width.0)))
        .map_or(DEFAULT_WIDTH, |columns: usize| columns.clamp(60, 120))
}

/// A column before the text of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'t> {
    tone: Tone,
    text: &'t str,
    width: usize,
}

/// Returns a column; `width` includes the gap after it.
pub(super) const fn cell(tone: Tone, text: &str, width: usize) -> Cell<'_> {
    Cell { tone, text, width }
}

/// Text under construction.
#[derive(Debug)]
pub(super) struct Layout {
    out: String,
    width: usize,
}

impl Layout {
    pub(super) const fn new(width: usize) -> Self {
        let out = String::new();
        Self { out, width }
    }

    /// Returns the text, with styles if the stream shows them.
    pub(super) fn finish(self, stream: &impl RawStream) -> String {
        style::for_stream(self.out, stream)
    }

    /// Returns the text with all styles.
    #[cfg(test)]
    pub(super) fn styled(&self) -> &str {
        &self.out
    }

    /// Adds a line without indentation.
    pub(super) fn title(&mut self, tone: Tone, text: &str) {
        self.line(&tone.paint(text));
    }

    /// Adds an empty line and a heading.
    pub(super) fn heading(&mut self, text: &str, note: &str) {
        let mut line = Tone::Heading.paint(text);
        if !note.is_empty() {
            line.push(' ');
            line.push_str(&Tone::Faint.paint(&format!("({note})")));
        }
        self.line("");
        self.line(&line);
    }

    /// Adds an indented line with a label; `width` is the length of the longest label.
    pub(super) fn field(&mut self, label: &str, width: usize, tone: Tone, text: &str) {
        self.entry(2, &[cell(Tone::Name, label, width + 2)], tone, text);
    }

    /// Adds a hint after an arrow.
    pub(super) fn hint(&mut self, indent: usize, text: &str) {
        self.entry(indent, &[cell(Tone::Hint, "→", 2)], Tone::Hint, text);
    }

    /// Adds a line of columns and a text that wraps in its own column.
    pub(super) fn entry(&mut self, indent: usize, cells: &[Cell<'_>], tone: Tone, text: &str) {
        let mut line = " ".repeat(indent);
        let mut at = indent;
        let mut hang = indent;
        for cell in cells {
            let gap = hang.saturating_sub(at);
            line.push_str(&" ".repeat(gap));
            line.push_str(&cell.tone.paint(cell.text));
            at = hang.max(at) + length(cell.text);
            hang += cell.width;
        }
        let fits = at < hang || cells.is_empty();
        if text.is_empty() {
            return self.line(&line);
        }
        let is_narrow = hang + MIN_TEXT > self.width;
        if is_narrow {
            hang = indent + 4;
        }
        if is_narrow || !fits {
            self.line(&line);
            line.clear();
            at = 0;
        }
        for part in wrap(text, self.width.saturating_sub(hang)) {
            line.push_str(&" ".repeat(hang.saturating_sub(at)));
            line.push_str(&tone.paint(&part));
            self.line(&line);
            line.clear();
            at = 0;
        }
    }

    /// Adds an indented line that does not wrap.
    pub(super) fn raw(&mut self, indent: usize, text: &str) {
        let text = Tone::Plain.paint(text);
        self.line(&format!("{}{text}", " ".repeat(indent)));
    }

    /// Adds an empty line.
    pub(super) fn blank(&mut self) {
        self.line("");
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// Returns the length of a text in characters.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns the length of the longest text.
pub(super) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> usize {
    texts.into_iter().map(length).max().unwrap_or(0)
}

/// Escapes characters of untrusted text that a terminal obeys or does not show.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if is_misleading(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Escapes an untrusted text of several lines.
pub(super) fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Joins the lines of an untrusted text.
pub(super) fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let lines: Vec<String> = lines
        .filter(|line| !line.is_empty())
        .map(printable)
        .collect();
    lines.join(" | ")
}

/// Wraps a text between words; longer words stay whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && length(&line) + 1 + length(word) > width {
            lines.push(core::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_in_its_own_column() {
        let mut layout = Layout::new(36);
        let cells = ["a", "b"].map(|text| cell(Tone::Name, text, 8));
        layout.entry(2, &cells, Tone::Plain, "one two three four");
        layout.entry(2, &cells[..1], Tone::Plain, "");
        assert_eq!(
            layout.finish(&Vec::new()),
            concat!("  a       b\n", "      one two three four\n", "  a\n",)
        );
    }

    #[test]
    fn words_are_not_broken() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("a-very-long-word b", 4), ["a-very-long-word", "b"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("naïve 船"), "naïve 船");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
