//! Conversion of one server entry.

use mcpact_transport::http::client::is_reserved;

use super::ForeignKind;
use super::key_mapping::{
    KeyMapping, TransportKind, is_used, key_mapping, renamed, table, transport_kind, with_text,
};
use crate::fields::warn_of_nulls;
use crate::keys::{self, Kind};
use crate::nearest::nearest;
use crate::policy::has;
use crate::problem::{Findings, Problem};
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

const AUTHORIZATION: &str = "Authorization";

/// A server during conversion.
struct Draft<'t> {
    /// Text of the config.
    text: &'t str,
    kind: ForeignKind,
    members: Vec<Member>,
    headers: Vec<Member>,
    /// Token of `apiKey`, which replaces any `Authorization` header.
    bearer: Option<Member>,
    transport_kind: Option<TransportKind>,
    /// Unused keys.
    unused: Vec<String>,
    first_unused: Option<Span>,
    /// Keys of a catalog that its gateway does not know, or whose value it does not know.
    unknown: Vec<Member>,
}

/// Keys of a catalog for which `0` means the default.
const ZERO_IS_DEFAULT: &str = "maxConcurrent drainTimeoutSeconds";

/// Converts a server to the native format, if mcpact can run it. `text` is that of the config.
///
/// # Errors
/// The server is skipped, with its problem unless it is disabled or of a kind that only its client supports.
pub(super) fn convert(
    entry: &Member,
    kind: ForeignKind,
    text: &str,
    findings: &mut Findings,
) -> Result<Table, Option<Problem>> {
    let name = &entry.key;
    let Some(theirs) = entry.node.table() else {
        let message = format!("`{name}` is not a server and is ignored");
        return Err(Some(findings.warning(entry.key_span, message).clone()));
    };
    let mut draft = Draft {
        text,
        kind,
        members: Vec::new(),
        headers: Vec::new(),
        bearer: None,
        transport_kind: None,
        unused: Vec::new(),
        first_unused: None,
        unknown: Vec::new(),
    };
    draft.take_all(theirs);
    draft.add_bearer();
    for member in &draft.unknown {
        let own = entry.node.span;
        let place = match (own.start..own.end).contains(&member.key_span.start) {
            true => format!("in server `{name}`"),
            false => String::from("in the catalog"),
        };
        let message = format!("unknown key or value of `{}` {place}", member.written());
        let remedy = match &*member.key {
            "activationMode" => "use `on-demand` or `always-on`",
            "proxy.mode" => "use `inherit`, `disabled`, `system`, or `custom` with a `url`",
            "proxy.noProxy" => "write one string, with commas between the hosts",
            _ => "correct it or remove it",
        };
        findings.error_with(member.key_span, message, remedy);
    }
    let before = findings.count();
    let is_off = draft.is_off();
    let what = format!("server `{name}`");
    warn_of_nulls(theirs, is_used, &what, findings);
    if let Some(first) = draft.first_unused {
        let keys: Vec<String> = draft.unused.iter().map(|key| format!("`{key}`")).collect();
        let message = format!("unused keys of server `{name}`: {}", keys.join(", "));
        findings.note(first, message);
    }
    let transport_kind = draft.transport_kind;
    let is_foreign = transport_kind == Some(TransportKind::Foreign);
    let meant = draft.unused.iter().find_map(|key| {
        let near = nearest(key, &["command", "url"])?;
        Some(format!("did you mean `{near}` by `{key}`?"))
    });
    let table = draft.finish();
    let launches: &[&str] = match (kind, transport_kind) {
        (ForeignKind::Catalog, Some(TransportKind::Program)) => &["command"],
        (ForeignKind::Catalog, Some(TransportKind::Address)) => &["url"],
        _ => &["command", "url", "builtin"],
    };
    let has_launch = launches.iter().any(|key| table.member(key).is_some());
    let mut skipped = None;
    if !has_launch && kind == ForeignKind::Catalog && !is_off {
        let missing = match transport_kind {
            Some(TransportKind::Program) => "no `cmd`",
            Some(TransportKind::Address) => "no `http.endpoint`",
            Some(TransportKind::Foreign) | None => "neither `cmd` nor `http.endpoint`",
        };
        let message = format!("server `{name}` has {missing}");
        let remedy = "set the program in `cmd`, or the URL in `http.endpoint`";
        findings.error_with(entry.key_span, message, remedy);
        skipped = Some(None);
    } else if !has_launch {
        let message = format!(
            "server `{name}` has neither a command nor a URL that mcpact can use, and is ignored"
        );
        let problem = findings.warning(entry.key_span, message);
        problem.remedy = meant;
        skipped = Some((!is_foreign && !is_off).then(|| problem.clone()));
    }
    if is_off {
        findings.soften(before);
    }
    skipped.map_or(Ok(table), Err)
}

