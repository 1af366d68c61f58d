//! Dependency rules between the modules of one crate.

use std::collections::BTreeSet;

use crate::checkout::SourceFile;
use crate::layers::{Exception, ModuleLayers};
use crate::source_text::{SourceText, is_word};

/// Use of a module by another one.
struct Use {
    module: String,
    uses: String,
    /// File and line.
    place: String,
}

impl ModuleLayers {
    /// Findings in the sources of the crate: uses of a higher layer, unlisted modules and stale entries.
    pub(crate) fn findings(&self, files: &[SourceFile]) -> Vec<String> {
        let sources: Vec<(String, &SourceFile)> = files
            .iter()
            .filter(|file| !file.is_test_module())
            .filter_map(|file| Some((self.module(file)?, file)))
            .collect();
        let modules: BTreeSet<&str> = sources.iter().map(|(name, _)| name.as_str()).collect();
        let unlisted = modules.iter().filter(|name| self.layer(name).is_none());
        let mut findings: Vec<String> = unlisted
            .map(|name| format!("module `{name}`: not listed in xtask/src/layers.rs"))
            .collect();
        let listed = self.layers.iter().copied().flatten();
        let missing = listed.filter(|name| !modules.contains(**name));
        findings.extend(missing.map(|name| format!("module `{name}`: listed, but does not exist")));
        let uses = sources.iter().flat_map(|(name, file)| uses(name, file));
        let upward: Vec<Use> = uses.filter(|found| self.is_upward(found)).collect();
        let forbidden = upward
            .iter()
            .filter(|found| !self.exceptions.iter().any(|one| one.permits(found)));
        findings.extend(forbidden.map(|found| {
            let Use { uses, place, .. } = found;
            format!("{place}: `{uses}` is in a higher layer than this module")
        }));
        let stale = self
            .exceptions
            .iter()
            .filter(|one| !upward.iter().any(|found| one.permits(found)));
        findings.extend(stale.map(|one| {
            let Exception { module, uses, why } = one;
            format!("exception `{module}` uses `{uses}` ({why}): no longer needed")
        }));
        findings
    }

    /// Module of a source file, such as `connection::slot`; none for the crate root.
    fn module(&self, file: &SourceFile) -> Option<String> {
        let path = file.path.strip_prefix(self.folder)?.strip_prefix('/')?;
        let path = path.strip_suffix(".rs").filter(|path| *path != "lib")?;
        Some(path.replace('/', "::"))
    }

    /// Layer of a module or item; none if neither it nor a module around it is listed.
    fn layer(&self, path: &str) -> Option<usize> {
        let own = self.layers.iter().position(|layer| layer.contains(&path));
        own.or_else(|| self.layer(path.rsplit_once("::")?.0))
    }

    fn is_upward(&self, found: &Use) -> bool {
        let own = self.layer(&found.module);
        // Names of the crate root are in no layer: they are for other crates.
        own.is_some_and(|own| self.layer(&found.uses).is_none_or(|other| other > own))
    }
}

impl Exception {
    fn permits(&self, found: &Use) -> bool {
        is_inside(&found.module, self.module) && is_inside(&found.uses, self.uses)
    }
}

/// Returns `true` if a path is this module or below it.
fn is_inside(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Paths in the code of a module, without its tests, that start with `crate`, `self` or `super`.
fn uses(module: &str, file: &SourceFile) -> Vec<Use> {
    let code = SourceText::split(&file.text).code_without_tests();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let (before, after) = code.split_at(at);
        let start = before.trim_end_matches(is_word).len();
        let is_first = !before[..start].ends_with("::");
        let is_visibility = before[..start].ends_with("(in ");
        let Some(prefix) =
            ancestor(module, &before[start..]).filter(|_| is_first && !is_visibility)
        else {
            continue;
        };
        let mut paths = Vec::new();
        paths_below(prefix, &after[2..], &mut paths);
        let line = before.matches('\n').count() + 1;
        found.extend(paths.into_iter().map(|uses| Use {
            module: module.to_owned(),
            uses,
            place: format!("{}:{line}", file.path),
        }));
    }
    found
}

/// Module that a first path segment stands for, as its segments.
fn ancestor<'a>(module: &'a str, segment: &str) -> Option<Vec<&'a str>> {
    let mut segments: Vec<&str> = module.split("::").collect();
    match segment {
        "crate" => segments.clear(),
        "self" => {}
        "super" => {
            segments.pop();
        }
        _ => return None,
    }
    Some(segments)
}

