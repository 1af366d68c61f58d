//! The program, and what is generated with it: manual pages and completions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, copy, create, write};
use crate::failure::Failure;
use crate::process::{capture, program_at, run};

/// The newest glibc that the program may need.
const GLIBC: (u32, u32) = (2, 28);
/// Shells with the paths of their completion scripts.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/mcpact"),
    ("zsh", "zsh/vendor-completions/_mcpact"),
    ("fish", "fish/vendor_completions.d/mcpact.fish"),
];
/// Licences and the like, which every package has.
const DOCUMENTS: [&str; 3] = ["LICENSE-MIT", "LICENSE-APACHE", "README.md"];

/// The program with the facts that packages declare.
pub(super) struct Program {
    path: PathBuf,
    glibc: (u32, u32),
    /// File names of the shared libraries that it needs.
    libraries: Vec<String>,
}

impl Program {
    /// Reads the ELF headers of a program.
    pub(super) fn inspect(release: &Release<'_>, path: PathBuf) -> Result<Self, Failure> {
        make_executable(&path)?;
        let readelf = |what: &str| {
            let mut command = program_at(release.checkout, "readelf");
            capture(command.args(["--wide", what]).arg(&path))
        };
        let glibc = newest_glibc(&readelf("--version-info")?);
        let libraries = needed_libraries(&readelf("--dynamic")?);
        if glibc > GLIBC {
            let (major, minor) = glibc;
            return Err(Failure::Findings {
                check: "dist",
                lines: vec![format!("the program needs glibc {major}.{minor}")],
                hint: "a dependency uses newer symbols than the linker should offer",
            });
        }
        Ok(Self {
            path,
            glibc,
            libraries,
        })
    }

    /// Oldest glibc with which it runs.
    pub(super) fn glibc(&self) -> String {
        let (major, minor) = self.glibc;
        format!("{major}.{minor}")
    }

    /// Returns whether it needs this shared library.
    pub(super) fn needs(&self, library: &str) -> bool {
        self.libraries.iter().any(|one| one == library)
    }

    /// Copies the program.
    pub(super) fn copy_to(&self, path: &Path) -> Result<(), Failure> {
        copy(&self.path, path)?;
        make_executable(path)
    }

    /// Writes manual pages and completions below a `share` directory.
    pub(super) fn write_share(&self, share: &Path) -> Result<(), Failure> {
        let pages = share.join("man/man1");
        create(&pages)?;
        capture(Command::new(&self.path).arg("man").arg("--out").arg(&pages))?;
        for (shell, file) in SHELLS {
            let script = capture(Command::new(&self.path).args(["completions", shell]))?;
            write(&share.join(file), script)?;
        }
        Ok(())
    }
}

/// Copies licences and README.
pub(super) fn copy_documents(release: &Release<'_>, folder: &Path) -> Result<(), Failure> {
    for name in DOCUMENTS {
        copy(&release.checkout.path(name), &folder.join(name))?;
    }
    Ok(())
}

/// Compresses the manual pages of a directory, as packages of Debian have them.
pub(super) fn compress(folder: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(Failure::file(folder))? {
        let page = entry.map_err(Failure::file(folder))?.path();
        run(Command::new("gzip").args(["-9", "--no-name"]).arg(page))?;
    }
    Ok(())
}

fn make_executable(path: &Path) -> Result<(), Failure> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(Failure::file(path))
}

/// Newest version in the words `GLIBC_2.28`.
fn newest_glibc(versions: &str) -> (u32, u32) {
    let words = versions.split(|one: char| !(one.is_ascii_alphanumeric() || "._".contains(one)));
    let versions = words.filter_map(|word| word.strip_prefix("GLIBC_"));
    let parsed = versions.filter_map(|version| {
        let (major, minor) = version.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    parsed.max().unwrap_or_default()
}

/// Names in lines such as `(NEEDED)  Shared library: [libc.so.6]`.
fn needed_libraries(dynamic: &str) -> Vec<String> {
    let lines = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    lines
        .filter_map(|line| line.split_once('[')?.1.split_once(']'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_of_glibc_is_found() {
        let versions = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 7\n\
                        0x0020:   Name: GLIBC_2.17  Flags: none\n  Name: GCC_3.0\n 2.2.5 (GLIBC_2.2.5)";
        assert_eq!(newest_glibc(versions), (2, 17));
        assert_eq!(newest_glibc(""), (0, 0));
    }

    #[test]
    fn needed_libraries_are_listed() {
        let dynamic = " 0x1 (NEEDED)   Shared library: [libgcc_s.so.1]\n 0x1 (NEEDED)   Shared library: [libc.so.6]\n 0x2 (SONAME) x [y]";
        assert_eq!(needed_libraries(dynamic), ["libgcc_s.so.1", "libc.so.6"]);
    }
}
