//! Questions of a server, asked on the terminal.

use inquire::validator::Validation;
use inquire::{Confirm, InquireError, MultiSelect, Select, Text};
use mcpact::model::{ElicitResult, FormRequest, UrlRequest, UrlWarning};
use serde_json::{Map, Value};

use super::eprint;
use super::layout::{in_one_line, printable, printable_lines};
use super::style::{Tone, for_stream};
use crate::client::form_fields::{Choice, Field, Input, fields};

/// Modes of the terminal before the first prompt. A prompt changes them while it waits for a key.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct TerminalModes(rustix::termios::Termios);

#[cfg(unix)]
impl TerminalModes {
    /// Reads the modes; none without a terminal.
    pub(crate) fn read() -> Option<Self> {
        rustix::termios::tcgetattr(std::io::stdin()).ok().map(Self)
    }

    /// Restores the modes.
    pub(crate) fn restore(&self) {
        let now = rustix::termios::OptionalActions::Now;
        // Without a terminal there is nothing to restore.
        let _ = rustix::termios::tcsetattr(std::io::stdin(), now, &self.0);
    }
}

/// Asks for the values of a form. Escape dismisses the question.
pub(crate) fn form(server: &str, form: &FormRequest) -> ElicitResult {
    introduce(server, &form.message);
    if form.check_secrets().is_err() {
        let warning =
            "warning: the form asks for a secret; servers must not ask for secrets this way\n";
        eprint(&for_stream(
            Tone::Bad.paint(warning.trim_end()) + "\n",
            &std::io::stderr(),
        ));
    }
    match Confirm::new("Answer?")
        .with_default(true)
        .with_help_message("n declines")
        .prompt()
    {
        Ok(true) => {}
        Ok(false) => return ElicitResult::decline(),
        Err(_) => return ElicitResult::cancel(),
    }
    let mut content = Map::new();
    for field in fields(form) {
        match ask(&field) {
            Ok(Some(value)) => drop(content.insert(field.name, value)),
            Ok(None) => {}
            Err(_) => return ElicitResult::cancel(),
        }
    }
    ElicitResult::accept(content)
}

/// Shows a URL and asks whether the user visits it. It is never opened here.
pub(crate) fn url(server: &str, request: &UrlRequest) -> ElicitResult {
    show_url(server, request);
    let question = "Open this URL in your browser and continue?";
    match Confirm::new(question).with_default(false).prompt() {
        Ok(true) => ElicitResult::consent(),
        Ok(false) => ElicitResult::decline(),
        Err(_) => ElicitResult::cancel(),
    }
}

/// Shows a URL with its host and warnings.
pub(crate) fn show_url(server: &str, request: &UrlRequest) {
    introduce(server, &request.message);
    let host = request.host().unwrap_or_else(|| String::from("none"));
    let mut text = format!(
        "  URL:  {}\n  host: {}\n",
        printable(&request.url),
        printable(&host)
    );
    for warning in request.warnings() {
        let warning = format!("  warning: {}", describe(warning));
        text.push_str(&Tone::Bad.paint(&warning));
        text.push('\n');
    }
    eprint(&for_stream(text, &std::io::stderr()));
}

const fn describe(warning: UrlWarning) -> &'static str {
    match warning {
        UrlWarning::Scheme => "not an http or https URL; do not open it",
        UrlWarning::NotEncrypted => "the connection is not encrypted",
        UrlWarning::Punycode => "the host name may imitate another one",
        UrlWarning::UserInfo => "the URL contains a user name, which may imitate a host name",
        UrlWarning::IpAddress => "the host is an IP address",
        _ => "the URL is unusual",
    }
}

fn introduce(server: &str, message: &str) {
    let title = Tone::Name.paint(&format!("`{}` asks:", in_one_line(server)));
    // Further lines are indented, so that they cannot pass for lines of this program.
    let message = printable_lines(message).replace('\n', "\n  ");
    eprint(&for_stream(
        format!("{title} {message}\n"),
        &std::io::stderr(),
    ));
}

/// Asks for one field. Escape leaves out an optional field.
fn ask(field: &Field) -> Result<Option<Value>, InquireError> {
    let label = match field.is_required {
        true => printable(&field.label),
        false => format!("{} (optional)", printable(&field.label)),
    };
    let help = in_one_line(&field.description);
    let help = Some(&*help).filter(|help| !help.is_empty());
    match &field.input {
        Input::Boolean => {
            let mut prompt = Confirm::new(&label);
            prompt.default = field.default.as_ref().and_then(Value::as_bool);
            prompt.help_message = help;
            let answer = match field.is_required {
                true => prompt.prompt().map(Some),
                false => prompt.prompt_skippable(),
            };
            Ok(answer?.map(Value::Bool))
        }
        Input::One(choices) => {
            let mut prompt = Select::new(&label, titles(choices));
            let is_default = |choice: &Choice| Some(&choice.value) == field.default.as_ref();
            prompt.starting_cursor = choices.iter().position(is_default).unwrap_or(0);
            prompt.help_message = help.or(prompt.help_message);
            let answer = match field.is_required {
                true => prompt.raw_prompt().map(Some),
                false => prompt.raw_prompt_skippable(),
            };
            Ok(answer?
                .and_then(|one| choices.get(one.index))
                .map(|one| one.value.clone()))
        }
        Input::Many(choices) => {
            let mut prompt = MultiSelect::new(&label, titles(choices));
            prompt.help_message = help.or(prompt.help_message);
            let answer = match field.is_required {
                true => prompt.raw_prompt().map(Some),
                false => prompt.raw_prompt_skippable(),
            };
            Ok(answer?.map(|all| {
                let chosen = all.iter().filter_map(|one| choices.get(one.index));
                chosen.map(|one| one.value.clone()).collect()
            }))
        }
        Input::Text | Input::Number => {
            let default = field.default.as_ref().map(|default| match default {
                Value::String(text) => printable(text),
                other => other.to_string(),
            });
            let mut prompt = Text::new(&label);
            prompt.default = default.as_deref();
            prompt.help_message = help;
            let checked = field.clone();
            let prompt = prompt.with_validator(move |text: &str| {
                Ok(match checked.read(text) {
                    Ok(_) => Validation::Valid,
                    Err(reason) => Validation::Invalid(printable(&reason).into()),
                })
            });
            let answer = match field.is_required {
                true => prompt.prompt().map(Some),
                false => prompt.prompt_skippable(),
            };
            Ok(answer?.and_then(|text| field.read(&text).ok().flatten()))
        }
    }
}

fn titles(choices: &[Choice]) -> Vec<String> {
    choices
        .iter()
        .map(|choice| printable(&choice.title))
        .collect()
}
