//! What is said about the words of a command that are no programs.

use super::super::fields::Text;
use super::super::problem::Findings;
use super::Word;
use super::words::{self, Sort, sort};

/// One argument, which reaches the program as it is.
pub(super) fn argument(arg: &Text<'_>, findings: &mut Findings) {
    let value = arg.filled.value();
    if words::OPERATORS.contains(&value) {
        let message = format!(
            "`{}` means something to a shell, and there is none",
            arg.filled
        );
        let problem = findings.error(arg.span, message);
        problem.remedy("leave it out, with what follows it");
    } else if words::SUBSTITUTIONS.iter().any(|mark| value.contains(mark)) {
        let message = format!(
            "nothing is put in the place of what `{}` would mean to a shell",
            arg.filled
        );
        findings
            .warning(arg.span, message)
            .remedy("write what is meant, or a `${VARIABLE}`");
    } else if value.starts_with("~/") {
        let message = format!(
            "`{}` stays as it is: only a shell knows that `~` is your home",
            arg.filled
        );
        findings
            .warning(arg.span, message)
            .remedy("write `${userHome}/…`");
    } else if let Some(place) = words::SECRET_PLACES
        .iter()
        .find(|place| value.contains(*place))
    {
        let message = format!("the server is led to `{place}`, where secrets are kept");
        findings.warning(arg.span, message);
    }
}

/// Words that are harmless alone.
pub(super) fn pairs(words: &[Word<'_>], findings: &mut Findings) {
    for pair in words.windows(2) {
        if sort(pair[0].value) == Sort::Destroyer
            && words::is_force(pair[1].value)
            && pair[0].span != words[0].span
        {
            let message = format!(
                "`{} {}` destroys what is there",
                pair[0].written, pair[1].written
            );
            findings.error(pair[0].span, message).remedy("leave it out");
        }
    }
}
