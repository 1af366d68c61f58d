//! One server of another client.

use mcpact_transport::http::client::is_reserved;

use super::meanings::{Carrier, Meaning, carrier, is_used, meaning, renamed, table};
use crate::fields::nothings;
use crate::keys::{self, Kind};
use crate::nearest::nearest;
use crate::problem::{Findings, Problem};
use crate::secret::Filled;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

const AUTHORIZATION: &str = "Authorization";

/// A server on its way into the native shape.
struct Draft<'t> {
    /// The whole config as it is written.
    text: &'t str,
    members: Vec<Member>,
    headers: Vec<Member>,
    /// The header with the token that stands above all headers.
    bearer: Option<Member>,
    carrier: Option<Carrier>,
    /// Keys that are not used.
    unused: Vec<String>,
    first_unused: Option<Span>,
}

/// Why a server is left out.
pub(super) enum LeftOut {
    /// It is switched off, or of a kind that its client alone has.
    Unwanted,
    /// It cannot be what was meant.
    Wrong(Problem),
}

/// Brings a server into the native shape, if it is one that mcpact could run.
pub(super) fn adopt(
    name: &str,
    span: Span,
    theirs: &Table,
    text: &str,
    findings: &mut Findings,
) -> Result<Table, LeftOut> {
    let mut draft = Draft {
        text,
        members: Vec::new(),
        headers: Vec::new(),
        bearer: None,
        carrier: None,
        unused: Vec::new(),
        first_unused: None,
    };
    draft.take_all(theirs);
    draft.show_bearer();
    let before = findings.count();
    let is_off = draft.is_off();
    let what = format!("server `{name}`");
    nothings(theirs, is_used, &what, findings);
    if let Some(first) = draft.first_unused {
        let keys: Vec<String> = draft.unused.iter().map(|key| format!("`{key}`")).collect();
        let message = format!("not used for server `{name}`: {}", keys.join(", "));
        findings.note(first, message);
    }
    let is_foreign = draft.carrier == Some(Carrier::Foreign);
    let meant = draft.unused.iter().find_map(|key| {
        let near = nearest(key, &["command", "url"])?;
        Some(format!("did you mean `{near}` by `{key}`?"))
    });
    let table = draft.finish();
    let has_launch = ["command", "url", "builtin"]
        .iter()
        .any(|key| table.member(key).is_some());
    if !has_launch {
        let message = format!(
            "server `{name}` has no program and no address that mcpact could use, and is left out"
        );
        let problem = findings.warning(span, message);
        problem.remedy = meant;
        let left_out = match is_foreign || is_off {
            true => LeftOut::Unwanted,
            false => LeftOut::Wrong(problem.clone()),
        };
        if is_off {
            findings.soften(before);
        }
        return Err(left_out);
    }
    if is_off {
        findings.soften(before);
    }
    Ok(table)
}

