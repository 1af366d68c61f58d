//! `[gateway.answers]` and `[servers.NAME.answers]`.

use mcpact_translate::input::{DefaultAnswers, Dismissal};

use crate::fields::Fields;
use crate::keys;
use crate::problem::Findings;
use crate::tree::Table;

pub(super) fn read(table: &Table, what: &str, findings: &mut Findings) -> DefaultAnswers {
    let mut fields = Fields::new(table, keys::ANSWERS, what, findings);
    DefaultAnswers {
        elicitation: match fields.choice("elicitation") {
            "decline" => Some(Dismissal::Decline),
            "cancel" => Some(Dismissal::Cancel),
            _ => None,
        },
        sampling: fields
            .text("sampling")
            .map(|text| text.filled.value().to_owned()),
        roots: roots(&mut fields),
    }
}

/// An empty list is a valid answer.
fn roots(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    fields.member("roots")?;
    let texts = fields.texts("roots");
    for text in &texts {
        if !text.filled.value().starts_with("file://") {
            let message = format!("`{}` is not a root URI", text.filled);
            let problem = fields.findings.error(text.span, message);
            problem.remedy("use a `file://` URI, such as `file:///home/ann/work`");
        }
    }
    let values = texts.iter().map(|text| text.filled.value().to_owned());
    Some(values.collect())
}
