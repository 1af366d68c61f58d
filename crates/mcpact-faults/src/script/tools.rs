//! Misbehaviour of each tool.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Call, Stage};

/// Bytes written at a time.
const PIECE: usize = 64 * 1024;

/// A name, and what is done with a call under it.
pub(super) struct Tool(pub(super) &'static str, fn(&Arc<Stage>, Call));

/// Every tool.
pub(super) const TOOLS: &[Tool] = &[
    Tool("echo", echo),
    Tool("sleep", sleep),
    Tool("hang", |_, _| {}),
    Tool("large", large),
    Tool("flood", flood),
    Tool("noise", noise),
    Tool("murmur", murmur),
    Tool("twice", twice),
    Tool("stranger", stranger),
    Tool("mistyped", mistyped),
    Tool("late", late),
    Tool("progress", progress),
    Tool("changed", changed),
    Tool("demand", demand),
    Tool("storm", storm),
    Tool("ask", ask),
    Tool("die", |_, _| std::process::exit(5)),
    Tool("partial", partial),
    Tool("raw", raw),
];

/// Runs a tool; unknown ones do not respond.
pub(super) fn run(stage: &Arc<Stage>, name: Option<&str>, call: Call) {
    let tool = TOOLS.iter().find(|tool| Some(tool.0) == name);
    if let Some(Tool(_, behaviour)) = tool {
        behaviour(stage, call);
    }
}

/// A client has answered the question of a call.
pub(super) fn told(stage: &Stage, call: &Call, message: &Value) {
    let said = &message["result"]["content"]["nonce"];
    let said = said
        .as_str()
        .map_or_else(|| said.to_string(), str::to_owned);
    let text = json!({"content": [{"type": "text", "text": said}]});
    finish(
        stage,
        call,
        json!({"jsonrpc": "2.0", "id": call.id, "result": text}),
    );
}

/// Says an answer and forgets the call.
fn finish(stage: &Stage, call: &Call, answer: Value) {
    stage.take(&call.id);
    stage.say(&answer);
}

fn echo(stage: &Arc<Stage>, call: Call) {
    finish(stage, &call, call.answer());
}

fn sleep(stage: &Arc<Stage>, call: Call) {
    let stage = Arc::clone(stage);
    thread::spawn(move || {
        thread::sleep(call.pause());
        echo(&stage, call);
    });
}

fn large(stage: &Arc<Stage>, call: Call) {
    let bytes = usize::try_from(call.number("bytes")).unwrap_or_default();
    let text = format!("{} {}", call.nonce, "x".repeat(bytes));
    let result = json!({"content": [{"type": "text", "text": text}]});
    finish(
        stage,
        &call,
        json!({"jsonrpc": "2.0", "id": call.id, "result": result}),
    );
}

/// One line of so many bytes, then the answer.
fn flood(stage: &Arc<Stage>, call: Call) {
    let mut left = call.number("bytes");
    while left > 0 {
        let piece = left.min(PIECE as u64);
        stage.shout(&vec![b'x'; usize::try_from(piece).unwrap_or(PIECE)]);
        left -= piece;
    }
    stage.shout(b"\n");
    echo(stage, call);
}

/// Everything that is no message, then the answer with a carriage return.
fn noise(stage: &Arc<Stage>, call: Call) {
    for bytes in [
        &b"\xff\xfe\x80 no text\n"[..],
        b"listening on port 3000\n",
        b"\xef\xbb\xbf\n",
        b"\0\0\0\n",
        b"\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\n",
        b"[1,2,3]\n",
        b"\"text\"\n",
    ] {
        stage.shout(bytes);
    }
    stage.take(&call.id);
    stage.shout(format!("{}\r\n", call.answer()).as_bytes());
}

/// Writes invalid UTF-8 to standard error, then responds.
fn murmur(stage: &Arc<Stage>, call: Call) {
    let mut left = call.number("bytes");
    let mut errors = std::io::stderr().lock();
    while left > 0 {
        // Standard error may be closed.
        let _ = errors.write_all(&[0xff; PIECE]);
        left = left.saturating_sub(PIECE as u64);
    }
    echo(stage, call);
}

fn twice(stage: &Arc<Stage>, call: Call) {
    let second = json!({"content": [{"type": "text", "text": "again"}]});
    finish(stage, &call, call.answer());
    stage.say(&json!({"jsonrpc": "2.0", "id": call.id, "result": second}));
}

/// Sends responses without a request, then responds.
fn stranger(stage: &Arc<Stage>, call: Call) {
    let text = json!({"content": [{"type": "text", "text": "stranger"}]});
    for id in [
        json!(987_654_321),
        json!("unknown"),
        json!(-1),
        json!(1.5),
        Value::Null,
    ] {
        stage.say(&json!({"jsonrpc": "2.0", "id": id, "result": text}));
    }
    echo(stage, call);
}

/// The answer under an id of another type, then under the right one.
fn mistyped(stage: &Arc<Stage>, call: Call) {
    let text = json!({"content": [{"type": "text", "text": "mistyped"}]});
    let other = match &call.id {
        Value::String(text) => text.parse::<u64>().map_or(Value::Null, Value::from),
        id => Value::from(id.to_string()),
    };
    stage.say(&json!({"jsonrpc": "2.0", "id": other, "result": text}));
    stage.say(&json!({"jsonrpc": "2.0", "id": [call.id], "result": text}));
    echo(stage, call);
}

/// Responds after a pause, even if the call was cancelled.
fn late(stage: &Arc<Stage>, call: Call) {
    let stage = Arc::clone(stage);
    thread::spawn(move || {
        thread::sleep(call.pause());
        stage.say(&call.answer());
    });
}

/// Sends progress notifications, then responds.
fn progress(stage: &Arc<Stage>, call: Call) {
    let stage = Arc::clone(stage);
    thread::spawn(move || {
        let bytes = usize::try_from(call.number("bytes")).unwrap_or_default();
        let text = format!("{} {}", call.nonce, "x".repeat(bytes));
        for step in 1..=call.number("count") {
            let params =
                json!({"progressToken": call.progress_token, "progress": step, "message": text});
            stage.say(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
            );
        }
        echo(&stage, call);
    });
}

fn changed(stage: &Arc<Stage>, call: Call) {
    stage.say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    echo(stage, call);
}

/// Lines written at a time.
const LINES: usize = 256;

/// Answers, then sends requests and reads nothing.
fn demand(stage: &Arc<Stage>, call: Call) {
    echo(stage, call.clone());
    let method = call.arguments["method"].as_str().unwrap_or("ping");
    let lines: String = (0..LINES)
        .map(|id| {
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "id": id, "method": method})
            )
        })
        .collect();
    shout_for(stage, &call, &lines);
}

