//! The wheel for PyPI, which also gives the program of every other package.

use std::path::{Path, PathBuf};

use super::{Release, create};
use crate::failure::Failure;
use crate::process::{program_at, run};
use crate::python;

/// maturin, zig as linker, and uv to try the wheel.
const TOOLS: [&str; 3] = ["maturin==1.16.0", "ziglang==0.17.0", "uv==0.13.8"];
/// Oldest glibc that the program must run with, as a tag of the wheel.
const PLATFORM: &str = "manylinux_2_28";

/// Directory of the programs of the tools.
pub(super) fn tools(release: &Release<'_>) -> Result<PathBuf, Failure> {
    let folder = release.work.join("python");
    let pins = TOOLS.map(str::to_owned);
    let python = python::environment(release.checkout, &folder, &pins)?;
    Ok(python.parent().map(Path::to_owned).unwrap_or_default())
}

/// Builds the wheel and returns it with the program in it.
pub(super) fn build(release: &Release<'_>, profile: &str) -> Result<(PathBuf, PathBuf), Failure> {
    let tools = tools(release)?;
    let mut maturin = program_at(release.checkout, tools.join("maturin"));
    maturin.args(["build", "--locked", "--zig", "--strip", "--quiet"]);
    maturin.args(["--profile", profile, "--compatibility", PLATFORM]);
    maturin.arg("--out").arg(&release.folder);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tools).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(path) {
        maturin.env("PATH", path);
    }
    maturin.env("SOURCE_DATE_EPOCH", &release.epoch);
    run(maturin.current_dir(release.checkout.path("packaging/python")))?;
    let name = format!("mcpact-{}-py3-none-{PLATFORM}_x86_64.whl", release.version);
    let wheel = release.folder.join(name);
    let unpacked = release.fresh("wheel")?;
    create(&unpacked)?;
    let mut unzip = program_at(release.checkout, "python3");
    unzip.args(["-m", "zipfile", "--extract"]);
    run(unzip.args([&wheel, &unpacked]))?;
    let scripts = format!("mcpact-{}.data/scripts/mcpact", release.version);
    Ok((wheel, unpacked.join(scripts)))
}
