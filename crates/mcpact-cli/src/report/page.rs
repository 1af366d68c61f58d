//! Aligned columns and wrapped sentences.

use super::style::{Colour, Tone};

/// The width of a page when nothing tells another one: it fits every terminal.
const USUAL_WIDTH: usize = 80;
/// Narrower columns of text cannot be read.
const LEAST_TEXT: usize = 24;

/// How wide a page may be: `COLUMNS`, or the terminal, within reason.
pub(super) fn width() -> usize {
    let told = std::env::var("COLUMNS").ok();
    let told = told.and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size_of(std::io::stdout());
    told.or_else(|| terminal().map(|(width, _)| usize::from(width.0)))
        .map_or(USUAL_WIDTH, |columns: usize| columns.clamp(60, 120))
}

/// A column before the sentence of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'t> {
    pub(super) tone: Tone,
    pub(super) text: &'t str,
    /// How wide the column is, with the gap that follows.
    pub(super) width: usize,
}

/// Text that grows line by line.
#[derive(Debug)]
pub(super) struct Page {
    out: String,
    colour: Colour,
    width: usize,
}

impl Page {
    pub(super) const fn new(colour: Colour, width: usize) -> Self {
        Self {
            out: String::new(),
            colour,
            width,
        }
    }

    /// The finished text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A line that stands at the margin.
    pub(super) fn title(&mut self, tone: Tone, text: &str) {
        let painted = self.colour.paint(tone, text);
        self.line(&painted);
    }

    /// The heading of a section, set off from what is above it.
    pub(super) fn heading(&mut self, text: &str, note: &str) {
        let mut line = self.colour.paint(Tone::Heading, text);
        if !note.is_empty() {
            line.push(' ');
            line.push_str(&self.colour.paint(Tone::Faint, &format!("({note})")));
        }
        self.line("");
        self.line(&line);
    }

    /// Columns, then a sentence that is wrapped in a column of its own.
    pub(super) fn entry(&mut self, indent: usize, cells: &[Cell<'_>], tone: Tone, text: &str) {
        let mut line = " ".repeat(indent);
        let mut at = indent;
        let mut hang = indent;
        for cell in cells {
            let gap = hang.saturating_sub(at);
            line.push_str(&" ".repeat(gap));
            line.push_str(&self.colour.paint(cell.tone, cell.text));
            at = hang.max(at) + length(cell.text);
            hang += cell.width;
        }
        let fits = at < hang || cells.is_empty();
        if text.is_empty() {
            return self.line(&line);
        }
        let is_narrow = hang + LEAST_TEXT > self.width;
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
            line.push_str(&self.colour.paint(tone, &part));
            self.line(&line);
            line.clear();
            at = 0;
        }
    }

    /// An empty line.
    pub(super) fn blank(&mut self) {
        self.line("");
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// How many columns a text takes.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// The widest of these texts.
pub(super) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> usize {
    texts.into_iter().map(length).max().unwrap_or(0)
}

/// What a peer wrote, without anything that could move the cursor.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        // Overrides of the writing direction are not control characters, but as misleading.
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A text of any number of lines, such as the end of a log.
pub(super) fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let lines: Vec<String> = lines
        .filter(|line| !line.is_empty())
        .map(printable)
        .collect();
    lines.join(" | ")
}

/// Breaks a text between words; a word that is longer than the line stays whole.
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

    fn cell(text: &str) -> Cell<'_> {
        Cell {
            tone: Tone::Name,
            text,
            width: 8,
        }
    }

    #[test]
    fn sentences_wrap_in_their_own_column() {
        let mut page = Page::new(Colour::Off, 36);
        page.entry(
            2,
            &[cell("a"), cell("b")],
            Tone::Plain,
            "one two three four",
        );
        page.entry(2, &[cell("a")], Tone::Plain, "");
        assert_eq!(
            page.finish(),
            concat!("  a       b\n", "      one two three four\n", "  a\n",)
        );
    }

    #[test]
    fn words_are_never_broken() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("a-very-long-word b", 4), ["a-very-long-word", "b"]);
    }

    #[test]
    fn what_a_peer_wrote_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("naïve 船"), "naïve 船");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
