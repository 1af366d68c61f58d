//! HTTP headers by revision.

use mcpact_spec::{Header, HeaderRule, Method};

use super::markdown::{code, section as markdown_section};
use super::{head, row};
use crate::labels;

/// The section on headers.
pub(super) fn section() -> String {
    let rows: Vec<_> = Header::ALL
        .iter()
        .map(|header| {
            row(code(header.name()), |revision| {
                rule(header.rule(revision)).to_owned()
            })
        })
        .collect();
    markdown_section("HTTP headers", &reading(), &head("Header"), &rows)
}

fn reading() -> String {
    let named = Method::ALL
        .iter()
        .filter_map(|method| Some((method, method.name_param()?)));
    let named: Vec<String> = named
        .map(|(method, param)| format!("{} (its {})", code(method), code(param)))
        .collect();
    format!(
        "On HTTP. *Named methods* are {}; *annotated parameters* are those that the schema of a tool \
         marks for a header.",
        named.join(", "),
    )
}

fn rule(rule: HeaderRule) -> &'static str {
    match rule {
        HeaderRule::Undefined => labels::NOTHING,
        HeaderRule::Optional => "optional",
        HeaderRule::Required => "required",
        HeaderRule::AfterInitialize => "after `initialize`",
        HeaderRule::WithSession => "within a session",
        HeaderRule::OnNamedMethods => "on named methods",
        HeaderRule::OnAnnotatedParams => "for annotated parameters",
        HeaderRule::Ignored => "ignored",
    }
}