/// Adds the paths of a use tree, or of a path in an expression, and returns the text after it.
fn paths_below<'a>(mut prefix: Vec<&'a str>, tree: &'a str, found: &mut Vec<String>) -> &'a str {
    let tree = tree.trim_start();
    if let Some(group) = tree.strip_prefix('{') {
        let mut rest = group.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            rest = paths_below(prefix.clone(), rest, found);
            // Skips `as name` and the comma.
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            rest = rest[end..].trim_start_matches(',').trim_start();
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    let (segment, rest) = tree.split_at(tree.find(|c| !is_word(c)).unwrap_or(tree.len()));
    match segment {
        // `self` is the module itself; a glob or generic arguments end the path.
        "self" | "" => {}
        "super" => {
            prefix.pop();
        }
        _ => prefix.push(segment),
    }
    match rest.strip_prefix("::") {
        Some(below) => paths_below(prefix, below, found),
        None => {
            found.push(prefix.join("::"));
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checkout::SourceFile;
    use crate::layers::{Exception, ModuleLayers};

    const LAYERS: ModuleLayers = ModuleLayers {
        folder: "a/src",
        layers: &[&["low", "high::pure"], &["middle"], &["high"]],
        exceptions: &[],
    };

    /// Findings in a crate whose modules are empty, except one.
    fn found(layers: &ModuleLayers, path: &str, text: &str) -> Vec<String> {
        let paths =
            ["lib", "low", "middle", "high", "high/pure"].map(|name| format!("a/src/{name}.rs"));
        let file = |path: String, text: &str| SourceFile {
            path,
            text: text.to_owned(),
        };
        let others = paths.into_iter().filter(|other| other != path);
        let mut files: Vec<SourceFile> = others.map(|path| file(path, "")).collect();
        files.push(file(path.to_owned(), text));
        layers.findings(&files)
    }

    #[test]
    fn a_module_may_use_lower_layers_and_its_own() {
        let lower = "use crate::low::{self, A};\nuse crate::high::pure;\nuse crate::middle::B;";
        assert!(found(&LAYERS, "a/src/middle.rs", lower).is_empty());
        assert_eq!(
            found(&LAYERS, "a/src/middle.rs", "\nuse crate::high::{A, pure};"),
            ["a/src/middle.rs:2: `high::A` is in a higher layer than this module"]
        );
        assert_eq!(
            found(&LAYERS, "a/src/low.rs", "fn f(_: crate::middle::A) {}").len(),
            1
        );
    }

    #[test]
    fn relative_paths_are_resolved() {
        assert_eq!(
            found(
                &LAYERS,
                "a/src/high/pure.rs",
                "use super::{a::{B, C as D}, E};"
            )
            .len(),
            3
        );
        assert_eq!(
            found(
                &LAYERS,
                "a/src/high/pure.rs",
                "use super::super::middle::A;"
            )
            .len(),
            1
        );
        assert!(found(&LAYERS, "a/src/high/pure.rs", "use self::low::A;").is_empty());
        assert!(found(&LAYERS, "a/src/middle.rs", "use mcpact::high::A;").is_empty());
    }

    #[test]
    fn tests_comments_and_visibilities_are_not_uses() {
        for text in [
            "#[cfg(test)]\nmod tests { use crate::high::A; }",
            "// crate::high::A",
            "pub(in crate::high) fn f() {}",
        ] {
            assert!(found(&LAYERS, "a/src/low.rs", text).is_empty(), "{text}");
        }
        assert!(found(&LAYERS, "a/src/low/tests.rs", "use crate::high::A;").is_empty());
    }

    #[test]
    fn names_of_the_crate_root_are_for_other_crates() {
        assert_eq!(found(&LAYERS, "a/src/high.rs", "use crate::Name;").len(), 1);
        assert!(found(&LAYERS, "a/src/lib.rs", "pub use high::A;").is_empty());
    }

    #[test]
    fn modules_and_the_list_must_agree() {
        assert_eq!(found(&LAYERS, "a/src/other.rs", "").len(), 1);
        let layers = ModuleLayers {
            layers: &[&["low", "high::pure", "gone"], &["middle"], &["high"]],
            ..LAYERS
        };
        assert_eq!(found(&layers, "a/src/low.rs", "").len(), 1);
    }

    #[test]
    fn exceptions_are_needed() {
        let layers = ModuleLayers {
            exceptions: &[Exception {
                module: "low",
                uses: "middle::A",
                why: "example",
            }],
            ..LAYERS
        };
        assert!(found(&layers, "a/src/low.rs", "use crate::middle::A;").is_empty());
        assert_eq!(
            found(&layers, "a/src/low.rs", "use crate::middle::{A, B};").len(),
            1
        );
        assert_eq!(
            found(&layers, "a/src/low.rs", ""),
            ["exception `low` uses `middle::A` (example): no longer needed"]
        );
    }
}
