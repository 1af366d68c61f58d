//! How a gateway and its servers are, for people and machines.

use mcpact_gateway::control::{
    Bundle, GatewayStatus, InstanceLine, ReloadReport, ServerLine, Status,
};

use super::page::{Cell, Page, in_one_line, length, widest, width};
use super::style::{Colour, Tone};

/// What stands between two columns.
const GAP: usize = 2;

/// Everything as JSON.
pub(crate) fn json(status: &Status) -> String {
    // Text and numbers: nothing here can fail.
    let mut text = serde_json::to_string_pretty(status).unwrap_or_default();
    text.push('\n');
    text
}

/// Everything that helps to find out what is wrong, as JSON that people read, too.
pub(crate) fn bundle(bundle: &Bundle) -> String {
    // Text and numbers: nothing here can fail.
    let mut text = serde_json::to_string_pretty(bundle).unwrap_or_default();
    text.push('\n');
    text
}

/// Everything, for people: the gateway, then a row for each server.
pub(crate) fn text(status: &Status) -> String {
    let colour = Colour::for_stream(&std::io::stdout());
    let mut page = Page::new(colour, width());
    gateway(&mut page, &status.gateway);
    page.blank();
    if status.servers.is_empty() {
        page.entry(0, &[], Tone::Plain, "no servers are configured");
    } else {
        servers(&mut page, &status.servers);
    }
    page.finish()
}

/// One server with each of its instances.
pub(crate) fn one(status: &Status) -> String {
    let colour = Colour::for_stream(&std::io::stdout());
    let mut page = Page::new(colour, width());
    for server in &status.servers {
        details(&mut page, server);
        if !server.instances.is_empty() {
            page.blank();
            instances(&mut page, &server.instances);
        }
    }
    page.finish()
}

/// Facts with their names before them.
fn facts(page: &mut Page, rows: &[(&str, Tone, String)]) {
    let wide = widest(rows.iter().map(|(name, _, _)| *name)) + GAP;
    for (name, tone, text) in rows {
        let cell = Cell {
            tone: Tone::Name,
            text: name,
            width: wide,
        };
        page.entry(0, &[cell], *tone, &in_one_line(text));
    }
}

fn gateway(page: &mut Page, gateway: &GatewayStatus) {
    let url = gateway.url.as_deref();
    let url = url.unwrap_or("one client on standard input and output");
    let config = match (&gateway.config, gateway.watching) {
        (None, _) => String::from("none, the servers are built in"),
        (Some(config), true) => format!("{config}, read anew when it changes"),
        (Some(config), false) => config.clone(),
    };
    let state = match gateway.state.as_str() {
        "serving" => "running",
        _ => "stopping",
    };
    let mut rows = vec![
        ("gateway", Tone::Plain, url.to_owned()),
        ("config", Tone::Plain, config),
        (
            state,
            Tone::Plain,
            format!(
                "for {} as process {}, version {}",
                age(gateway.state_seconds),
                gateway.pid,
                gateway.version
            ),
        ),
        (
            "clients",
            Tone::Plain,
            format!(
                "{}, {} in flight",
                count(gateway.sessions, "session"),
                count(gateway.in_flight, "request")
            ),
        ),
    ];
    if let Some(reload) = &gateway.last_reload {
        rows.push(last_reload(reload));
    }
    facts(page, &rows);
}

fn last_reload(reload: &ReloadReport) -> (&'static str, Tone, String) {
    let tone = if reload.applied {
        Tone::Plain
    } else {
        Tone::Bad
    };
    let text = format!("{} ({}), {}", reload.time, reload.cause, reload.in_words());
    ("reload", tone, text)
}

/// A row of a table, and sentences below it.
#[derive(Debug)]
struct Row {
    cells: Vec<(Tone, String)>,
    notes: Vec<(Tone, String)>,
}

/// How far the sentence below a row stands from the margin.
const NOTE: usize = 4;

