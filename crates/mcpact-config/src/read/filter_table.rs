//! `[filters.NAME]`.

use super::server_table::{ReadContext, command};
use crate::fields::Fields;
use crate::filter::{FilterConfig, Stage};
use crate::keys;
use crate::name::ServerName;
use crate::problem::Findings;
use crate::source::Span;
use crate::tree::Table;

pub(super) fn read(
    name: &ServerName,
    span: Span,
    table: &Table,
    context: &ReadContext<'_>,
    findings: &mut Findings,
) -> Option<FilterConfig> {
    let what = format!("filter `{name}`");
    let mut fields = Fields::new(table, keys::FILTER, &what, findings);
    if fields.member("command").is_none() {
        let problem = fields
            .findings
            .error(span, format!("{what} has no `command`"));
        problem.remedy("set the program to start, such as `command = \"audit\"`");
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
        timeout: fields.seconds("seconds"),
        command: command(context, &mut fields)?,
    })
}
