//! `SHA256SUMS`, in the format of `sha256sum`.

use std::path::PathBuf;

use super::{Release, name_of, write as write_file};
use crate::failure::Failure;
use crate::process::{capture, program_at, run};

const FILE: &str = "SHA256SUMS";

/// Writes the checksums of these packages.
pub(super) fn write(release: &Release<'_>, files: &[PathBuf]) -> Result<(), Failure> {
    let mut names: Vec<String> = files.iter().map(|file| name_of(file)).collect();
    names.sort();
    let mut command = program_at(release.checkout, "sha256sum");
    let sums = capture(command.args(names).current_dir(&release.folder))?;
    write_file(&release.folder.join(FILE), sums)
}

/// Compares the packages with their checksums.
pub(super) fn check(release: &Release<'_>) -> Result<(), Failure> {
    let mut command = program_at(release.checkout, "sha256sum");
    command.args(["--check", "--strict", "--quiet", FILE]);
    run(command.current_dir(&release.folder))
}
