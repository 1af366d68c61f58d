//! The package for Debian and Ubuntu, without scripts that run at installation.

use std::fs;
use std::path::{Path, PathBuf};

use super::program::{Program, compress, copy_documents};
use super::{Release, copy, write};
use crate::failure::Failure;
use crate::process::{program_at, run};

/// Fields of the package.
const CONTROL: &str = "packaging/deb/control";

/// Builds the package with dpkg-deb.
pub(super) fn build(release: &Release<'_>, program: &Program) -> Result<PathBuf, Failure> {
    let root = release.fresh("deb")?;
    program.copy_to(&root.join("usr/bin/mcpact"))?;
    program.write_share(&root.join("usr/share"))?;
    compress(&root.join("usr/share/man/man1"))?;
    copy_documents(release, &root.join("usr/share/doc/mcpact"))?;
    let copyright = release.checkout.read("LICENSE-MIT")?;
    write(&root.join("usr/share/doc/mcpact/copyright"), copyright)?;
    copy(
        &release.checkout.path("packaging/mcpact.service"),
        &root.join("usr/lib/systemd/system/mcpact.service"),
    )?;
    let control = control(release, program, kibibytes(&root)?)?;
    write(&root.join("DEBIAN/control"), control)?;
    let file = format!("mcpact_{}-1_amd64.deb", release.version);
    let file = release.folder.join(file);
    run(program_at(release.checkout, "chmod")
        .args(["--recursive", "u=rwX,go=rX"])
        .arg(&root))?;
    let mut dpkg = program_at(release.checkout, "dpkg-deb");
    dpkg.args(["--root-owner-group", "--build"]);
    dpkg.env("SOURCE_DATE_EPOCH", &release.epoch);
    run(dpkg.arg(&root).arg(&file))?;
    Ok(file)
}

fn control(release: &Release<'_>, program: &Program, size: u64) -> Result<String, Failure> {
    let mut depends = format!("libc6 (>= {})", program.glibc());
    if program.needs("libgcc_s.so.1") {
        depends.push_str(", libgcc-s1");
    }
    let text = release.checkout.read(CONTROL)?;
    let text = text.replace("@VERSION@", &release.version);
    let text = text.replace("@SIZE@", &size.to_string());
    Ok(text.replace("@DEPENDS@", &depends))
}

/// Size of all files below a directory.
fn kibibytes(folder: &Path) -> Result<u64, Failure> {
    let mut total = 0;
    for entry in fs::read_dir(folder).map_err(Failure::file(folder))? {
        let path = entry.map_err(Failure::file(folder))?.path();
        total += match path.is_dir() {
            true => kibibytes(&path)?,
            false => super::size(&path)?.div_ceil(1024),
        };
    }
    Ok(total)
}
