//! `cargo xtask dist`: the packages of a release in `target/dist`, for Linux on x86-64.
//!
//! maturin builds the program once, with zig as linker so that it runs with an old glibc. Every other package gets the
//! program of the wheel.

mod checksums;
mod deb;
mod install;
mod npm;
mod program;
mod sbom;
mod tarball;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, program_at, remove};
use crate::report;

use self::program::Program;

/// Options of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Install every package into an empty directory and make a bridged call.
    #[arg(long)]
    check: bool,
    /// Cargo profile of the program; `dev` is for tests of the packaging.
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Directory of the packages.
const FOLDER: &str = "target/dist";
/// Directory of everything that is needed on the way.
const WORK: &str = "target/dist-work";

/// A release that is being built.
struct Release<'a> {
    checkout: &'a Checkout,
    version: String,
    /// Where the packages go.
    folder: PathBuf,
    work: PathBuf,
    /// Time of the commit, in seconds since 1970: the same commit gives the same packages.
    epoch: String,
}

/// Builds the packages, and with `--check` installs each of them.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::Findings {
            check: "dist",
            lines: vec!["packages are built on Linux on x86-64 only".to_owned()],
            hint: "on other platforms, use `cargo install`",
        });
    }
    let release = Release::prepare(checkout)?;
    report::heading("wheel");
    let (wheel, binary) = wheel::build(&release, &options.profile)?;
    let program = Program::inspect(&release, binary)?;
    report::say(format_args!(
        "the program needs glibc {} or newer",
        program.glibc()
    ));
    report::heading("packages");
    let tarball = tarball::build(&release, &program)?;
    let deb = deb::build(&release, &program)?;
    let npm = npm::build(&release, &program)?;
    let sbom = sbom::write(&release)?;
    let mut files = vec![wheel.clone(), tarball.clone(), deb.clone(), sbom];
    files.extend(npm.clone());
    checksums::write(&release, &files)?;
    for file in &files {
        report::say(format_args!("{:>12} {}", size(file)?, name_of(file)));
    }
    if options.check {
        report::heading("installation");
        checksums::check(&release)?;
        install::tarball(&release, &tarball)?;
        install::deb(&release, &deb)?;
        install::npm(&release, &npm)?;
        install::pip(&release, &wheel)?;
        install::uvx(&release, &wheel)?;
    }
    report::say(format_args!("\npackages are in `{FOLDER}`"));
    Ok(())
}

impl<'a> Release<'a> {
    fn prepare(checkout: &'a Checkout) -> Result<Self, Failure> {
        let manifest: toml::Table = toml::from_str(&checkout.read("Cargo.toml")?).map_err({
            let path = checkout.path("Cargo.toml");
            |source| Failure::Toml { path, source }
        })?;
        let version = &manifest["workspace"]["package"]["version"];
        let mut git = program_at(checkout, "git");
        let epoch = capture(git.args(["log", "-1", "--format=%ct"]))?;
        let release = Self {
            checkout,
            version: version.as_str().unwrap_or_default().to_owned(),
            folder: checkout.path(FOLDER),
            work: checkout.path(WORK),
            epoch: epoch.trim().to_owned(),
        };
        remove(&release.folder)?;
        create(&release.folder)?;
        Ok(release)
    }

    /// An empty directory for work in progress.
    fn fresh(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.work.join(name);
        remove(&folder)?;
        create(&folder)?;
        Ok(folder)
    }
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::file(folder))
}

/// Copies a file into a new directory.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    to.parent().map_or(Ok(()), create)?;
    fs::copy(from, to).map_err(Failure::file(from)).map(drop)
}

/// Writes a file into a new directory.
fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    path.parent().map_or(Ok(()), create)?;
    fs::write(path, text).map_err(Failure::file(path))
}

fn size(file: &Path) -> Result<u64, Failure> {
    let data = fs::metadata(file).map_err(Failure::file(file))?;
    Ok(data.len())
}

fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}
