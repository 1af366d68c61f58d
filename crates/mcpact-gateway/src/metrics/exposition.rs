//! Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write};

use super::calls::HistogramSnapshot;

/// Value of the `Content-Type` header.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Prefix of every metric name.
const PREFIX: &str = "mcpact_";

/// Builder of the text, one metric family after another.
#[derive(Debug, Default)]
pub(crate) struct Exposition(String);

/// Metric family: a name and its rows.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// Begins a counter.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// Begins a gauge.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Begins a histogram.
    pub(crate) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let out = &mut self.0;
        let _ = writeln!(out, "# HELP {PREFIX}{name} {help}");
        let _ = writeln!(out, "# TYPE {PREFIX}{name} {kind}");
        Family { out, name }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Writes one value.
    pub(crate) fn row(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, None, &value);
    }

    /// Writes the values of a histogram.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], values: &HistogramSnapshot) {
        for (bound, count) in &values.buckets {
            self.write("_bucket", labels, Some(&bound.to_string()), count);
        }
        self.write("_bucket", labels, Some("+Inf"), &values.count);
        self.write("_sum", labels, None, &values.seconds);
        self.write("_count", labels, None, &values.count);
    }

    fn write(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        bound: Option<&str>,
        value: &dyn Display,
    ) {
        let _ = write!(self.out, "{PREFIX}{}{suffix}", self.name);
        let bound = bound.map(|bound| ("le", bound));
        let mut before = '{';
        for (name, text) in labels.iter().copied().chain(bound) {
            let _ = write!(self.out, "{before}{name}=\"");
            escape(self.out, text);
            self.out.push('"');
            before = ',';
        }
        if before == ',' {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }
}

fn escape(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
}