/// Rows below the names of their columns.
fn table(page: &mut Page, names: &[&str], rows: &[Row]) {
    let wide: Vec<usize> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            let widest = cells.map(|(_, text)| length(text)).max().unwrap_or(0);
            widest.max(length(name)) + GAP
        })
        .collect();
    let names: Vec<_> = names
        .iter()
        .map(|name| (Tone::Faint, (*name).to_owned()))
        .collect();
    line(page, &names, &wide);
    for row in rows {
        line(page, &row.cells, &wide);
        for (tone, text) in &row.notes {
            page.entry(NOTE, &[], *tone, &in_one_line(text));
        }
    }
}

fn line(page: &mut Page, cells: &[(Tone, String)], wide: &[usize]) {
    let cells: Vec<Cell<'_>> = cells
        .iter()
        .zip(wide)
        .map(|((tone, text), width)| Cell {
            tone: *tone,
            text,
            width: *width,
        })
        .collect();
    page.entry(0, &cells, Tone::Plain, "");
}

fn plain(text: impl ToString) -> (Tone, String) {
    (Tone::Plain, text.to_string())
}

fn known(text: Option<impl ToString>) -> (Tone, String) {
    plain(text.map_or_else(|| String::from("-"), |text| text.to_string()))
}

fn servers(page: &mut Page, servers: &[ServerLine]) {
    let names = [
        "server",
        "state",
        "revision",
        "via",
        "up",
        "calls",
        "queued",
        "tools",
        "prompts",
        "resources",
    ];
    let rows: Vec<Row> = servers
        .iter()
        .map(|server| Row {
            cells: vec![
                (Tone::Name, server.name.clone()),
                (tone(&server.state), server.state.clone()),
                known(server.revision.as_deref()),
                plain(server.transport.as_str()),
                plain(server.instances.iter().filter(|one| is_up(one)).count()),
                plain(server.in_flight),
                plain(server.queued),
                known(server.lists.tools),
                known(server.lists.prompts),
                known(server.lists.resources),
            ],
            notes: trouble(server)
                .into_iter()
                .chain(silent(server))
                .chain(hidden(server))
                .collect(),
        })
        .collect();
    table(page, &names, &rows);
}

fn is_up(instance: &InstanceLine) -> bool {
    !matches!(instance.state.as_str(), "stopped" | "failed")
}

