//! Figures as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::{Display, Write};

use super::meter::Spread;

/// What the text is, for whoever reads it.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What every name begins with.
const PREFIX: &str = "mcpact_";

/// A text that grows family by family.
#[derive(Debug, Default)]
pub(crate) struct Exposition(String);

/// One name, and the rows under it.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// Something that only grows.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// Something that goes up and down.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// How often something took how long.
    pub(crate) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let out = &mut self.0;
        let _ = writeln!(out, "# HELP {PREFIX}{name} {help}");
        let _ = writeln!(out, "# TYPE {PREFIX}{name} {kind}");
        Family { out, name }
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// One value.
    pub(crate) fn row(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, None, &value);
    }

    /// All values of a histogram.
    pub(super) fn spread(&mut self, labels: &[(&str, &str)], spread: &Spread) {
        for (bound, count) in &spread.buckets {
            self.write("_bucket", labels, Some(&bound.to_string()), count);
        }
        self.write("_bucket", labels, Some("+Inf"), &spread.count);
        self.write("_sum", labels, None, &spread.seconds);
        self.write("_count", labels, None, &spread.count);
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
