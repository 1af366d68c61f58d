//! Bar charts as SVG, legible on light and dark backgrounds.

use std::fmt::Write;

use super::Findings;
use super::outcome::Spread;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 300.0;
const BAR: f64 = 16.0;
const GAP: f64 = 12.0;
const TOP: f64 = 60.0;
/// Room for the number behind a bar.
const NUMBER: f64 = 70.0;

/// Colours of the bars, by the place of the subject in its group.
const COLOURS: [&str; 4] = ["#7d8590", "#2f81f7", "#a371f7", "#d29922"];

/// Bars of one contest.
struct Group {
    label: String,
    bars: Vec<Bar>,
}

struct Bar {
    label: String,
    value: Spread,
}

/// Scale of the bars.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    /// For ratios of several orders of magnitude.
    Logarithmic,
}

/// Figure of a chart.
#[derive(Clone, Copy)]
enum Figure {
    Rate,
    P50,
    Cpu,
}

/// One file below `docs/benchmarks/`.
struct Chart {
    name: &'static str,
    title: &'static str,
    scale: Scale,
    figure: Figure,
    /// Contests and numbers of open calls.
    contests: &'static [(&'static str, u32)],
    base: &'static str,
}

const CHARTS: &[Chart] = &[
    Chart {
        name: "throughput",
        title: "Responses per second with 32 open calls, as a share of the bare proxy (more is better)",
        scale: Scale::Linear,
        figure: Figure::Rate,
        contests: &[
            ("relay, HTTP to HTTP, legacy", 32),
            ("relay, HTTP to HTTP, modern", 32),
            ("relay, HTTP to stdio, legacy", 32),
            ("relay, HTTP to stdio, modern", 32),
        ],
        base: "floor",
    },
    Chart {
        name: "latency",
        title: "Median latency of a lone call, as a multiple of the bare proxy (less is better)",
        scale: Scale::Logarithmic,
        figure: Figure::P50,
        contests: &[
            ("relay, HTTP to HTTP, legacy", 1),
            ("relay, HTTP to HTTP, modern", 1),
            ("relay, HTTP to stdio, legacy", 1),
            ("relay, HTTP to stdio, modern", 1),
        ],
        base: "floor",
    },
    Chart {
        name: "payload",
        title: "Median latency by size of the text, as a multiple of the bare proxy (less is better)",
        scale: Scale::Linear,
        figure: Figure::P50,
        contests: &[
            ("relay, HTTP to HTTP, legacy", 1),
            ("large, HTTP to HTTP, legacy, 1 MiB echo", 1),
            ("large, HTTP to HTTP, legacy, 10 MiB echo", 1),
            ("large, HTTP to stdio, legacy, 1 MiB echo", 1),
            ("large, HTTP to stdio, legacy, 10 MiB echo", 1),
        ],
        base: "floor",
    },
    Chart {
        name: "sessions",
        title: "CPU per call through serve, as a multiple of that with one session (less is better)",
        scale: Scale::Linear,
        figure: Figure::Cpu,
        contests: &[
            ("gateway, call by number of idle sessions", 1),
            ("gateway, call by number of idle sessions", 32),
        ],
        base: "1 session",
    },
    Chart {
        name: "servers",
        title: "CPU per call through serve, as a multiple of that with one server (less is better)",
        scale: Scale::Linear,
        figure: Figure::Cpu,
        contests: &[
            ("gateway, call by number of servers", 1),
            ("gateway, call by number of servers", 32),
        ],
        base: "1 server",
    },
];

/// Names, titles and SVG texts of the charts with measured figures.
pub(super) fn charts(findings: &Findings) -> Vec<(&'static str, &'static str, String)> {
    let drawn = CHARTS.iter().filter_map(|chart| {
        let groups = chart.groups(findings);
        (!groups.is_empty()).then(|| (chart.name, chart.title, draw(chart, &groups)))
    });
    drawn.collect()
}

impl Chart {
    fn groups(&self, findings: &Findings) -> Vec<Group> {
        let each = self.contests.iter();
        each.filter_map(|(contest, open)| self.group(findings, contest, *open))
            .collect()
    }

