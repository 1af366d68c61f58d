//! What was learned about servers, from one run to the next.

use std::path::PathBuf;

use mcpact::client::Verdicts;

/// What was learned about servers earlier; without a place to keep it, it is learned each time.
pub(super) fn kept() -> Verdicts {
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")));
    let Some(folder) = cache.map(|cache| cache.join("mcpact")) else {
        return Verdicts::new();
    };
    if std::fs::create_dir_all(&folder).is_err() {
        return Verdicts::new();
    }
    Verdicts::in_file(folder.join("verdicts.json")).unwrap_or_default()
}
