//! Output of `mcpact logs`.

use mcpact_gateway::control::LogLine;

use super::layout::printable;
use super::style::{Tone, for_stream};

/// Minimum width of the server column.
const NAME_WIDTH: usize = 16;

/// Formats an entry as JSON in one line.
pub(crate) fn json(line: &LogLine) -> String {
    // Strings and numbers: serialization cannot fail.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

/// Formats an entry as text: `|` marks output of the server, `*` an event.
pub(crate) fn text(line: &LogLine) -> String {
    let server = line.server.as_deref().unwrap_or("gateway");
    let source = match line.instance {
        Some(instance) => format!("{server}#{instance}"),
        None => server.to_owned(),
    };
    let (mark, tone) = match &line.event {
        None => ("|", Tone::Plain),
        Some(event) if event.ends_with("failure") => ("*", Tone::Bad),
        Some(_) => ("*", Tone::Hint),
    };
    let text = format!(
        "{}  {}  {} {}\n",
        Tone::Faint.paint(&line.time),
        Tone::Name.paint(&format!("{source:NAME_WIDTH$}")),
        tone.paint(mark),
        tone.paint(&printable(&line.text)),
    );
    for_stream(text, &std::io::stdout())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_output_and_events_have_different_marks() {
        let line = |event: Option<&str>| LogLine {
            time: String::from("2026-07-28T00:00:00.000Z"),
            server: Some(String::from("files")),
            instance: Some(2),
            event: event.map(str::to_owned),
            text: String::from("hello"),
        };
        let shown = |event| text(&line(event));
        assert_eq!(
            shown(None),
            "2026-07-28T00:00:00.000Z  files#2           | hello\n"
        );
        assert_eq!(
            shown(Some("start_success")),
            "2026-07-28T00:00:00.000Z  files#2           * hello\n"
        );
    }
}
