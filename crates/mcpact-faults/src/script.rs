//! A scripted stdio server that misbehaves; the called tool decides how.
//!
//! It implements 2025-11-25 by hand and shares no code with the tested program.

mod tools;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::RowError;
use crate::journal::{Entry, JournalWriter};
use tools::TOOLS;

/// Options besides the tools.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Path of the journal.
    #[arg(long)]
    journal: PathBuf,
    /// Behaviour at EOF and before the first response.
    #[arg(long, value_enum, default_value = "usual")]
    manner: Manner,
}

/// Behaviour of a server at its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Manner {
    /// It serves until its input ends.
    Usual,
    /// It ends before it has said anything.
    Crash,
    /// It stays when its input ends.
    Stubborn,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    id: Value,
    /// The driver's number for it.
    nonce: u64,
    arguments: Value,
    progress_token: Option<Value>,
}

impl Call {
    fn of(message: &Value) -> Self {
        let params = &message["params"];
        let token = params["_meta"].get("progressToken");
        Self {
            id: message["id"].clone(),
            nonce: params["arguments"]["nonce"].as_u64().unwrap_or_default(),
            arguments: params["arguments"].clone(),
            progress_token: token.cloned(),
        }
    }

    fn number(&self, name: &str) -> u64 {
        self.arguments[name].as_u64().unwrap_or_default()
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(self.number("ms"))
    }

    fn text(&self) -> Value {
        json!({"content": [{"type": "text", "text": self.nonce.to_string()}]})
    }

    fn answer(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "result": self.text()})
    }
}

/// State shared by the tools.
#[derive(Debug)]
pub(crate) struct Stage {
    pen: JournalWriter,
    voice: Mutex<std::io::Stdout>,
    /// Calls that may be cancelled or wait for an answer from the client, by the id of either.
    open: Mutex<BTreeMap<String, Call>>,
}

impl Stage {
    /// Writes raw bytes. If the reader is gone, the server ends soon.
    fn shout(&self, bytes: &[u8]) {
        let mut voice = self.voice.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = voice.write_all(bytes).and_then(|()| voice.flush());
    }

    fn say(&self, message: &Value) {
        self.shout(format!("{message}\n").as_bytes());
    }

    fn keep(&self, id: &Value, call: &Call) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(id.to_string(), call.clone());
    }

    fn take(&self, id: &Value) -> Option<Call> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&id.to_string())
    }
}

/// Serves until the input ends.
pub(crate) fn serve(options: &Options) -> Result<(), RowError> {
    let pen = JournalWriter::open(&options.journal)?;
    pen.note(Entry::Start, u64::from(std::process::id()))?;
    if options.manner == Manner::Crash {
        return Err(RowError::stage("it ends before it has said anything"));
    }
    let stage = Arc::new(Stage {
        pen,
        voice: Mutex::new(std::io::stdout()),
        open: Mutex::default(),
    });
    for line in std::io::stdin().lock().lines() {
        hear(&stage, &serde_json::from_str(&line?)?)?;
    }
    match options.manner {
        Manner::Usual | Manner::Crash => Ok(()),
        Manner::Stubborn => loop {
            std::thread::park();
        },
    }
}

fn hear(stage: &Arc<Stage>, message: &Value) -> Result<(), RowError> {
    let id = &message["id"];
    let Some(method) = message["method"].as_str() else {
        if let Some(call) = stage.take(id) {
            tools::told(stage, &call, message);
        }
        return Ok(());
    };
    let result = match method {
        "initialize" => introduction(),
        "ping" => json!({}),
        "tools/list" => list(),
        "tools/call" => {
            let call = Call::of(message);
            stage.pen.note(Entry::Call, call.nonce)?;
            stage.keep(id, &call);
            tools::run(stage, message["params"]["name"].as_str(), call);
            return Ok(());
        }
        "notifications/cancelled" => {
            if let Some(call) = stage.take(&message["params"]["requestId"]) {
                stage.pen.note(Entry::Cancelled, call.nonce)?;
            }
            return Ok(());
        }
        _ if id.is_null() => return Ok(()),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            stage.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            return Ok(());
        }
    };
    stage.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    Ok(())
}

fn introduction() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "script", "version": "1"},
    })
}

fn list() -> Value {
    let tools = TOOLS
        .iter()
        .map(|tool| json!({"name": tool.0, "inputSchema": {"type": "object"}}));
    json!({"tools": tools.collect::<Vec<_>>()})
}
