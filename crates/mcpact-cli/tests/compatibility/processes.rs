//! Processes of a pair: a server of one revision, and a bridge in front of it.

use std::process::{Command, Stdio};

use mcpact::client::{ChildCommand, Client, EraMode, Method, Notification, Target};
use mcpact::model::{
    Content, CreateMessageRequest, CreateMessageResult, ElicitResult, FormRequest, LogMessage,
    Root, UrlRequest,
};
use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::Revision;
use serde_json::{Map, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc};

use crate::Pair;

/// The binary under test.
const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// Page size of the server.
const PAGE_SIZE: &str = "10";

/// Transport of one side of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    /// The endpoint of all servers of a gateway, with flat names.
    Gateway,
}

impl Transport {
    /// Transports of both sides of the bridge, and of a gateway that starts the server.
    pub(crate) const PAIRS: [(Self, Self); 5] = [
        (Self::Stdio, Self::Stdio),
        (Self::Stdio, Self::Http),
        (Self::Http, Self::Stdio),
        (Self::Http, Self::Http),
        (Self::Gateway, Self::Stdio),
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
            Self::Gateway => "`/mcp`",
        }
    }
}

/// A running pair with a connected client.
pub(crate) struct Running {
    pub(crate) client: Client,
    /// Received log messages.
    pub(crate) logged: Mutex<mpsc::UnboundedReceiver<LogMessage>>,
    _listening: Vec<TestProcess>,
    _cache: TempDir,
}

impl Running {
    pub(crate) async fn start(pair: Pair) -> Self {
        let cache = tempfile::tempdir().unwrap();
        let mut listening = Vec::new();
        let server = words(&[
            "everything",
            "--page-size",
            PAGE_SIZE,
            "--revisions",
            pair.server.as_str(),
        ]);
        let target = match pair.back {
            Transport::Stdio => [words(&["--", MCPACT]), server].concat(),
            Transport::Http | Transport::Gateway => {
                vec![listen(&server, &cache, &mut listening)]
            }
        };
        let config = cache.path().join("mcpact.toml");
        let args = words(&[
            "--page-size",
            PAGE_SIZE,
            "--revisions",
            pair.server.as_str(),
        ]);
        let text = format!(
            "[gateway]\nnames = \"flat\"\n[servers.everything]\ncommand = {MCPACT:?}\nargs = {:?}\n",
            [words(&["everything"]), args].concat()
        );
        std::fs::write(&config, text).unwrap();
        let gateway = words(&["serve", "--config", &config.to_string_lossy()]);
        let bridge = [words(&["bridge"]), target].concat();
        let front: Target = match pair.front {
            Transport::Stdio => ChildCommand::new(MCPACT)
                .with_args(bridge)
                .with_env("XDG_CACHE_HOME", cache.path())
                .into(),
            Transport::Http => Target::Url(listen(&bridge, &cache, &mut listening)),
            Transport::Gateway => Target::Url(listen(&gateway, &cache, &mut listening)),
        };
        let (log, logged) = mpsc::unbounded_channel();
        let client = client(pair.client, log).connect(front).await;
        Self {
            client: client.unwrap_or_else(|error| panic!("{pair:?}: {error:?}")),
            logged: Mutex::new(logged),
            _listening: listening,
            _cache: cache,
        }
    }

    pub(crate) async fn close(self) {
        self.client.close().await;
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Starts a listening program and returns its URL.
fn listen(words: &[String], cache: &TempDir, listening: &mut Vec<TestProcess>) -> String {
    let (verb, rest) = words.split_first().unwrap();
    let mut command = Command::new(MCPACT);
    command
        .args([verb.as_str(), "--listen", "127.0.0.1:0"])
        .args(rest)
        .env("XDG_CACHE_HOME", cache.path())
        .env("XDG_RUNTIME_DIR", cache.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let (process, url) = TestProcess::listening(&mut command);
    listening.push(process);
    url
}

/// A client of a single revision with every capability.
fn client(
    revision: Revision,
    log: mpsc::UnboundedSender<LogMessage>,
) -> mcpact::client::ClientBuilder {
    Client::builder("compatibility", "1")
        .mode(EraMode::Pin(revision))
        .on_elicitation(|_: FormRequest| async {
            let filled_in = json!({"username": "Ada", "email": "ada@example.org"});
            let filled_in: Map<_, _> = serde_json::from_value(filled_in).unwrap_or_default();
            Ok(ElicitResult::accept(filled_in))
        })
        .on_url_elicitation(|_: UrlRequest| async { Ok(ElicitResult::accept(Map::new())) })
        .on_sampling(|_: CreateMessageRequest| async {
            Ok(CreateMessageResult::new("a model", Content::text("Paris")))
        })
        .roots(vec![Root::new("file:///home/ada")])
        .tasks()
        .on_notification(move |note: &Notification| {
            if note.method == Method::LoggingMessage.as_str()
                && let Ok(message) = note.read()
            {
                // The receiver is dropped when the pair ends.
                let _ = log.send(message);
            }
        })
}
