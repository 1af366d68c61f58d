//! The file in which tools are remembered: a digest and a name on each line.

use std::fs;
use std::io;
use std::path::Path;

/// No such file is longer.
const MOST_BYTES: u64 = 1 << 20;

/// What was written down; nothing if there is none, or if it cannot be read.
pub(super) fn read(path: &Path) -> Vec<(Box<str>, Box<str>)> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.len() <= MOST_BYTES);
    let text = is_small.then(|| fs::read_to_string(path).ok()).flatten();
    let text = text.unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(digest, tool)| (Box::from(tool), Box::from(digest)))
        .collect()
}

/// Writes all of it in one go: a reader sees the old file or the new one.
pub(super) fn write<'a>(
    path: &Path,
    tools: impl Iterator<Item = (&'a str, &'a str)>,
) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A name with a line end in it would become two.
    let tools = tools.filter(|(tool, _)| !tool.contains(['\n', '\r']));
    let text: String = tools
        .map(|(tool, digest)| format!("{digest} {tool}\n"))
        .collect();
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}
