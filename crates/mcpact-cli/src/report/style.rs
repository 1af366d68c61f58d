use std::ffi::OsStr;

use anstyle::{AnsiColor, Style};

/// Coloured or plain output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    On,
    Off,
}

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
}

impl Colour {
    /// Returns `On` unless `NO_COLOR` is set or `TERM` is `dumb`.
    pub(super) fn on_terminal(no_color: Option<&OsStr>, term: Option<&OsStr>) -> Self {
        let is_dumb = term.is_some_and(|term| term == "dumb");
        if no_color.is_none_or(OsStr::is_empty) && !is_dumb {
            Self::On
        } else {
            Self::Off
        }
    }

    /// Styles a text if colour is on.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        match self {
            Self::On if tone != Tone::Plain && !text.is_empty() => {
                let style = tone.style();
                format!("{style}{text}{style:#}")
            }
            Self::On | Self::Off => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_disables_colour() {
        let choose = |no_color: Option<&str>, term: &str| {
            Colour::on_terminal(no_color.map(OsStr::new), Some(OsStr::new(term)))
        };
        assert_eq!(choose(None, "xterm"), Colour::On);
        assert_eq!(choose(Some(""), "xterm"), Colour::On);
        assert_eq!(choose(Some("1"), "xterm"), Colour::Off);
        assert_eq!(choose(None, "dumb"), Colour::Off);
    }

    #[test]
    fn plain_text_is_never_styled() {
        assert_eq!(Colour::On.paint(Tone::Plain, "a"), "a");
        assert_eq!(Colour::Off.paint(Tone::Bad, "a"), "a");
        assert_ne!(Colour::On.paint(Tone::Bad, "a"), "a");
    }
}
