//! Output of `mcpact status`.

use std::io::stdout;

use mcpact_gateway::control::{GatewayStatus, InstanceLine, ReloadReport, ServerLine, Status};

use super::count;
use super::layout::{Cell, Layout, cell, in_one_line, length, widest, width};
use super::style::Tone;

/// Gap between two columns.
const GAP: usize = 2;

/// Formats the gateway and a row for each server as text.
pub(crate) fn text(status: &Status) -> String {
    let mut layout = Layout::new(width());
    gateway(&mut layout, &status.gateway);
    layout.blank();
    if status.servers.is_empty() {
        layout.entry(0, &[], Tone::Plain, "no servers configured");
    } else {
        servers(&mut layout, &status.servers);
    }
    layout.finish(&stdout())
}

/// Formats one server and its instances as text.
pub(crate) fn server(status: &Status) -> String {
    let mut layout = Layout::new(width());
    for server in &status.servers {
        details(&mut layout, server);
        if !server.instances.is_empty() {
            layout.blank();
            instances(&mut layout, &server.instances);
        }
    }
    layout.finish(&stdout())
}

/// Adds labelled lines.
fn fields(layout: &mut Layout, rows: &[(&str, (Tone, String))]) {
    let width = widest(rows.iter().map(|(name, _)| *name)) + GAP;
    for (name, (tone, text)) in rows {
        let name = cell(Tone::Name, name, width);
        layout.entry(0, &[name], *tone, &in_one_line(text));
    }
}

fn gateway(layout: &mut Layout, gateway: &GatewayStatus) {
    let url = gateway.url.as_deref();
    let config = match (&gateway.config, gateway.watching) {
        (None, _) => String::from("none (built-in servers)"),
        (Some(config), true) => format!("{config} (reloaded on change)"),
        (Some(config), false) => config.clone(),
    };
    let state = match gateway.state.as_str() {
        "serving" => "running",
        _ => "stopping",
    };
    let state = format!(
        "{state} for {}, pid {}, version {}",
        age(gateway.state_seconds),
        gateway.pid,
        gateway.version
    );
    let clients = format!(
        "{}, {} in flight",
        count(gateway.sessions, "session"),
        count(gateway.in_flight, "request")
    );
    let mut rows = vec![
        ("gateway", plain(url.unwrap_or("stdio (one client)"))),
        ("config", plain(config)),
        ("state", plain(state)),
        ("clients", plain(clients)),
    ];
    rows.extend(gateway.last_reload.as_ref().map(last_reload));
    let ignored = gateway.ignored_capabilities.iter();
    rows.extend(ignored.map(|client| ("ignored", (Tone::Bad, client.clone()))));
    fields(layout, &rows);
}

fn last_reload(reload: &ReloadReport) -> (&'static str, (Tone, String)) {
    let tone = if reload.applied {
        Tone::Plain
    } else {
        Tone::Bad
    };
    let text = format!("{} ({}): {}", reload.time, reload.cause, reload.summary());
    ("reload", (tone, text))
}

/// A row of a table with notes below it.
#[derive(Debug)]
struct Row {
    cells: Vec<(Tone, String)>,
    notes: Vec<(Tone, String)>,
}

/// Indentation of a note.
const NOTE: usize = 4;

/// Adds a table with a header.
fn table(layout: &mut Layout, names: &[&str], rows: &[Row]) {
    let widths: Vec<usize> = names
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
    line(layout, &names, &widths);
    for row in rows {
        line(layout, &row.cells, &widths);
        for (tone, text) in &row.notes {
            layout.entry(NOTE, &[], *tone, &in_one_line(text));
        }
    }
}

fn line(layout: &mut Layout, cells: &[(Tone, String)], widths: &[usize]) {
    let cells: Vec<Cell<'_>> = cells
        .iter()
        .zip(widths)
        .map(|((tone, text), width)| cell(*tone, text, *width))
        .collect();
    layout.entry(0, &cells, Tone::Plain, "");
}

fn plain(text: impl ToString) -> (Tone, String) {
    (Tone::Plain, text.to_string())
}

fn optional(text: Option<impl ToString>) -> (Tone, String) {
    plain(text.map_or_else(|| String::from("-"), |text| text.to_string()))
}

