//! TOML parser.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::broken;
use crate::problem::Problem;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// Parses a TOML document.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    match DeTable::parse(text) {
        Ok(table) => {
            let span = table.span().into();
            Ok(Node::new(span, Value::Table(members(table.get_ref()))))
        }
        Err(error) => {
            let span = error.span().map_or_else(Span::default, Span::from);
            Err(broken(span, format!("invalid TOML: {}", error.message())))
        }
    }
}

fn members(table: &DeTable<'_>) -> Table {
    let mut members: Vec<Member> = table
        .iter()
        .map(|(key, value)| {
            let name = key.get_ref().to_string();
            Member::new(name, key.span().into(), node(value))
        })
        .collect();
    members.sort_by_key(|member| member.key_span.start);
    Table(members)
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let span = value.span().into();
    let value = match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Fraction(f64::INFINITY), Value::Whole),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Fraction(f64::NAN), Value::Fraction),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string().as_str()),
        DeValue::Array(items) => Value::List(items.iter().map(node).collect()),
        DeValue::Table(table) => Value::Table(members(table)),
    };
    Node::new(span, value)
}