impl Draft<'_> {
    /// Whether it is switched off, so that nobody waits for it.
    fn is_off(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.key == "enabled" && member.node.value == Value::Flag(false))
    }

    fn take_all(&mut self, theirs: &Table) {
        for member in &theirs.0 {
            if member.node.value != Value::Null {
                self.take(member);
            }
        }
    }

    fn take(&mut self, member: &Member) {
        match meaning(&member.key) {
            Some(Meaning::As(key)) => self.put(renamed(member, key)),
            Some(Meaning::Not(key)) => self.put(negated(member, key)),
            Some(Meaning::Headers | Meaning::HeadersFromVariables | Meaning::Inner)
                if member.node.table().is_none() =>
            {
                self.unused(member);
            }
            Some(Meaning::Headers) => self.headers.extend(inner(member)),
            Some(Meaning::HeadersFromVariables) => {
                self.headers
                    .extend(inner(member).iter().map(|m| from_variable(m, "")));
            }
            Some(Meaning::BearerFromVariable) => {
                let header = renamed(member, AUTHORIZATION);
                self.headers.push(from_variable(&header, "Bearer "));
            }
            Some(Meaning::Bearer) => self.bearer = Some(member.clone()),
            Some(Meaning::Inner) => self.take_all(&Table(inner(member))),
            Some(Meaning::Transport) => self.transport(member),
            Some(Meaning::Strategy(word)) => {
                if member.node.value == Value::Flag(true) {
                    self.put(with_text(&renamed(member, "strategy"), word));
                }
            }
            Some(Meaning::Activation) => {
                if member
                    .node
                    .text()
                    .is_some_and(|word| word.value() == "always-on")
                {
                    let mut kept = renamed(member, "min_ready");
                    kept.node.value = Value::Whole(1);
                    self.put(kept);
                }
            }
            Some(Meaning::Silent) => {}
            Some(Meaning::Unused) => self.unused(member),
            None if keys::find(keys::SERVER, &member.key).is_some() => self.put(member.clone()),
            None => self.unused(member),
        }
    }

    /// A token is for an address, and wins over what the headers say.
    fn show_bearer(&mut self) {
        let Some(mut token) = self.bearer.take() else {
            return;
        };
        if !self.members.iter().any(|member| member.key == "url") {
            self.unused(&token);
            return;
        }
        self.as_text(&mut token.node);
        if let Some(text) = token.node.text().filter(|text| !text.value().is_empty()) {
            let bearer = format!("Bearer {}", text.value());
            let is_other = |header: &Member| !header.key.eq_ignore_ascii_case(AUTHORIZATION);
            self.headers.retain(is_other);
            let header = with_text(&renamed(&token, AUTHORIZATION), &bearer);
            self.headers.push(header);
        }
    }

    fn unused(&mut self, member: &Member) {
        self.unused.push(member.key.clone());
        self.first_unused.get_or_insert(member.key_span);
    }

    fn transport(&mut self, member: &Member) {
        match member.node.text().map(|word| carrier(word.value())) {
            Some(Some(carrier)) => self.carrier = Some(carrier),
            // Whatever it is, the other keys say whether there is a program or an address.
            Some(None) | None => self.unused(member),
        }
    }

    fn put(&mut self, member: Member) {
        match (member.key.as_str(), &member.node.value) {
            ("command", Value::List(words)) => self.words(&member, words),
            ("args", Value::List(args)) => self.args(&member, args),
            ("command", Value::Table(inner)) => self.take_all(inner),
            _ => self.keep(self.fitting(member)),
        }
    }

    /// A program with its arguments in one list.
    fn words(&mut self, member: &Member, words: &[Node]) {
        if let Some((program, args)) = words.split_first() {
            let mut command = member.clone();
            command.node = program.clone();
            self.keep(self.fitting(command));
            let mut rest = renamed(member, "args");
            rest.node.value = Value::List(args.to_vec());
            self.keep(self.fitting(rest));
        }
    }

    /// Arguments; `cmd /c` before them is a custom of Windows that starts the same program.
    fn args(&mut self, member: &Member, args: &[Node]) {
        let command = self.members.iter_mut().find(|known| known.key == "command");
        let is_cmd = |node: &Node| node.text().is_some_and(|text| text.value() == "cmd");
        let is_slash_c = |node: &Node| {
            node.text()
                .is_some_and(|text| text.value().eq_ignore_ascii_case("/c"))
        };
        let mut member = member.clone();
        if let Some(command) = command.filter(|command| is_cmd(&command.node))
            && let [first, program, rest @ ..] = args
            && is_slash_c(first)
        {
            command.node = program.clone();
            member.node.value = Value::List(rest.to_vec());
        }
        self.keep(self.fitting(member));
    }

    /// The first of several spellings holds; arguments come together.
    fn keep(&mut self, member: Member) {
        let same = self
            .members
            .iter_mut()
            .find(|known| known.key == member.key);
        match same.map(|known| &mut known.node.value) {
            None => self.members.push(member),
            Some(Value::List(items)) if member.key == "args" => {
                if let Value::List(more) = member.node.value {
                    items.extend(more);
                }
            }
            // Always-on asks for one, a number for that many.
            Some(Value::Whole(known)) if member.key == "min_ready" => {
                if let Value::Whole(given) = member.node.value {
                    *known = given.max(*known);
                }
            }
            Some(_) => {}
        }
    }

    fn finish(mut self) -> Table {
        let other = match self.carrier {
            Some(Carrier::Program) => &["url", "headers"][..],
            Some(Carrier::Address) => &["command", "args", "env", "env_file", "inherit", "cwd"][..],
            Some(Carrier::Foreign) => &["command", "url", "builtin"][..],
            None => &[][..],
        };
        let has = |members: &[Member], key: &str| members.iter().any(|member| member.key == key);
        let is_both = has(&self.members, "command") && has(&self.members, "url");
        if is_both || self.carrier == Some(Carrier::Foreign) {
            self.members
                .retain(|member| !other.contains(&member.key.as_str()));
        }
        if let Some(first) = self.headers.first().map(|member| member.key_span)
            && has(&self.members, "url")
        {
            // Clients that set these by themselves are often told to all the same.
            self.headers.retain(|header| !is_reserved(&header.key));
            let headers = table("headers", first, std::mem::take(&mut self.headers));
            self.members.push(self.fitting(headers));
        }
        if has(&self.members, "url") {
            // Many clients write an empty `args` or `env` beside an address.
            let strange = ["args", "env", "env_file", "inherit", "cwd"];
            self.members
                .retain(|member| !strange.contains(&member.key.as_str()));
        }
        Table(self.members)
    }

    /// The member with values of the kind that its key wants, where there is no doubt.
    fn fitting(&self, mut member: Member) -> Member {
        let kind = keys::find(keys::SERVER, &member.key).map(|key| key.kind);
        match (kind, &mut member.node.value) {
            (Some(Kind::TextTable), Value::Table(table)) => {
                table.0.retain(|inner| inner.node.value != Value::Null);
                let members = table.0.iter_mut();
                members.for_each(|inner| self.as_text(&mut inner.node));
            }
            (Some(Kind::Texts), Value::List(items)) => {
                items.retain(|item| item.value != Value::Null);
                items.iter_mut().for_each(|item| self.as_text(item));
                if member.key == "inherit" {
                    items.iter_mut().for_each(by_name);
                }
            }
            _ => {}
        }
        member
    }

    /// A value as it is written: `1.10` is not `1.1` for whoever wants a text.
    fn as_text(&self, node: &mut Node) {
        match &node.value {
            Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) => {
                let written = self.text.get(node.span.start..node.span.end);
                node.value = Value::Text(Filled::from(written.unwrap_or_default()));
            }
            Value::Null | Value::Text(_) | Value::List(_) | Value::Table(_) => {}
        }
    }
}

/// A variable that is described by a table, as Codex can, is its name.
fn by_name(item: &mut Node) {
    let name = item.table().and_then(|table| table.member("name"));
    if let Some(name) = name.filter(|name| name.node.text().is_some()) {
        *item = name.node.clone();
    }
}

fn inner(member: &Member) -> Vec<Member> {
    match &member.node.value {
        Value::Table(table) => table.0.clone(),
        Value::Null
        | Value::Flag(_)
        | Value::Whole(_)
        | Value::Fraction(_)
        | Value::Text(_)
        | Value::List(_) => Vec::new(),
    }
}

fn negated(member: &Member, key: &str) -> Member {
    let mut member = renamed(member, key);
    if let Value::Flag(flag) = member.node.value {
        member.node.value = Value::Flag(!flag);
    }
    member
}

fn with_text(member: &Member, text: &str) -> Member {
    let mut member = member.clone();
    member.node.value = Value::Text(Filled::from(text));
    member
}

/// A text that takes its value from the variable that the member names.
fn from_variable(member: &Member, before: &str) -> Member {
    match member.node.text() {
        Some(name) => with_text(member, &format!("{before}${{{}}}", name.value())),
        None => member.clone(),
    }
}