impl Draft<'_> {
    /// Returns whether the server is disabled.
    fn is_off(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.key == "enabled" && member.node.value == Value::Flag(false))
    }

    fn take_all(&mut self, theirs: &Table) {
        for member in &theirs.0 {
            if member.node.value != Value::Null && !self.is_default(member) {
                self.take(member);
            }
        }
    }

    /// Returns whether the value means the default in a catalog.
    fn is_default(&self, member: &Member) -> bool {
        self.kind == ForeignKind::Catalog
            && match &member.node.value {
                Value::Text(text) => text.value().is_empty() && member.key != "endpoint",
                Value::Whole(0) => has(ZERO_IS_DEFAULT, &member.key),
                _ => false,
            }
    }

    fn take(&mut self, member: &Member) {
        match key_mapping(&member.key) {
            Some(KeyMapping::As(key)) => self.put(renamed(member, key)),
            Some(KeyMapping::Not(key)) => self.put(negated(member, key)),
            Some(KeyMapping::Headers | KeyMapping::HeadersFromVariables | KeyMapping::Inner)
                if member.node.table().is_none() =>
            {
                self.unused(member);
            }
            Some(KeyMapping::Headers) => self.headers.extend(inner(member)),
            Some(KeyMapping::HeadersFromVariables) => {
                self.headers
                    .extend(inner(member).iter().map(|m| from_variable(m, "")));
            }
            Some(KeyMapping::BearerFromVariable) => {
                let header = renamed(member, AUTHORIZATION);
                self.headers.push(from_variable(&header, "Bearer "));
            }
            Some(KeyMapping::Bearer) => self.bearer = Some(member.clone()),
            Some(KeyMapping::Inner) => self.take_all(&Table(inner(member))),
            Some(KeyMapping::Transport) => self.transport(member),
            Some(KeyMapping::Strategy(word)) => {
                if member.node.value == Value::Flag(true) {
                    self.put(with_text(&renamed(member, "strategy"), word));
                }
            }
            Some(KeyMapping::Activation) => match member.node.text().map(|word| word.value()) {
                Some("always-on") => {
                    let mut kept = renamed(member, "min_ready");
                    kept.node.value = Value::Whole(1);
                    self.put(kept);
                }
                Some("on-demand") => {}
                Some(_) | None => self.unknown(member),
            },
            Some(KeyMapping::Proxy) => self.proxy(member),
            Some(KeyMapping::Silent) => {}
            Some(KeyMapping::Unused) => self.unused(member),
            None if keys::find(keys::SERVER, &member.key).is_some() => self.put(member.clone()),
            None => self.unknown(member),
        }
    }

    /// Takes a table with `mode`, `url` and `noProxy`. The URL of a proxy is also a mode in the native format.
    fn proxy(&mut self, member: &Member) {
        let Some(theirs) = member.node.table() else {
            return self.put(member.clone());
        };
        let mut given = [None; 3];
        for inner in &theirs.0 {
            let place = ["mode", "url", "noProxy"]
                .iter()
                .position(|key| *key == inner.key);
            match (place, inner.node.text()) {
                (Some(place), Some(text)) if !text.value().is_empty() => {
                    given[place] = Some((inner, text.value()));
                }
                (Some(_), Some(_)) => {}
                _ => self.unknown_proxy(inner),
            }
        }
        let [mode, url, exceptions] = given;
        let chosen = match (mode, url) {
            (Some((_, "inherit")), _) | (None, None) => None,
            (Some((_, "custom")) | None, Some(url)) => Some(url),
            (Some(mode), _) if has("system disabled", mode.1) || mode.1.contains('$') => Some(mode),
            (Some((mode, _)), _) => return self.unknown_proxy(mode),
        };
        if let Some((inner, text)) = chosen {
            self.members
                .retain(|known| !["proxy", "no_proxy"].contains(&&*known.key));
            self.members.push(with_text(&renamed(inner, "proxy"), text));
            if text == "disabled" {
                return;
            }
        }
        if let Some((inner, list)) = exceptions {
            self.members.retain(|known| known.key != "no_proxy");
            let mut all = renamed(inner, "no_proxy");
            let items = list
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            let items = items.map(|item| Node::new(inner.node.span, Value::from(item)));
            all.node.value = Value::List(items.collect());
            self.members.push(all);
        }
    }

    /// Adds the bearer token as a header, which wins over other headers.
    fn add_bearer(&mut self) {
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

    /// Notes an unknown key or value; in a catalog it is an error.
    fn unknown(&mut self, member: &Member) {
        match self.kind {
            ForeignKind::Catalog => self.unknown.push(member.clone()),
            ForeignKind::Client => self.unused(member),
        }
    }

    /// Notes an unknown key or value in the table of a proxy.
    fn unknown_proxy(&mut self, inner: &Member) {
        self.unknown(&Member {
            key: format!("proxy.{}", inner.key),
            ..inner.clone()
        });
    }

    fn transport(&mut self, member: &Member) {
        match member.node.text().map(|word| transport_kind(word.value())) {
            Some(Some(transport_kind)) => self.transport_kind = Some(transport_kind),
            // The other keys decide between program and URL.
            Some(None) | None => self.unknown(member),
        }
    }

    fn put(&mut self, member: Member) {
        match (member.key.as_str(), &member.node.value) {
            ("command", Value::List(words)) => self.words(&member, words),
            ("args", Value::List(args)) => self.args(&member, args),
            ("command", Value::Table(inner)) => self.take_all(inner),
            _ => self.keep(self.with_strings(member)),
        }
    }

    /// Command with arguments in one list.
    fn words(&mut self, member: &Member, words: &[Node]) {
        if let Some((program, args)) = words.split_first() {
            let mut command = member.clone();
            command.node = program.clone();
            self.keep(self.with_strings(command));
            let mut rest = renamed(member, "args");
            rest.node.value = Value::List(args.to_vec());
            self.keep(self.with_strings(rest));
        }
    }

    /// Arguments, without a leading `cmd /c`.
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
        self.keep(self.with_strings(member));
    }

    /// Adds a member. The first of several synonyms wins; arguments are joined.
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
            // `always-on` means 1; a number wins.
            Some(Value::Whole(known)) if member.key == "min_ready" => {
                if let Value::Whole(given) = member.node.value {
                    *known = given.max(*known);
                }
            }
            Some(_) => {}
        }
    }

    fn finish(mut self) -> Table {
        let other = match self.transport_kind {
            Some(TransportKind::Program) => &["url", "headers", "proxy", "no_proxy"][..],
            Some(TransportKind::Address) => {
                &["command", "args", "env", "env_file", "inherit", "cwd"][..]
            }
            Some(TransportKind::Foreign) => &["command", "url", "builtin"][..],
            None => &[][..],
        };
        let has = |members: &[Member], key: &str| members.iter().any(|member| member.key == key);
        let is_both = has(&self.members, "command") && has(&self.members, "url");
        if is_both || self.transport_kind == Some(TransportKind::Foreign) {
            self.members
                .retain(|member| !other.contains(&member.key.as_str()));
        }
        if let Some(first) = self.headers.first().map(|member| member.key_span)
            && has(&self.members, "url")
        {
            // Set by the HTTP client itself.
            self.headers.retain(|header| !is_reserved(&header.key));
            let headers = table("headers", first, std::mem::take(&mut self.headers));
            self.members.push(self.with_strings(headers));
        }
        if has(&self.members, "url") {
            // Many clients write an empty `args` or `env` beside a URL.
            let strange = ["args", "env", "env_file", "inherit", "cwd"];
            self.members
                .retain(|member| !strange.contains(&member.key.as_str()));
        } else {
            // The proxy of the whole catalog concerns URLs only.
            self.members
                .retain(|member| !["proxy", "no_proxy"].contains(&member.key.as_str()));
        }
        Table(self.members)
    }

    /// Converts scalar values to strings where the key wants strings.
    fn with_strings(&self, mut member: Member) -> Member {
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

    /// Converts a scalar to the string as written: `1.10` must not become `1.1`.
    fn as_text(&self, node: &mut Node) {
        match &node.value {
            Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) => {
                let written = self.text.get(node.span.start..node.span.end);
                node.value = Value::from(written.unwrap_or_default());
            }
            Value::Null | Value::Text(_) | Value::List(_) | Value::Table(_) => {}
        }
    }
}

/// Replaces a variable described by a table (Codex) by its name.
fn by_name(item: &mut Node) {
    let name = item.table().and_then(|table| table.member("name"));
    if let Some(name) = name.filter(|name| name.node.text().is_some()) {
        *item = name.node.clone();
    }
}

fn inner(member: &Member) -> Vec<Member> {
    let table = member.node.table();
    table.map_or_else(Vec::new, |table| table.0.clone())
}

fn negated(member: &Member, key: &str) -> Member {
    let mut member = renamed(member, key);
    if let Value::Flag(flag) = member.node.value {
        member.node.value = Value::Flag(!flag);
    }
    member
}

/// String that refers to the variable named by the member.
fn from_variable(member: &Member, before: &str) -> Member {
    match member.node.text() {
        Some(name) => with_text(member, &format!("{before}${{{}}}", name.value())),
        None => member.clone(),
    }
}
