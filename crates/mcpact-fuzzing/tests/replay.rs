//! Every file of the committed corpora goes through its target.

use std::path::Path;
use std::{fs, io, panic};

fn replay(target: &str, run: fn(&[u8])) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder)? {
        let file = entry?.path();
        let data = fs::read(&file)?;
        let outcome = panic::catch_unwind(|| run(&data));
        assert!(outcome.is_ok(), "{} breaks an invariant", file.display());
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
    Ok(())
}

#[test]
fn ambiguity() -> io::Result<()> {
    replay("ambiguity", mcpact_fuzzing::ambiguity)
}

#[test]
fn scanner() -> io::Result<()> {
    replay("scanner", mcpact_fuzzing::scanner)
}

#[test]
fn envelope() -> io::Result<()> {
    replay("envelope", mcpact_fuzzing::envelope)
}

#[test]
fn config() -> io::Result<()> {
    replay("config", mcpact_fuzzing::config)
}

#[test]
fn http_head() -> io::Result<()> {
    replay("http_head", mcpact_fuzzing::http_head)
}

#[test]
fn ndjson() -> io::Result<()> {
    replay("ndjson", mcpact_fuzzing::ndjson)
}

#[test]
fn sse() -> io::Result<()> {
    replay("sse", mcpact_fuzzing::sse)
}

#[test]
fn sealed_state() -> io::Result<()> {
    replay("sealed_state", mcpact_fuzzing::sealed_state)
}

#[test]
fn engine() -> io::Result<()> {
    replay("engine", mcpact_fuzzing::engine)
}

#[test]
fn websocket() -> io::Result<()> {
    replay("websocket", mcpact_fuzzing::websocket)
}
