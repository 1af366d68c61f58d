//! Servers, and runs of the program.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mcpact_sim::scripted::process::TestProcess;
use serde_json::Value;

pub(crate) const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// The program with its state in a folder.
pub(crate) fn mcpact(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(MCPACT);
    command
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("MCPACT", MCPACT)
        .env("SERVER", MCPACT)
        .env("D", folder)
        .stdin(Stdio::null());
    command
}

/// Result of a run: exit code, stdout and stderr.
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Seen {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code().unwrap(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .map_err(|_| format!("{} {}", self.stdout, self.stderr))
            .unwrap()
    }

    /// Returns the strings at a key of each element of a list.
    pub(crate) fn texts(&self, list: &str, key: &str) -> Vec<String> {
        let json = self.json();
        let all = json[list].as_array().unwrap().iter();
        all.map(|one| one[key].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns exit code, stdout and stderr as one text, without times and ports.
    pub(crate) fn shown(&self) -> String {
        let text = format!(
            "exit code {}\n--- stdout\n{}--- stderr\n{}",
            self.code, self.stdout, self.stderr
        );
        without_times(&text)
    }
}

/// Replaces times and ports.
pub(crate) fn without_times(text: &str) -> String {
    let mut out = Vec::new();
    for line in text.replace("less than 1 ms", "1 ms").split('\n') {
        let words: Vec<&str> = line.split(' ').collect();
        let shown: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(at, word)| {
                let is_time = word.parse::<u64>().is_ok()
                    && words.get(at + 1).is_some_and(|unit| unit.starts_with("ms"));
                match word.split_once("127.0.0.1:") {
                    _ if is_time => String::from("N"),
                    Some((before, after)) => {
                        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                        format!("{before}127.0.0.1:PORT{rest}")
                    }
                    None => (*word).to_owned(),
                }
            })
            .collect();
        out.push(shown.join(" "));
    }
    out.join("\n")
}

pub(crate) fn run_in(args: &[&str], folder: &Path) -> Seen {
    Seen::of(&mcpact(args, folder).output().unwrap())
}

pub(crate) fn run(args: &[&str]) -> Seen {
    run_in(args, tempfile::tempdir().unwrap().path())
}

/// Runs `probe --json`.
pub(crate) fn probe(args: &[&str]) -> Seen {
    let args: Vec<&str> = ["probe", "--json"].iter().chain(args).copied().collect();
    run(&args)
}

/// Starts the reference server on HTTP and returns it with its URL.
pub(crate) fn everything(args: &[&str]) -> (TestProcess, String) {
    let mut command = Command::new(MCPACT);
    command
        .args(["everything", "--listen", "127.0.0.1:0"])
        .args(args)
        .stderr(Stdio::null());
    TestProcess::listening(&mut command)
}

/// Serves HTTP responses that depend on the method of the message; one request per connection.
pub(crate) fn http_server(respond: fn(&str) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut chunk = [0; 8192];
            while !is_complete(&request) {
                match stream.read(&mut chunk) {
                    Ok(count) if count > 0 => request.extend_from_slice(&chunk[..count]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let _ = stream.write_all(respond(&request).as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.unwrap_or(0)
}

/// Formats an HTTP response.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
