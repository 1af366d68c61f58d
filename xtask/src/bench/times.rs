//! The clock: criterion's benchmark and the files that it leaves.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::rows::Row;
use super::{Options, json, missing};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{cargo, run as run_program};

/// Enough for the fastest sample, which decides.
const FULL: [&str; 4] = ["--warm-up-time", "0.5", "--measurement-time", "2"];

const QUICK: [&str; 6] = [
    "--warm-up-time",
    "0.2",
    "--measurement-time",
    "0.5",
    "--sample-size",
    "20",
];

fn home(target: &Path) -> PathBuf {
    target.join("criterion")
}

pub(super) fn measure(
    checkout: &Checkout,
    target: &Path,
    options: &Options,
) -> Result<(), Failure> {
    let mut command = cargo(checkout);
    command.env("CRITERION_HOME", home(target));
    command.args([
        "bench",
        "--package",
        "mcpact-bench",
        "--bench",
        "time",
        "--",
    ]);
    command.args(["--noplot", "--quiet"]);
    match options.quick {
        true => command.args(QUICK),
        false => command.args(FULL),
    };
    run_program(&mut command)
}

/// The median of a row, in nanoseconds.
pub(super) fn median(target: &Path, row: &Row) -> Result<f64, Failure> {
    let path = home(target).join(row.time).join("new/estimates.json");
    json(&path)?
        .pointer("/median/point_estimate")
        .and_then(Value::as_f64)
        .ok_or_else(|| missing(&path, "median.point_estimate"))
}

/// The fastest sample of a row, in nanoseconds.
pub(super) fn fastest(target: &Path, row: &Row) -> Result<f64, Failure> {
    let path = home(target).join(row.time).join("new/sample.json");
    fastest_of(&json(&path)?).ok_or_else(|| missing(&path, "iters"))
}

/// Each sample is a time and how often the operation ran in it.
fn fastest_of(samples: &Value) -> Option<f64> {
    let numbers = |key: &str| {
        Some(
            samples
                .get(key)?
                .as_array()?
                .iter()
                .filter_map(Value::as_f64),
        )
    };
    let each = numbers("times")?.zip(numbers("iters")?);
    each.map(|(time, count)| time / count).reduce(f64::min)
}

/// Bytes that the row reads per iteration, if it declares them.
pub(super) fn bytes(target: &Path, row: &Row) -> Result<Option<f64>, Failure> {
    let path = home(target).join(row.time).join("new/benchmark.json");
    let file = json(&path)?;
    Ok(file.pointer("/throughput/Bytes").and_then(Value::as_f64))
}

#[cfg(test)]
mod tests {
    use super::fastest_of;

    #[test]
    fn fastest_sample_is_per_operation() {
        let samples = serde_json::json!({"iters": [1, 2, 3], "times": [9, 8, 15]});
        assert_eq!(fastest_of(&samples), Some(4.0));
        assert_eq!(fastest_of(&serde_json::json!({"iters": []})), None);
    }
}
