//! An archive with the program, manual pages and completions, for every distribution.

use std::path::PathBuf;

use super::program::{Program, copy_documents};
use super::{Release, create};
use crate::failure::Failure;
use crate::process::{program_at, run};

/// Builds the archive.
pub(super) fn build(release: &Release<'_>, program: &Program) -> Result<PathBuf, Failure> {
    let name = format!("mcpact-{}-x86_64-linux-gnu", release.version);
    let root = release.fresh("tarball")?;
    let folder = root.join(&name);
    create(&folder)?;
    program.copy_to(&folder.join("bin/mcpact"))?;
    program.write_share(&folder.join("share"))?;
    copy_documents(release, &folder)?;
    let file = release.folder.join(format!("{name}.tar.gz"));
    let mut tar = program_at(release.checkout, "tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.epoch));
    tar.args(["--use-compress-program", "gzip --no-name", "--file"]);
    run(tar.arg(&file).arg("--directory").arg(&root).arg(&name))?;
    Ok(file)
}