/// Answers, then sends notifications of every kind as fast as it can, and serves calls meanwhile.
fn storm(stage: &Arc<Stage>, call: Call) {
    echo(stage, call.clone());
    let kinds = [
        ("progress", json!({"progressToken": 0, "progress": 1})),
        ("message", json!({"level": "info", "data": "x".repeat(80)})),
        ("tools/list_changed", json!({})),
        ("resources/updated", json!({"uri": "storm:it"})),
    ];
    let lines: String = kinds
        .iter()
        .cycle()
        .take(LINES)
        .map(|(name, params)| {
            let method = format!("notifications/{name}");
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "method": method, "params": params})
            )
        })
        .collect();
    let stage = Arc::clone(stage);
    thread::spawn(move || shout_for(&stage, &call, &lines));
}

/// Writes the same lines for as long as the call says.
fn shout_for(stage: &Stage, call: &Call, lines: &str) {
    let begin = Instant::now();
    while begin.elapsed() < call.pause() {
        stage.shout(lines.as_bytes());
    }
}

/// Asks the client for the number of the call, and responds with its answer.
fn ask(stage: &Arc<Stage>, call: Call) {
    let id = Value::from(format!("question-{}", call.nonce));
    stage.keep(&id, &call);
    let schema = json!({"type": "object", "properties": {"nonce": {"type": "string"}}});
    let params = json!({"message": call.nonce.to_string(), "requestedSchema": schema});
    stage.say(
        &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
    );
}

/// Half of the answer, and the end.
fn partial(stage: &Arc<Stage>, call: Call) {
    let answer = call.answer().to_string();
    stage.shout(
        answer
            .get(..answer.len() / 2)
            .unwrap_or_default()
            .as_bytes(),
    );
    std::process::exit(6);
}

/// A result that is written as the argument `json` says, so often, between brackets.
fn raw(stage: &Arc<Stage>, call: Call) {
    let depth = usize::try_from(call.number("depth")).unwrap_or_default();
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"structuredContent":{{"nonce":{},"deep":{nested}}}}}}}"#,
        call.id, call.nonce
    );
    stage.take(&call.id);
    stage.shout(format!("{line}\n").as_bytes());
}
