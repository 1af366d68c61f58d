//! Styles of the output.

use anstream::adapter::strip_str;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use super::layout::printable;

/// Meaning of a piece of text, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Heading,
    Name,
    Good,
    Bad,
    Hint,
    Faint,
}

impl Tone {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold().underline(),
            Self::Name => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Hint => AnsiColor::Cyan.on_default(),
            Self::Faint => Style::new().dimmed(),
        }
    }

    /// Styles a text of one line, which may be untrusted.
    pub(super) fn paint(self, text: &str) -> String {
        let text = &*printable(text);
        if self == Self::Plain || text.is_empty() {
            return text.to_owned();
        }
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// Returns whether the output of a stream is coloured: on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
pub(super) fn is_coloured(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Removes the styles if the output of the stream is not coloured.
pub(super) fn for_stream(text: String, stream: &impl RawStream) -> String {
    if is_coloured(stream) {
        text
    } else {
        strip_str(&text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_never_styled() {
        assert_eq!(Tone::Plain.paint("a"), "a");
        assert_ne!(Tone::Bad.paint("a"), "a");
        assert_eq!(strip_str(&Tone::Bad.paint("a")).to_string(), "a");
    }
}
