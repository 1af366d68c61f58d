//! What happened to servers, for people and machines.

use mcpact_gateway::control::LogLine;

use super::page::printable;
use super::style::{Colour, Tone};

/// How much room the name of a server has.
const NAME: usize = 16;

/// A line as JSON.
pub(crate) fn json(line: &LogLine) -> String {
    // Text and numbers: nothing here can fail.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

/// A line for people: `|` stands before what the server wrote itself, `*` before what became of it.
pub(crate) fn text(line: &LogLine) -> String {
    written(line, Colour::for_stream(&std::io::stdout()))
}

fn written(line: &LogLine, colour: Colour) -> String {
    let server = line.server.as_deref().unwrap_or("gateway");
    let who = match line.instance {
        Some(instance) => format!("{server}#{instance}"),
        None => server.to_owned(),
    };
    let (mark, tone) = match &line.event {
        None => ("|", Tone::Plain),
        Some(event) if event.ends_with("failure") => ("*", Tone::Bad),
        Some(_) => ("*", Tone::Remedy),
    };
    format!(
        "{}  {}  {} {}\n",
        colour.paint(Tone::Faint, &line.time),
        colour.paint(Tone::Name, &format!("{who:NAME$}")),
        colour.paint(tone, mark),
        colour.paint(tone, &printable(&line.text)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_server_and_about_it_differ() {
        let line = |event: Option<&str>| LogLine {
            time: String::from("2026-07-28T00:00:00.000Z"),
            server: Some(String::from("files")),
            instance: Some(2),
            event: event.map(str::to_owned),
            text: String::from("hello"),
        };
        let shown = |event| written(&line(event), Colour::Off);
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
