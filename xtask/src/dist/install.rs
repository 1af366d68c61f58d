//! Installs each package into an empty directory, asks for the version, and makes a call through `mcpact bridge`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Release, create, wheel, write};
use crate::failure::Failure;
use crate::process::{capture, program_at, run};
use crate::report;

/// Messages of a client of 2025-11-25, which calls a tool of a server of 2026-07-28.
const MESSAGES: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dist","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"bridged"}}}
"#;
/// Part of the response to the call.
const RESULT: &str = r#""text":"bridged""#;
/// Fields that `dpkg -I` must show.
const FIELDS: [&str; 5] = [
    "Package",
    "Version",
    "Architecture",
    "Depends",
    "Description",
];

/// Unpacks the archive.
pub(super) fn tarball(release: &Release<'_>, file: &Path) -> Result<(), Failure> {
    let prefix = release.fresh("install-tarball")?;
    let mut tar = program_at(release.checkout, "tar");
    tar.args(["--extract", "--strip-components=1", "--file"]);
    run(tar.arg(file).arg("--directory").arg(&prefix))?;
    try_out(release, "tar", &prefix.join("bin"), &[])
}

/// Reads the fields of the package, unpacks it, and as root also installs it below another root directory.
pub(super) fn deb(release: &Release<'_>, file: &Path) -> Result<(), Failure> {
    let dpkg = || program_at(release.checkout, "dpkg");
    let fields = capture(dpkg().arg("--info").arg(file))?;
    let has = |field: &str| {
        fields
            .lines()
            .any(|line| line.trim_start().starts_with(field))
    };
    let missing = FIELDS.iter().filter(|field| !has(&format!("{field}:")));
    let missing = missing.map(|field| format!("`dpkg -I` shows no {field}"));
    Failure::unless_clean("deb", missing.collect(), "see packaging/deb/control")?;
    let prefix = release.fresh("install-deb")?;
    run(dpkg().arg("--extract").arg(file).arg(&prefix))?;
    try_out(release, "dpkg -x", &prefix.join("usr/bin"), &[])?;
    if capture(program_at(release.checkout, "id").arg("-u"))?.trim() != "0" {
        report::say("dpkg --root  skipped: it needs root");
        return Ok(());
    }
    let root = release.fresh("install-deb-root")?;
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        create(&root.join(folder))?;
    }
    write(&root.join("var/lib/dpkg/status"), "")?;
    // The root is empty: it has no glibc.
    let mut install = dpkg();
    install
        .arg("--root")
        .arg(&root)
        .args(["--force-depends", "--install"]);
    capture(install.arg(file).stderr(Stdio::null()))?;
    try_out(release, "dpkg --root", &root.join("usr/bin"), &[])
}

/// Installs both packages with scripts off and without a network.
pub(super) fn npm(release: &Release<'_>, files: &[PathBuf]) -> Result<(), Failure> {
    let prefix = release.fresh("install-npm")?;
    let mut npm = program_at(release.checkout, "npm");
    npm.args(["install", "--ignore-scripts", "--offline", "--no-audit"]);
    npm.args(["--no-fund", "--loglevel", "error", "--prefix"]);
    capture(npm.arg(&prefix).args(files))?;
    try_out(release, "npm", &prefix.join("node_modules/.bin"), &[])
}

/// Installs the wheel into an empty virtual environment.
pub(super) fn pip(release: &Release<'_>, file: &Path) -> Result<(), Failure> {
    let prefix = release.fresh("install-pip")?;
    let mut venv = program_at(release.checkout, "python3");
    run(venv.args(["-m", "venv"]).arg(&prefix))?;
    let mut pip = program_at(release.checkout, prefix.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-index"]);
    run(pip.arg("--disable-pip-version-check").arg(file))?;
    try_out(release, "pip", &prefix.join("bin"), &[])
}

/// Runs the wheel without installing it.
pub(super) fn uvx(release: &Release<'_>, file: &Path) -> Result<(), Failure> {
    let tools = wheel::tools(release)?;
    let file = file.as_os_str();
    let before = ["--offline", "--quiet", "--from"].map(OsStr::new);
    let before: Vec<&OsStr> = before
        .into_iter()
        .chain([file, OsStr::new("mcpact")])
        .collect();
    let uvx = tools.join("uvx");
    let server = release.work.join("install-pip/bin");
    try_out_as(release, "uvx", &uvx, &before, &server)
}

fn try_out(
    release: &Release<'_>,
    name: &str,
    programs: &Path,
    before: &[&OsStr],
) -> Result<(), Failure> {
    try_out_as(release, name, &programs.join("mcpact"), before, programs)
}

/// Asks a program for its version and calls a tool through it; the server is `mcpact` of `programs`.
fn try_out_as(
    release: &Release<'_>,
    name: &str,
    program: &Path,
    before: &[&OsStr],
    programs: &Path,
) -> Result<(), Failure> {
    let home = release.fresh("install-home")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).unwrap_or_default();
    let command = || {
        let mut command = Command::new(program);
        command.args(before).env("HOME", &home).env("PATH", &path);
        command.env("XDG_CACHE_HOME", home.join("cache"));
        command.env("UV_CACHE_DIR", home.join("uv"));
        command.current_dir(&home).env_remove("VIRTUAL_ENV");
        command
    };
    let version = capture(command().arg("--version"))?;
    let mut problems = Vec::new();
    if version.trim() != format!("mcpact {}", release.version) {
        problems.push(format!("{name}: `--version` prints `{}`", version.trim()));
    }
    let answers = call(
        command().args(["bridge", "--", "mcpact", "everything"]),
        &home,
    )?;
    if !answers.contains(RESULT) {
        problems.push(format!("{name}: the call returned `{}`", answers.trim()));
    }
    Failure::unless_clean(
        "installation",
        problems,
        "run `cargo xtask dist --check` again",
    )?;
    report::say(format_args!(
        "{name:<13}{}, bridged call works",
        version.trim()
    ));
    Ok(())
}

/// Sends the messages to a program and returns what it prints until it ends.
fn call(command: &mut Command, home: &Path) -> Result<String, Failure> {
    let messages = home.join("messages.jsonl");
    let mut file = fs::File::create(&messages).map_err(Failure::file(&messages))?;
    let written = file.write_all(MESSAGES.as_bytes());
    written.map_err(Failure::file(&messages))?;
    let file = fs::File::open(&messages).map_err(Failure::file(&messages))?;
    capture(command.stdin(file))
}
