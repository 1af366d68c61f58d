//! Contract of the program that needs no running gateway: commands, exit codes, config keys and stable
//! strings. `tests/operation/contract.rs` has the rest.

#[path = "../tests/contract/pin.rs"]
mod pin;

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use mcpact_config::keys::{Key, Kind, ROOT};
use mcpact_gateway::stable_strings;

use self::pin::pin;
use crate::args::Cli;
use crate::doctor::{Level, Subject};
use crate::error::Exit;
use crate::explanation::{IgnoredReason, MethodReason};
use crate::probe::failure::FailureReason;
use crate::probe::revisions::RevisionState;
use crate::probe::violations::Rule;
use crate::report::ProbeOutcome;

/// Every command for users, the program itself first, each with its path.
fn commands() -> Vec<(String, Command)> {
    fn add(path: &str, command: &Command, all: &mut Vec<(String, Command)>) {
        all.push((path.to_owned(), command.clone()));
        let inner = command.get_subcommands();
        for inner in inner.filter(|inner| !inner.is_hide_set()) {
            add(&format!("{path} {}", inner.get_name()), inner, all);
        }
    }
    let mut root = Cli::command();
    root.build();
    let mut all = Vec::new();
    add("mcpact", &root, &mut all);
    all
}

/// U3: commands and flags change only with their contract.
#[test]
fn contract_of_commands_and_flags() {
    let commands = commands();
    let facts = commands.iter().flat_map(|(path, command)| {
        let own = command.get_arguments().filter(move |arg| {
            let is_inherited = arg.is_global_set() && path != "mcpact";
            !is_inherited && arg.get_id() != "help"
        });
        let args = own.map(move |arg| format!("{path} {}", argument(arg)));
        std::iter::once(path.clone()).chain(args)
    });
    pin("commands", facts);
}

fn argument(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> = long.into_iter().chain(short).collect();
    let mut text = names.join(", ");
    let takes_values = arg.get_action().takes_values();
    let values = arg.get_value_names().unwrap_or_default().iter();
    let values: Vec<String> = values.map(|value| format!("<{value}>")).collect();
    if takes_values {
        let gap = if text.is_empty() { "" } else { " " };
        text = format!("{text}{gap}{}", values.join(" "));
    }
    let possible = arg.get_possible_values();
    let possible: Vec<&str> = possible.iter().map(|value| value.get_name()).collect();
    if takes_values && !possible.is_empty() {
        text = format!("{text} values={}", possible.join("|"));
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if takes_values && !defaults.is_empty() {
        text = format!("{text} default={}", defaults.join(","));
    }
    let is_repeatable = matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
    let marks = [
        (arg.is_required_set(), "required"),
        (is_repeatable, "repeatable"),
        (arg.is_global_set(), "global"),
        (arg.is_hide_set(), "hidden"),
    ];
    let marks = marks.into_iter().filter(|(is_set, _)| *is_set);
    marks.fold(text, |text, (_, mark)| format!("{text} {mark}"))
}

#[test]
fn contract_of_exit_codes() {
    let codes = Exit::ALL.map(|exit| {
        let meaning = format!("{exit:?}").to_lowercase();
        format!("{} {meaning}", exit.code())
    });
    let commands = commands();
    let per_command = commands.iter().filter_map(|(path, command)| {
        let help = command.get_after_help()?.to_string();
        let (_, table) = help.split_once("Exit codes:\n")?;
        let numbers = table
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let numbers: Vec<&str> = numbers.filter(|word| word.parse::<u8>().is_ok()).collect();
        Some(format!("{path}: {}", numbers.join(" ")))
    });
    pin("exit_codes", codes.into_iter().chain(per_command));
}

#[test]
fn contract_of_config_keys() {
    let mut facts = Vec::new();
    keys("", ROOT, &mut facts);
    pin("config_keys", facts);
}

fn keys(prefix: &str, table: &[Key], facts: &mut Vec<String>) {
    for key in table {
        let name = format!("{prefix}{}", key.name);
        let kind = match key.kind {
            Kind::Text(None) => String::from("string"),
            Kind::Text(Some(default)) => format!("string default={default}"),
            Kind::Texts => String::from("list of strings"),
            Kind::Users => String::from("list of user names and ids"),
            Kind::TextTable => String::from("table of strings"),
            Kind::TextsTable => String::from("table of lists of strings"),
            Kind::Flag(default) => format!("boolean default={default}"),
            Kind::Count([least, most], default) => {
                format!("integer {least}..={most} default={default}")
            }
            Kind::Counts([least, most]) => format!("list of integers {least}..={most}"),
            Kind::Seconds([least, most], default) => {
                format!("seconds {least}..={most} default={default}")
            }
            Kind::Choice(of, default) => {
                format!("values={} default={default}", of.join("|"))
            }
            Kind::Choices(of) => format!("list of values={}", of.join("|")),
            Kind::Table(inner) => {
                keys(&format!("{name}."), inner, facts);
                String::from("table")
            }
            Kind::Commands(inner) | Kind::Named(inner) => {
                keys(&format!("{name}.NAME."), inner, facts);
                String::from("table of tables")
            }
        };
        facts.push(format!("{name}: {kind}"));
    }
}

#[test]
fn contract_of_reasons_and_other_stable_strings() {
    let gateway = stable_strings().into_iter();
    let gateway = gateway.flat_map(|(set, all)| {
        let lines = all.into_iter();
        lines.map(move |text| format!("{set}: {text}"))
    });
    let methods = MethodReason::ALL.iter().map(|it| it.as_str());
    let methods = methods.map(|text| format!("explain reason, methods: {text}"));
    let dropped = IgnoredReason::ALL.iter().map(|it| it.as_str());
    let dropped = dropped.map(|text| format!("explain reason, dropped: {text}"));
    let probe = [
        ("outcome", texts(ProbeOutcome::ALL, ProbeOutcome::as_str)),
        ("verdict", texts(RevisionState::ALL, RevisionState::as_str)),
        ("rule", texts(Rule::ALL, Rule::as_str)),
        ("failure", texts(FailureReason::ALL, FailureReason::as_str)),
    ];
    let probe = probe.into_iter().flat_map(|(set, all)| {
        let lines = all.into_iter();
        lines.map(move |text| format!("probe {set}: {text}"))
    });
    let checks = texts(Subject::ALL, Subject::as_str).into_iter();
    let checks = checks.map(|text| format!("doctor check: {text}"));
    let levels = texts(Level::ALL, Level::as_str).into_iter();
    let levels = levels.map(|text| format!("doctor level: {text}"));
    let probe = probe.chain(checks).chain(levels);
    pin(
        "strings",
        gateway.chain(methods).chain(dropped).chain(probe),
    );
}

fn texts<T: Copy>(all: &[T], as_str: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|one| as_str(*one)).collect()
}
