//! Approved code that is exchanged.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::Effort;
use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup, path};
use crate::journal::{Entry, Journal};

/// Servers whose code is exchanged, with their words. `GOOD` is the approved program, `LINK` a link to it.
const SERVERS: &[(&str, &[&str])] = &[
    ("program", &["GOOD"]),
    ("script", &["sh", "GOOD"]),
    ("launcher", &["env", "sh", "-u", "GOOD"]),
    ("link", &["LINK"]),
    ("linked_script", &["sh", "LINK"]),
];

/// The server of the race.
const RACED: &str = "raced";

/// Maximum number of exchanges.
const MAX_EXCHANGES: usize = 10_000;

/// Maximum number of milliseconds between two exchanges.
const MAX_PAUSE: usize = 60;

/// Writes a program that serves with a journal.
fn install(program: &Path, journal: &Journal) -> Result<(), RowError> {
    let own = std::env::current_exe()?.display().to_string();
    let journal = journal.path().display();
    let text = format!("#!/bin/sh\nexec '{own}' script --journal '{journal}'\n");
    // A new file, because the old one may be running.
    let new = program.with_extension("new");
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o700))?;
    Ok(fs::rename(new, program)?)
}

/// Paths of the programs and links of a setup.
struct Stage {
    folder: PathBuf,
    good: Journal,
    evil: Journal,
}

impl Stage {
    fn path(&self, server: &str, kind: &str) -> PathBuf {
        self.folder.join(format!("{server}.{kind}"))
    }

    fn exchange(&self, server: &str) -> Result<(), RowError> {
        let link = self.path(server, "link");
        let other = self.path(server, "other");
        install(&other, &self.evil)?;
        if server.starts_with("link") {
            fs::remove_file(&link)?;
            symlink(&other, &link)?;
        } else {
            fs::rename(other, self.path(server, "sh"))?;
        }
        Ok(())
    }
}

/// Calls a server once; returns whether it answered.
async fn answers(gateway: &Gateway, server: &str) -> Result<bool, RowError> {
    let client = Client::new(&gateway.address, &path(server), Era::Modern)?;
    let reply = client.call(&json!(1), "echo", json!({})).await?;
    let answers = reply.answers();
    Ok(answers
        .iter()
        .any(|answer| answer.get("result").is_some_and(Value::is_object)))
}

/// Exchanged code is not started. Code that is exchanged all the time never answers a call.
pub(super) async fn exchanged(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let mut setup = GatewaySetup::new()?;
    let stage = Stage {
        folder: setup.folder().to_owned(),
        good: setup.journal("good"),
        evil: setup.journal("evil"),
    };
    let keys = "era = \"legacy\"\nidle_seconds = 0\nbackoff_seconds = 0.01\nbackoff_max_seconds = 0.05\nfailures = 1000\n";
    for (server, words) in SERVERS.iter().chain(&[(RACED, &["sh", "GOOD"][..])]) {
        let good = stage.path(server, "sh");
        install(&good, &stage.good)?;
        symlink(&good, stage.path(server, "link"))?;
        let words = words.iter().map(|word| match *word {
            "GOOD" => good.display().to_string(),
            "LINK" => stage.path(server, "link").display().to_string(),
            word => word.to_owned(),
        });
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        setup = setup.command(server, &words, keys);
    }
    let setup = setup.approved().await?;
    let gateway = setup.serve_found().await?;
    let mut good = 0;
    for (server, _) in SERVERS {
        good += usize::from(answers(&gateway, server).await?);
    }
    figures.at_least("approved servers that answer", good, SERVERS.len());

    for (server, _) in SERVERS {
        stage.exchange(server)?;
    }
    let setup = gateway.stop().await?;
    let gateway = setup.serve_found().await?;
    let mut calls = 0;
    for (server, _) in SERVERS {
        calls += usize::from(answers(&gateway, server).await?);
    }
    figures.none("started after exchange", stage.evil.all(Entry::Start).len());
    figures.none("calls answered after exchange", calls);

    race(effort, &stage, &gateway, figures).await?;
    gateway.close().await?;
    Ok(())
}

/// Calls a server while its script is exchanged all the time.
async fn race(
    effort: Effort,
    stage: &Stage,
    gateway: &Gateway,
    figures: &mut Figures,
) -> Result<(), RowError> {
    let is_over = Arc::new(AtomicBool::new(false));
    let (script, other) = (stage.path(RACED, "sh"), stage.path(RACED, "other"));
    install(&other, &stage.evil)?;
    let exchanging = std::thread::spawn({
        let (is_over, kept) = (Arc::clone(&is_over), stage.path(RACED, "kept"));
        move || -> std::io::Result<usize> {
            for count in 0..MAX_EXCHANGES {
                if is_over.load(Ordering::Relaxed) && count % 2 == 0 {
                    return Ok(count);
                }
                // At every time of a start, and long enough for a whole one.
                std::thread::sleep(Duration::from_millis((count % MAX_PAUSE) as u64));
                // Both files keep their contents and change their names.
                fs::rename(&script, &kept)?;
                fs::rename(&other, &script)?;
                fs::rename(&kept, &other)?;
            }
            Ok(MAX_EXCHANGES)
        }
    });
    let before = stage.evil.all(Entry::Call).len();
    let mut answered = 0;
    for _ in 0..effort.of(40, 1000) {
        // An idle server stops, so that every call starts one.
        tokio::time::sleep(Duration::from_millis(70)).await;
        answered += usize::from(answers(gateway, RACED).await?);
    }
    is_over.store(true, Ordering::Relaxed);
    let exchanges = exchanging
        .join()
        .map_err(|_| RowError::stage("the exchange failed"))??;
    let evil = stage.evil.all(Entry::Call).len() - before;
    figures.shown("exchanges during the calls", exchanges as f64, "");
    figures.shown(
        "calls answered by approved code",
        (answered - evil.min(answered)) as f64,
        "",
    );
    let starts: BTreeSet<u64> = stage.evil.all(Entry::Start).into_iter().collect();
    figures.shown(
        "exchanged code started and stopped",
        starts.len() as f64,
        "",
    );
    figures.none("calls that reached exchanged code", evil);
    Ok(())
}
