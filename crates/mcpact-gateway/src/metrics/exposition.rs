//! Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Value of the `Content-Type` header.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Prefix of every metric name.
const PREFIX: &str = "mcpact_";

/// Builder of the text, one metric family after another.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
    /// Name of the current family, to which rows belong.
    family: &'static str,
}

impl Exposition {
    /// Begins a counter.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str) {
        self.begin(name, "counter", help);
    }

    /// Begins a gauge.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) {
        self.begin(name, "gauge", help);
    }

    /// Begins a histogram.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) {
        self.begin(name, "histogram", help);
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {PREFIX}{name} {help}");
        let _ = writeln!(self.text, "# TYPE {PREFIX}{name} {kind}");
        self.family = name;
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Writes one value.
    pub(crate) fn row(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, None, &value);
    }

    /// Writes a count unless it is zero.
    pub(super) fn row_above_zero(&mut self, labels: &[(&str, &str)], count: &AtomicU64) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            self.row(labels, count);
        }
    }

    /// Writes the cumulative count of a bucket of a histogram.
    pub(super) fn bucket(&mut self, labels: &[(&str, &str)], bound: f64, count: u64) {
        self.write("_bucket", labels, Some(&bound.to_string()), &count);
    }

    /// Writes the sum and the count of a histogram.
    pub(super) fn total(&mut self, labels: &[(&str, &str)], sum: f64, count: u64) {
        self.write("_bucket", labels, Some("+Inf"), &count);
        self.write("_sum", labels, None, &sum);
        self.write("_count", labels, None, &count);
    }

    fn write(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        bound: Option<&str>,
        value: &dyn Display,
    ) {
        let _ = write!(self.text, "{PREFIX}{}{suffix}", self.family);
        let bound = bound.map(|bound| ("le", bound));
        let mut before = '{';
        for (name, text) in labels.iter().copied().chain(bound) {
            let _ = write!(self.text, "{before}{name}=\"");
            escape(&mut self.text, text);
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
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
