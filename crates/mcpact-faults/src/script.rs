//! A server on pipes that misbehaves as it is told: which tool is called decides how.
//!
//! It speaks 2025-11-25 by hand and shares no code with what is tested.

mod tools;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::journal::{Entry, Pen};
use crate::trouble::Trouble;
use tools::TOOLS;

/// How the server is apart from its tools.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where it writes down what it sees.
    #[arg(long)]
    journal: PathBuf,
    /// What it does at the end of its input and before its first answer.
    #[arg(long, value_enum, default_value = "usual")]
    manner: Manner,
}

/// What a server does at its start and its end.
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

/// What the tools share.
#[derive(Debug)]
pub(crate) struct Stage {
    pen: Pen,
    voice: Mutex<std::io::Stdout>,
    /// Calls that may be cancelled or wait for an answer from the client, by the id of either.
    open: Mutex<BTreeMap<String, Call>>,
}

impl Stage {
    /// Says bytes as they are. Whoever does not listen any more ends the server soon.
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
pub(crate) fn serve(options: &Options) -> Result<(), Trouble> {
    let pen = Pen::open(&options.journal)?;
    pen.note(Entry::Start, u64::from(std::process::id()))?;
    if options.manner == Manner::Crash {
        return Err(Trouble::stage("it ends before it has said anything"));
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

fn hear(stage: &Arc<Stage>, message: &Value) -> Result<(), Trouble> {
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
