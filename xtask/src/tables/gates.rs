//! Required capabilities of a method, as text.

use mcpact_spec::{Capability, Gate, Method, Revision, Role};

use super::markdown::code;
use crate::labels;

/// The gate of a method; where revisions differ, each gate with its revisions.
pub(super) fn needs(method: Method) -> String {
    let mut spans: Vec<(String, Revision, Revision)> = Vec::new();
    for revision in Revision::ALL {
        if method.role(revision) == Role::Absent {
            continue;
        }
        let words = gate_words(method.gate(revision));
        match spans.last_mut() {
            Some((before, _, last)) if *before == words => *last = revision,
            _ => spans.push((words, revision, revision)),
        }
    }
    match spans.as_slice() {
        [(words, _, _)] => words.clone(),
        spans => {
            let parts: Vec<String> = spans.iter().map(span_words).collect();
            parts.join("; ")
        }
    }
}

fn span_words((words, first, last): &(String, Revision, Revision)) -> String {
    if first == last {
        format!("{first}: {words}")
    } else {
        format!("{first} to {last}: {words}")
    }
}

fn gate_words(gate: Gate) -> String {
    match gate {
        Gate::Open => labels::NOTHING.to_owned(),
        Gate::Needs(capability) => owned(capability),
        Gate::NeedsAny(capabilities) => {
            let words: Vec<String> = capabilities.iter().map(|c| owned(*c)).collect();
            words.join(" or ")
        }
        Gate::OfReceiver { client, server } => of_party("receiver", client, server),
        Gate::OfSender { client, server } => of_party("sender", client, server),
        Gate::Shared(extension) => format!("extension {} on both sides", code(extension.id())),
        Gate::OfServer(extension, None) => format!("server extension {}", code(extension.id())),
        Gate::OfServer(extension, Some(setting)) => format!(
            "server extension {} with {}",
            code(extension.id()),
            code(setting)
        ),
    }
}

fn owned(capability: Capability) -> String {
    format!("{} {}", capability.owner(), code(capability.path()))
}

/// Both sides name it alike where either may send the message.
fn of_party(party: &str, client: Capability, server: Capability) -> String {
    if client.path() == server.path() {
        format!("{party} {}", code(client.path()))
    } else {
        format!("{party}: {} or {}", owned(client), owned(server))
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Method;

    use super::needs;

    #[test]
    fn gates_are_shown_once_or_by_revision() {
        assert_eq!(needs(Method::Ping), "–");
        assert_eq!(needs(Method::ToolsCall), "server `tools`");
        assert_eq!(
            needs(Method::CompletionComplete),
            "2024-11-05: server `prompts` or server `resources`; \
             2025-03-26 to 2026-07-28: server `completions`",
        );
    }
}
