//! Shells, and what their scripts do.

use super::super::config::ShellRule;
use super::super::problem::Findings;
use super::words::{self, Sort, is_force, sort};
use super::{Judge, Word};

impl Judge<'_> {
    /// A shell, and what it runs as far as that is seen.
    pub(super) fn shell(self, program: &Word<'_>, args: &[Word<'_>], findings: &mut Findings) {
        let script = args.iter().position(|word| words::takes_script(word.value));
        let Some(at) = script else {
            if self.scripts > 0 {
                return;
            }
            let message = format!(
                "`{}` is a shell: what it runs is not seen here",
                program.written
            );
            findings
                .warning(program.span, message)
                .remedy("start the server itself");
            return;
        };
        let rest = &args[at + 1..];
        let text: Vec<&str> = rest.iter().map(|word| word.value).collect();
        let text = text.join(" ");
        let span = rest.first().map_or(program.span, |word| word.span);
        let danger = danger_in(&text);
        if let Some(danger) = danger {
            let problem = findings.error(span, format!("this script {danger}"));
            problem.remedy("start the server itself");
            return;
        }
        let message = format!("`{}` is a shell and runs a script", program.written);
        let remedy =
            "start the server itself: put the program into `command` and its arguments into `args`";
        match self.rules.shells {
            ShellRule::Refuse => findings.error(program.span, message).remedy(format!(
                "{remedy}; or say `shells = \"warn\"` in `[gateway.commands]`"
            )),
            ShellRule::Warn => findings.warning(program.span, message).remedy(remedy),
        }
    }
}

/// What a script does that no server does.
fn danger_in(script: &str) -> Option<&'static str> {
    let spaced = script.replace(['|', ';', '&', '(', ')', '{', '}', '`', '\n'], " \u{1} ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let starts =
        |at: usize| at == 0 || words[at - 1] == "\u{1}" || sort(words[at - 1]) == Sort::Wrapper;
    let has = |wanted: Sort| {
        words
            .iter()
            .enumerate()
            .any(|(at, word)| starts(at) && sort(word) == wanted)
    };
    let forces = words
        .windows(2)
        .any(|pair| sort(pair[0]) == Sort::Destroyer && is_force(pair[1]));
    if has(Sort::Raiser) {
        Some("takes the rights of another user")
    } else if forces {
        Some("destroys what is there")
    } else if has(Sort::Fetcher) && has(Sort::Shell) {
        Some("runs what it fetches from the network")
    } else if has(Sort::Fetcher) {
        Some("moves files over the network")
    } else {
        None
    }
}