fn servers(layout: &mut Layout, servers: &[ServerLine]) {
    let names = ["SERVER", "STATE", "REVISION", "TOOLS", "CALLS", "UP", "VIA"];
    let rows: Vec<Row> = servers
        .iter()
        .map(|server| Row {
            cells: vec![
                (Tone::Name, clipped(&server.name)),
                (tone(&server.state), server.state.clone()),
                optional(server.revision.as_deref()),
                optional(tools(server)),
                plain(server.in_flight),
                plain(server.instances.iter().filter(|one| is_up(one)).count()),
                plain(server.transport.as_str()),
            ],
            notes: queued(server)
                .into_iter()
                .chain(problem(server))
                .chain(remedy(server))
                .chain(unhealthy_instances(server))
                .chain(hidden_tools(server))
                .chain(ignored_capabilities(server))
                .chain(noise(server))
                .collect(),
        })
        .collect();
    table(layout, &names, &rows);
}

/// Maximum width of a name in the table.
const MAX_NAME: usize = 24;

fn clipped(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        None => name.to_owned(),
        Some(_) => name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
    }
}

/// Number of served tools, with that of all tools if the config hides some.
fn tools(server: &ServerLine) -> Option<String> {
    let all = server.lists.tools?;
    Some(match server.lists.served_tools {
        Some(served) if served != all => format!("{served}/{all}"),
        Some(_) | None => all.to_string(),
    })
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

/// Calls that wait for an instance.
fn queued(server: &ServerLine) -> Option<(Tone, String)> {
    let text = format!("{} queued", count(server.queued, "call"));
    (server.queued > 0).then_some((Tone::Plain, text))
}

/// Separates a cause from its remedy.
const HINT: &str = "; hint: ";

/// The remedy of the current problem.
fn remedy(server: &ServerLine) -> Option<(Tone, String)> {
    let text = server.remedy.as_ref()?;
    let has_problem = server.missing.is_some() || server.last_error.is_some();
    has_problem.then(|| (Tone::Hint, format!("hint: {text}")))
}

/// Lines on stdout that are not JSON.
fn noise(server: &ServerLine) -> Option<(Tone, String)> {
    let lines = usize::try_from(server.stdout_noise).unwrap_or(usize::MAX);
    let text = format!(
        "{} on stdout not JSON; run `mcpact logs {}` to see them",
        count(lines, "line"),
        server.name
    );
    (lines > 0).then_some((Tone::Faint, text))
}

/// The current problem of a server, or its last error.
fn problem(server: &ServerLine) -> Option<(Tone, String)> {
    let retry = server
        .retry_seconds
        .map(|seconds| format!("retry in {}; ", age(seconds)))
        .unwrap_or_default();
    let since = server.missing_seconds;
    let since = since.map(|seconds| format!("unavailable for {}: ", age(seconds)));
    let missing = server.missing.as_deref();
    let missing = missing.map(|why| why.split_once(HINT).map_or(why, |(why, _)| why));
    match (missing, &server.last_error) {
        (missing, Some(error))
            if server.retry_seconds.is_some() || missing == Some(error.why.as_str()) =>
        {
            let when = since.unwrap_or_else(|| format!("{} ago: ", age(error.seconds_ago)));
            Some((Tone::Bad, format!("{retry}{when}{}", error.why)))
        }
        (Some(why), _) => {
            let since = since.unwrap_or_default();
            Some((Tone::Bad, format!("{retry}{since}{why}")))
        }
        (None, _) if !server.lacking.is_empty() => Some((Tone::Bad, server.lacking.join("; "))),
        (None, Some(error)) => Some((
            Tone::Faint,
            format!("last error {} ago: {}", age(error.seconds_ago), error.why),
        )),
        (None, None) => None,
    }
}

/// Problems of instances that accept calls.
fn unhealthy_instances(server: &ServerLine) -> impl Iterator<Item = (Tone, String)> {
    let open = server.instances.iter();
    let open = open.filter(|one| matches!(one.state.as_str(), "ready" | "busy"));
    open.filter_map(|one| {
        let why = one.why.as_deref()?;
        Some((Tone::Bad, format!("instance {}: {why}", one.id)))
    })
}

/// Capabilities with a wrong type.
fn ignored_capabilities(server: &ServerLine) -> Option<(Tone, String)> {
    let text = format!(
        "capabilities ignored: {}",
        server.ignored_capabilities.join("; ")
    );
    (!server.ignored_capabilities.is_empty()).then_some((Tone::Bad, text))
}

/// Tools hidden because their definition changed.
fn hidden_tools(server: &ServerLine) -> Option<(Tone, String)> {
    let tools = server.hidden_tools.iter().map(|tool| format!("`{tool}`"));
    let tools: Vec<String> = tools.collect();
    let text = format!(
        "{} hidden because of a changed definition: {}; run `mcpact approve --tools {}`",
        count(tools.len(), "tool"),
        tools.join(", "),
        server.name
    );
    (!tools.is_empty()).then_some((Tone::Bad, text))
}

fn details(layout: &mut Layout, server: &ServerLine) {
    let revision = match (&server.revision, &server.era, &server.calls_itself) {
        (Some(revision), Some(era), Some(name)) => {
            format!("{revision} ({era}), reports itself as `{name}`")
        }
        (Some(revision), Some(era), None) => format!("{revision} ({era})"),
        (Some(revision), None, _) => revision.clone(),
        (None, _, _) => String::from("unknown (not started yet)"),
    };
    let lists = &server.lists;
    let hidden = match (lists.served_tools, lists.tools) {
        (Some(served), Some(all)) if served != all => format!(" ({served} served)"),
        _ => String::new(),
    };
    let items: Vec<String> = [
        (lists.tools, "tool"),
        (lists.prompts, "prompt"),
        (lists.resources, "resource"),
        (lists.templates, "template"),
    ]
    .into_iter()
    .filter_map(|(number, what)| {
        let hidden = if what == "tool" { hidden.as_str() } else { "" };
        Some(count(number?, what) + hidden)
    })
    .collect();
    let items = match items.as_slice() {
        [] => String::from("unknown (not listed yet)"),
        items => items.join(", "),
    };
    let calls = format!("{} in flight, {} queued", server.in_flight, server.queued);
    let failures = count(server.failures, "recent failure");
    let sessions = count(server.sessions, "session");
    let mut rows = vec![
        ("server", (Tone::Name, server.name.clone())),
        ("state", (tone(&server.state), server.state.clone())),
        ("revision", plain(revision)),
        ("transport", plain(server.transport.as_str())),
        ("offers", plain(items)),
        ("calls", plain(calls)),
        ("starts", plain(format!("{}, {failures}", server.starts))),
        ("clients", plain(format!("{sessions} at its own endpoint"))),
    ];
    if !server.capabilities.is_empty() {
        rows.push(("declares", plain(server.capabilities.join(", "))));
    }
    rows.extend(server.clients.iter().map(|client| {
        let text = format!("{} {} ({})", client.name, client.version, client.revision);
        ("client", plain(text))
    }));
    let sandbox = server.sandbox.as_ref();
    rows.extend(sandbox.map(|sandbox| ("sandbox", plain(sandbox))));
    rows.extend(problem(server).map(|problem| ("problem", problem)));
    let hint = remedy(server)
        .and_then(|(tone, text)| Some(("hint", (tone, text.strip_prefix("hint: ")?.to_owned()))));
    rows.extend(hint);
    rows.extend(noise(server).map(|noise| ("stdout", noise)));
    rows.extend(hidden_tools(server).map(|hidden| ("hidden", hidden)));
    rows.extend(ignored_capabilities(server).map(|ignored| ("ignored", ignored)));
    fields(layout, &rows);
}

fn instances(layout: &mut Layout, instances: &[InstanceLine]) {
    let names = [
        "INSTANCE",
        "PID",
        "STATE",
        "FOR",
        "CALLS",
        "STARTED BY",
        "REVISION",
    ];
    let rows: Vec<Row> = instances
        .iter()
        .map(|one| Row {
            cells: vec![
                plain(one.id),
                optional(one.pid),
                (tone(&one.state), one.state.clone()),
                plain(age(one.state_seconds)),
                plain(one.in_flight),
                plain(&one.cause),
                optional(one.revision.as_deref()),
            ],
            notes: Vec::from_iter(one.why.clone().map(|why| (Tone::Faint, why))),
        })
        .collect();
    table(layout, &names, &rows);
}

/// Formats a duration in at most two units.
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
    fn durations_have_two_units() {
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
    fn lines_are_joined_and_escaped() {
        let text = "exited; stderr: one\n\n  two\u{7}\r\n";
        assert_eq!(in_one_line(text), "exited; stderr: one |   two\\u{7}");
    }

    #[test]
    fn columns_are_aligned_with_the_header() {
        let mut layout = Layout::new(80);
        let row = |name: &str, state: &str, note: Option<&str>| Row {
            cells: vec![plain(name), plain(state)],
            notes: Vec::from_iter(note.map(plain)),
        };
        let rows = [row("files", "ready", None), row("x", "failed", Some("why"))];
        table(&mut layout, &["server", "state"], &rows);
        assert_eq!(
            layout.finish(&Vec::new()),
            "server  state\nfiles   ready\nx       failed\n    why\n"
        );
    }
}