    fn group(&self, findings: &Findings, contest: &str, open: u32) -> Option<Group> {
        let base = findings.find(contest, open, self.base)?;
        let rows = findings.rows.iter();
        let rows = rows.filter(|row| row.contest == contest && row.open == open);
        let bars = rows
            .filter(|row| row.subject != "direct")
            .filter_map(|row| {
                let value = row.ratio(base, |sample| match self.figure {
                    Figure::Rate => sample.rate,
                    Figure::P50 => sample.p50,
                    Figure::Cpu => sample.cpu,
                })?;
                let label = match row.subject.as_str() {
                    "floor" => "bare proxy",
                    name => name,
                };
                Some(Bar {
                    label: label.to_owned(),
                    value,
                })
            });
        Some(Group {
            label: format!("{contest}, {open} open"),
            bars: bars.collect(),
        })
    }
}

fn draw(chart: &Chart, groups: &[Group]) -> String {
    let bars = groups.iter().flat_map(|group| &group.bars);
    let most = bars.map(|bar| bar.value.high).fold(1.0, f64::max);
    let room = WIDTH - LABELS - NUMBER;
    let place = |value: f64| match chart.scale {
        Scale::Linear => value / most * room,
        // From a tenth of the base.
        Scale::Logarithmic => (value * 10.0).log10().max(0.0) / (most * 10.0).log10() * room,
    };
    let mut y = TOP;
    let mut body = String::new();
    for group in groups {
        text(&mut body, "g", 8.0, y, &group.label);
        y += BAR + 4.0;
        for (number, bar) in group.bars.iter().enumerate() {
            let colour = COLOURS.get(number.min(COLOURS.len() - 1)).unwrap_or(&"");
            text(&mut body, "l", LABELS - 8.0, y, &bar.label);
            let (width, top) = (place(bar.value.median), y - BAR + 4.0);
            let _ = writeln!(
                body,
                "<rect x=\"{LABELS}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>"
            );
            let (low, high) = (
                LABELS + place(bar.value.low),
                LABELS + place(bar.value.high),
            );
            let middle = top + BAR / 2.0;
            let _ = writeln!(
                body,
                "<path class=\"s\" d=\"M{low:.1} {middle:.1}H{high:.1}\"/>"
            );
            let number = format!("{:.2}x", bar.value.median);
            text(&mut body, "n", high.max(LABELS + width) + 6.0, y, &number);
            y += BAR + 4.0;
        }
        y += GAP;
    }
    let (base, bottom) = (LABELS + place(1.0), y - GAP);
    let note = match chart.scale {
        Scale::Linear => "",
        Scale::Logarithmic => "; logarithmic scale",
    };
    let mut head = String::new();
    text(&mut head, "t", 8.0, 20.0, chart.title);
    let legend = format!("bar: median of the rounds; line: lowest to highest round{note}");
    text(&mut head, "n", 8.0, 38.0, &legend);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y:.0}\" width=\"{WIDTH}\" height=\"{y:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>text{{fill:#1f2328}}.t{{font-size:14px;font-weight:bold}}.g{{font-weight:bold}}.l{{text-anchor:end}}\
         .s,.b{{stroke:#1f2328;fill:none}}.b{{stroke-dasharray:3 3}}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.s,.b{{stroke:#e6edf3}}}}</style>\n\
         <title>{}</title>\n{head}{body}\
         <path class=\"b\" d=\"M{base:.1} {:.1}V{bottom:.1}\"/>\n</svg>\n",
        escaped(chart.title),
        TOP - 12.0,
    )
}

fn text(out: &mut String, class: &str, x: f64, y: f64, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    );
}

fn escaped(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::{Row, Sample};
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let row = |subject: &str, rate| Row {
            contest: String::from("relay, HTTP to HTTP, legacy"),
            open: 32,
            subject: subject.to_owned(),
            rounds: vec![Sample {
                rate,
                p50: 1.0,
                p99: 1.0,
                cpu: 1.0,
                generator: 0.1,
            }],
            resident: None,
        };
        let findings = Findings {
            rows: vec![row("floor", 100.0), row("a<b", 50.0)],
            weights: Vec::new(),
            failures: Vec::new(),
        };
        let drawn = charts(&findings);
        let [(name, _, svg)] = &drawn[..] else {
            unreachable!("{}", drawn.len());
        };
        assert_eq!(*name, "throughput");
        assert!(svg.contains("width=\"390.0\"") && svg.contains("width=\"195.0\""));
        assert!(svg.contains("a&lt;b") && svg.contains("0.50x"), "{svg}");
    }
}
