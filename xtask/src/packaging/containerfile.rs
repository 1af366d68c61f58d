//! The container file: rules that need no container engine. The image itself is not built.

use std::path::Path;

use super::Outcome;
use crate::checkout::Checkout;
use crate::failure::Failure;

const FILE: &str = "packaging/Containerfile";

pub(super) fn check(checkout: &Checkout, _: &Path) -> Result<Outcome, Failure> {
    let toolchain = checkout.read("rust-toolchain.toml")?;
    let channel = toolchain.split('"').nth(1).unwrap_or_default();
    let lines = problems(&checkout.read(FILE)?, channel);
    Failure::unless_clean("Containerfile", lines, "see packaging/Containerfile")?;
    Ok(Outcome::Passed("follows the rules; the image is not built"))
}

/// Instructions as pairs of name and arguments; comments are left out and continued lines joined.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let parts = joined
        .lines()
        .filter_map(|line| line.trim().split_once(' '));
    parts
        .map(|(name, rest)| (name.to_uppercase(), rest.trim().to_owned()))
        .collect()
}

fn problems(text: &str, rust: &str) -> Vec<String> {
    let all = instructions(text);
    let mut found = Vec::new();
    for (name, rest) in &all {
        let image = rest.split(' ').next().unwrap_or_default();
        match name.as_str() {
            "FROM" if !image.contains(':') || image.ends_with(":latest") => {
                found.push(format!("`{image}` has no fixed tag"));
            }
            "FROM" if image.starts_with("rust:") && !image.starts_with(&format!("rust:{rust}")) => {
                found.push(format!("`{image}` is not the pinned compiler {rust}"));
            }
            "ADD" => found.push("`ADD` instead of `COPY`".to_owned()),
            "RUN" if rest.contains("apt-get install") => {
                for needed in ["--no-install-recommends", "/var/lib/apt/lists"] {
                    if !rest.contains(needed) {
                        found.push(format!("`apt-get install` without `{needed}`"));
                    }
                }
            }
            "RUN" if rest.contains("curl ") || rest.contains("wget ") => {
                found.push("`RUN` downloads without a checksum".to_owned());
            }
            "CMD" | "ENTRYPOINT" if !rest.starts_with('[') => {
                found.push(format!("`{name}` runs in a shell, which gets the signals"));
            }
            _ => {}
        }
    }
    let last_stage = all.rsplit(|(name, _)| name == "FROM").next();
    let mut users = last_stage.unwrap_or_default().iter().rev();
    let user = users.find(|(name, _)| name == "USER");
    if user.is_none_or(|(_, user)| user.starts_with("root") || user.starts_with('0')) {
        found.push("the image runs as root".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# comment\nFROM rust:1.95.0-slim AS build\nRUN one \\\n    && two\nFROM debian:12\n\
                        USER 65532\nENTRYPOINT [\"/usr/bin/mcpact\"]\n";

    #[test]
    fn good_file_has_no_problems() {
        assert_eq!(problems(GOOD, "1.95.0"), Vec::<String>::new());
        assert_eq!(instructions(GOOD)[1].1, "one      && two");
    }

    #[test]
    fn each_broken_rule_is_named() {
        let cases = [
            ("debian:12", "debian", "no fixed tag"),
            ("debian:12", "debian:latest", "no fixed tag"),
            ("1.95.0", "1.80.0", "not the pinned compiler"),
            ("USER 65532", "USER root", "runs as root"),
            ("USER 65532", "ADD a b", "`ADD`"),
            (
                "RUN one",
                "RUN apt-get install a",
                "--no-install-recommends",
            ),
            ("RUN one", "RUN curl x | sh", "without a checksum"),
            ("[\"/usr/bin/mcpact\"]", "mcpact", "runs in a shell"),
        ];
        for (from, to, expected) in cases {
            let found = problems(&GOOD.replace(from, to), "1.95.0").join("\n");
            assert!(found.contains(expected), "{to}: {found}");
        }
    }
}
