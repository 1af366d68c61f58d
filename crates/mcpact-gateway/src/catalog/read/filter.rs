//! `[filters.NAME]`.

use super::server::{Ground, command};
use crate::catalog::fields::Fields;
use crate::catalog::filter::{FilterConfig, Stage};
use crate::catalog::keys;
use crate::catalog::name::ServerName;
use crate::catalog::problem::Findings;
use crate::catalog::source::Span;
use crate::catalog::tree::Table;

pub(super) fn read(
    name: &ServerName,
    span: Span,
    table: &Table,
    ground: &Ground<'_>,
    findings: &mut Findings,
) -> Option<FilterConfig> {
    let what = format!("filter `{name}`");
    let mut fields = Fields::new(table, keys::FILTER, &what, findings);
    if fields.member("command").is_none() {
        let problem = fields
            .findings
            .error(span, format!("{what} has no `command`"));
        problem.remedy("say which program to start, such as `command = \"audit\"`");
    }
    let stages = fields.choices("on").into_iter();
    let stages = stages.map(|word| match word {
        "response" => Stage::Response,
        _ => Stage::Request,
    });
    Some(FilterConfig {
        name: name.clone(),
        stages: stages.collect(),
        order: fields.count("order"),
        methods: fields.words("methods"),
        required: fields.flag("required"),
        patience: fields.seconds("seconds"),
        command: command(ground, &mut fields)?,
    })
}
