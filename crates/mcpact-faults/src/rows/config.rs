//! Configs that would do harm.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::Effort;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::program;
use crate::process::PATIENCE;

/// Servers that would leave a mark if anything of them were run. `MARK` is the file.
const DANGEROUS: &[&str] = &[
    r#"command = "sh"
args = ["-c", "touch MARK"]"#,
    r#"command = "bash"
args = ["-lc", "touch MARK && cat"]"#,
    r#"command = "sudo"
args = ["touch", "MARK"]"#,
    r#"command = "touch MARK && cat""#,
    r#"command = "cat; touch MARK""#,
    r#"command = "$(touch MARK)""#,
    r#"command = "`touch MARK`""#,
    r#"command = "cat | tee MARK""#,
    r#"command = "env"
args = ["sh", "-c", "touch MARK"]"#,
    r#"command = "nohup"
args = ["bash", "-c", "touch MARK"]"#,
    r#"command = "rm"
args = ["-rf", "/nowhere"]"#,
    r#"command = "curl"
args = ["-o", "MARK", "http://127.0.0.1:9/"]"#,
    r#"command = "cat\ntouch MARK""#,
    r#"comand = "touch""#,
    r#"command = "cat"
env = { LD_PRELOAD = "/tmp/evil.so" }
unknown = 1"#,
];

/// Exit status of a program; `None` if it had to be killed.
async fn run(words: &[&str], config: &Path) -> Result<Option<i32>, RowError> {
    let folder = config.parent().unwrap_or(Path::new("."));
    let mut command = Command::new(program("mcpact")?);
    command.args(words).arg(config).current_dir(folder);
    command.env("HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command.env("XDG_CACHE_HOME", folder);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.kill_on_drop(true).status();
    let status = tokio::time::timeout(PATIENCE, status).await;
    Ok(status.ok().transpose()?.and_then(|status| status.code()))
}

/// Returns whether both commands reject a config.
async fn is_refused(config: &Path) -> Result<bool, RowError> {
    let checked = run(&["check"], config).await?;
    let served = run(&["serve", "--listen", "127.0.0.1:0", "--config"], config).await?;
    Ok(matches!(checked, Some(1..)) && matches!(served, Some(1..)))
}

/// A dangerous command is refused and never run; arguments stay arguments.
pub(super) async fn dangerous(_: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let folder = tempfile::tempdir()?;
    let mark = folder.path().join("mark");
    let config = folder.path().join("mcpact.toml");
    let mut taken = 0;
    for server in DANGEROUS {
        let server = server.replace("MARK", &mark.display().to_string());
        fs::write(
            &config,
            format!("[servers.evil]\n{server}\nmin_ready = 1\n"),
        )?;
        if !is_refused(&config).await? {
            taken += 1;
            figures.shown(format!("taken: {}", server.replace('\n', " ")), 1.0, "");
        }
    }
    figures.shown("dangerous configs", DANGEROUS.len() as f64, "");
    figures.none("taken", taken);
    figures.none("marks", usize::from(mark.exists()));
    Ok(())
}

const HARMLESS: &str = "[servers.a]\nbuiltin = \"everything\"\n";

/// World-writable configs and non-files are rejected.
pub(super) async fn foreign_files(_: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let folder = tempfile::tempdir()?;
    let config = |name: &str| folder.path().join(name);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let writable = config("writable.toml");
    fs::write(&writable, HARMLESS)?;
    mode(&writable, 0o666)?;
    let linked = config("linked.toml");
    symlink(&writable, &linked)?;
    let dangling = config("dangling.toml");
    symlink(config("nothing"), &dangling)?;
    let directory = config("directory.toml");
    fs::create_dir(&directory)?;
    let pipe = config("pipe.toml");
    let made = Command::new("mkfifo").arg(&pipe).status().await?;
    let tool = config("tool");
    fs::write(&tool, "#!/bin/sh\n")?;
    mode(&tool, 0o777)?;
    let program = config("program.toml");
    fs::write(
        &program,
        format!("[servers.a]\ncommand = {:?}\n", tool.display().to_string()),
    )?;
    let mut taken = 0;
    for path in [&writable, &linked, &dangling, &directory, &pipe, &program] {
        if !is_refused(path).await? {
            taken += 1;
            figures.shown(
                format!("taken: {}", path.file_name().unwrap_or_default().display()),
                1.0,
                "",
            );
        }
    }
    figures.none("pipes that could not be made", usize::from(!made.success()));
    figures.none("taken", taken);
    let good = config("good.toml");
    fs::write(&good, HARMLESS)?;
    mode(&good, 0o600)?;
    figures.at_least(
        "a good one is taken",
        usize::from(run(&["check"], &good).await? == Some(0)),
        1,
    );
    Ok(())
}