fn tone(state: &str) -> Tone {
    match state {
        "ready" | "busy" => Tone::Good,
        "failed" | "pausing" | "suspended" | "wrong" => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// What is wrong with a server, or was.
fn trouble(server: &ServerLine) -> Option<(Tone, String)> {
    let again = server
        .retry_seconds
        .map(|seconds| format!("tried again in {}; ", age(seconds)))
        .unwrap_or_default();
    let since = server.missing_seconds;
    let since = since.map(|seconds| format!("for {}: ", age(seconds)));
    match (&server.missing, &server.last_error) {
        (missing, Some(error))
            if server.retry_seconds.is_some() || missing.as_ref() == Some(&error.why) =>
        {
            let when = since.unwrap_or_else(|| format!("{} ago: ", age(error.seconds_ago)));
            Some((Tone::Bad, format!("{again}{when}{}", error.why)))
        }
        (Some(why), _) => {
            let since = since.unwrap_or_default();
            Some((Tone::Bad, format!("{again}{since}{why}")))
        }
        (None, _) if !server.lacking.is_empty() => Some((Tone::Bad, server.lacking.join("; "))),
        (None, Some(error)) => Some((
            Tone::Faint,
            format!("last error {} ago: {}", age(error.seconds_ago), error.why),
        )),
        (None, None) => None,
    }
}

/// Instances that take calls, and something is wrong with them.
fn silent(server: &ServerLine) -> impl Iterator<Item = (Tone, String)> {
    let open = server.instances.iter();
    let open = open.filter(|one| matches!(one.state.as_str(), "ready" | "busy"));
    open.filter_map(|one| {
        let why = one.why.as_deref()?;
        Some((Tone::Bad, format!("instance {} {why}", one.id)))
    })
}

/// What is kept back of a server, and what to do about it.
fn hidden(server: &ServerLine) -> Option<(Tone, String)> {
    let tools = server.hidden_tools.iter().map(|tool| format!("`{tool}`"));
    let tools: Vec<String> = tools.collect();
    let text = match tools.len() {
        0 => return None,
        number => format!(
            "{} hidden, because the server says something else about {} than before: {}; `mcpact approve --tools {}` agrees to it",
            count(number, "tool"),
            if number == 1 { "it" } else { "them" },
            tools.join(", "),
            server.name
        ),
    };
    Some((Tone::Bad, text))
}

fn details(page: &mut Page, server: &ServerLine) {
    let speaks = match (&server.revision, &server.era, &server.calls_itself) {
        (Some(revision), Some(era), Some(name)) => {
            format!("{revision} ({era}), and calls itself `{name}`")
        }
        (Some(revision), Some(era), None) => format!("{revision} ({era})"),
        (Some(revision), None, _) => revision.clone(),
        (None, _, _) => String::from("nobody has met it yet"),
    };
    let lists = &server.lists;
    let has: Vec<String> = [
        (lists.tools, "tool"),
        (lists.prompts, "prompt"),
        (lists.resources, "resource"),
        (lists.templates, "template"),
    ]
    .into_iter()
    .filter_map(|(number, what)| Some(count(number?, what)))
    .collect();
    let has = match has.as_slice() {
        [] => String::from("nobody has listed it yet"),
        has => has.join(", "),
    };
    let mut rows = vec![
        ("server", Tone::Name, server.name.clone()),
        ("state", tone(&server.state), server.state.clone()),
        ("speaks", Tone::Plain, speaks),
        ("via", Tone::Plain, server.transport.as_str().to_owned()),
        ("has", Tone::Plain, has),
        (
            "calls",
            Tone::Plain,
            format!("{} in flight, {} queued", server.in_flight, server.queued),
        ),
        (
            "starts",
            Tone::Plain,
            format!(
                "{}, failures that count: {}",
                server.starts, server.failures
            ),
        ),
        (
            "clients",
            Tone::Plain,
            format!("{} at its own address", count(server.sessions, "session")),
        ),
    ];
    if let Some((tone, text)) = trouble(server) {
        rows.push(("trouble", tone, text));
    }
    if let Some((tone, text)) = hidden(server) {
        rows.push(("hidden", tone, text));
    }
    facts(page, &rows);
}

fn instances(page: &mut Page, instances: &[InstanceLine]) {
    let names = [
        "instance",
        "process",
        "state",
        "for",
        "calls",
        "started by",
        "revision",
    ];
    let rows: Vec<Row> = instances
        .iter()
        .map(|one| Row {
            cells: vec![
                plain(one.id),
                known(one.pid),
                (tone(&one.state), one.state.clone()),
                plain(age(one.state_seconds)),
                plain(one.in_flight),
                plain(&one.cause),
                known(one.revision.as_deref()),
            ],
            notes: Vec::from_iter(one.why.clone().map(|why| (Tone::Faint, why))),
        })
        .collect();
    table(page, &names, &rows);
}

/// A number of things.
fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// How long something took or takes, in the two units that matter.
fn age(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, minutes) => format!("{minutes} min {rest} s"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3_661, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(age(seconds), expected);
        }
    }

    #[test]
    fn lines_of_a_log_stand_beside_each_other() {
        let text = "it ended; its log ends with: one\n\n  two\u{7}\r\n";
        assert_eq!(
            in_one_line(text),
            "it ended; its log ends with: one |   two\\u{7}"
        );
    }

    #[test]
    fn columns_stand_below_their_names() {
        let mut page = Page::new(Colour::Off, 80);
        let row = |name: &str, state: &str, note: Option<&str>| Row {
            cells: vec![plain(name), plain(state)],
            notes: Vec::from_iter(note.map(plain)),
        };
        let rows = [row("files", "ready", None), row("x", "failed", Some("why"))];
        table(&mut page, &["server", "state"], &rows);
        assert_eq!(
            page.finish(),
            "server  state\nfiles   ready\nx       failed\n    why\n"
        );
    }
}
