//! Connection to one server for the duration of a command.

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpact::client::{CallOptions, Client, ClientBuilder, ClientError, TaskOptions};
use mcpact::model::{LogLevel, LogMessage, Root, Tool, ToolResult};
use mcpact_gateway::Target;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use url::Url;

use super::failure::{ClientFailure, Peer};
use super::questions::Questions;
use crate::args::ClientArgs;
use crate::commands::cache::ServerCache;
use crate::commands::shutdown;
use crate::error::{CliError, Exit};
use crate::report::{self, progress::ProgressLine};
use crate::target::{self, ConfiguredServer, ResolvedTarget};

/// Duration that counts as no timeout.
const ENDLESS: Duration = Duration::from_secs(365 * 24 * 3600);

/// Time for the server to end. After it, the guard ends the process.
const CLOSE_LIMIT: Duration = Duration::from_millis(300);

/// Time to cancel a task.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// Levels that are shown without `--log-level`.
const DEFAULT_LEVEL: LogLevel = LogLevel::Warning;

/// Connection to one server.
#[derive(Debug)]
pub(crate) struct Session {
    /// Client of the server.
    pub(crate) client: Client,
    /// Name of the server for output.
    pub(crate) server: String,
    configured: Option<ConfiguredServer>,
    peer: Peer,
    timeout: Duration,
    questions: Arc<Questions>,
    progress: Arc<ProgressLine>,
    /// Running task of a call.
    task: Mutex<Option<String>>,
}

/// Whether the client declares the tasks extension. A server may then answer any call with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tasks {
    Declared,
    Undeclared,
}

/// Connects to the target, runs a command and closes the connection. A signal cancels what is in flight.
///
/// # Errors
/// The target is invalid or unreachable, the command failed, or it was interrupted.
pub(crate) async fn run<T>(
    args: &ClientArgs,
    given: Option<&str>,
    tasks: Tasks,
    command: impl AsyncFnOnce(&Session) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let resolved = target::resolve_named(given, &args.connect).await?;
    let (failed, mut failures) = mpsc::channel(1);
    let mut interrupted = pin!(shutdown::signal());
    let session = tokio::select! {
        session = Session::open(args, resolved, tasks, failed) => session?,
        () = &mut interrupted => return Err(ClientFailure::Interrupted.into()),
    };
    let outcome = tokio::select! {
        biased;
        Some(failure) = failures.recv() => Err(failure.into()),
        outcome = command(&session) => outcome,
        () = &mut interrupted => Err(ClientFailure::Interrupted.into()),
    };
    // The cause of a failure takes precedence over the failure of the request.
    let outcome = match failures.try_recv() {
        Ok(failure) => Err(failure.into()),
        Err(_) => outcome,
    };
    session.progress.finish();
    if outcome.is_err() {
        session.cancel_task().await;
    }
    // Dropping a request has queued its cancellation.
    let _ = tokio::time::timeout(CLOSE_LIMIT, session.client.clone().close()).await;
    session.questions.end();
    outcome
}

impl Session {
    async fn open(
        args: &ClientArgs,
        resolved: ResolvedTarget,
        tasks: Tasks,
        failed: mpsc::Sender<ClientFailure>,
    ) -> Result<Self, CliError> {
        let ResolvedTarget {
            label,
            target,
            masks,
            era,
            configured,
        } = resolved;
        let peer = Peer {
            label: label.clone(),
            is_configured: configured.is_some(),
            masks,
        };
        let timeout = match args.timeout {
            0 => ENDLESS,
            seconds => Duration::from_secs(seconds.into()),
        };
        let progress = Arc::<ProgressLine>::default();
        let answers = args.answer.as_deref();
        let questions = Questions::new(&label, answers, Arc::clone(&progress), failed)?;
        let questions = Arc::new(questions);
        let builder = Client::builder("mcpact", env!("CARGO_PKG_VERSION"))
            .mode(era)
            .era_cache(ServerCache::open(false).verdicts)
            .timeout(ENDLESS);
        let builder = match tasks {
            Tasks::Declared => builder.tasks(),
            Tasks::Undeclared => builder,
        };
        let builder = with_questions(builder, &questions);
        let builder = with_log(builder, args.log_level, &questions, &progress);
        let builder = match args.root.as_slice() {
            [] => builder,
            folders => builder.roots(
                folders
                    .iter()
                    .map(|path| root(path))
                    .collect::<Result<_, _>>()?,
            ),
        };
        let connecting = connect(builder, target);
        let connected = tokio::time::timeout(timeout, connecting).await;
        let client = connected
            .map_err(|_| timed_out(&label, timeout))?
            .map_err(|error| peer.failure(&error))?;
        Ok(Self {
            client,
            server: label,
            configured,
            peer,
            timeout,
            questions,
            progress,
            task: Mutex::new(None),
        })
    }

    /// Awaits a request. Progress restarts the timeout, and questions to the user stop it.
    pub(crate) async fn wait<T>(
        &self,
        request: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientFailure> {
        let mut request = pin!(request);
        let mut open = self.questions.watch();
        loop {
            let is_open = *open.borrow_and_update() > 0;
            tokio::select! {
                outcome = &mut request => {
                    return outcome.map_err(|error| self.peer.failure(&error));
                }
                Ok(()) = open.changed() => {}
                () = tokio::time::sleep(self.timeout), if !is_open => {
                    return Err(timed_out(&self.server, self.timeout));
                }
            }
        }
    }

    /// Returns the tools, without those that the config hides.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, ClientFailure> {
        let mut tools = self.wait(self.client.list_tools()).await?.items;
        if let Some(server) = &self.configured {
            tools.retain(|tool| server.config.tools.admits(&tool.name));
        }
        Ok(tools)
    }

    /// Calls a tool and shows its progress.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolResult, ClientFailure> {
        let (progress, questions) = (Arc::clone(&self.progress), Arc::clone(&self.questions));
        let options = CallOptions::new().on_progress(move |update| {
            questions.touch();
            progress.update(&update);
        });
        let arguments = Value::Object(arguments);
        let call = self.client.call_tool_with(tool, arguments, options);
        self.wait(call).await
    }

    /// Calls a tool as a task, and waits for its result.
    pub(crate) async fn call_as_task(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolResult, ClientFailure> {
        let options = TaskOptions::new();
        let arguments = Value::Object(arguments);
        let call = self.client.call_tool_as_task(tool, arguments, options);
        let call = self.wait(call).await?;
        if let Some(task) = call.task() {
            report::eprint(&report::tasks::started(&task.task_id));
            *self.lock_task() = Some(task.task_id.clone());
        }
        // A task has no timeout: it may run for hours.
        let result = call.result().await;
        let result = result.map_err(|error| self.peer.failure(&error))?;
        *self.lock_task() = None;
        Ok(result)
    }

    /// Sends a request and returns its raw result.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Value, ClientFailure> {
        let params = params.to_string();
        let raw = self
            .wait(self.client.request(method, Some(&params)))
            .await?;
        serde_json::from_str(&raw).map_err(|source| self.unreadable(method, source))
    }

    /// Parses a result.
    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        method: &str,
        result: Value,
    ) -> Result<T, ClientFailure> {
        serde_json::from_value(result).map_err(|source| self.unreadable(method, source))
    }

    fn unreadable(&self, method: &str, source: serde_json::Error) -> ClientFailure {
        let method = method.to_owned();
        self.peer
            .failure(&ClientError::Unreadable { method, source })
    }

    /// Error for a task that ended without a result.
    pub(crate) fn task_failed(&self, id: &str, status: &str, message: &str) -> ClientFailure {
        let message = format!("task `{id}` {status}: {message}");
        ClientFailure::Request {
            message: self.peer.masks.cover(message),
            hints: Vec::new(),
            exit: Exit::Tool,
        }
    }

    /// Removes the progress line.
    pub(crate) fn finish_progress(&self) {
        self.progress.finish();
    }

    /// Error for an unknown item of the server.
    pub(crate) fn not_found(
        &self,
        what: &'static str,
        given: &str,
        known: Vec<String>,
    ) -> ClientFailure {
        ClientFailure::NotFound {
            server: self.server.clone(),
            what,
            given: given.to_owned(),
            known,
        }
    }

    async fn cancel_task(&self) {
        let Some(id) = self.lock_task().take() else {
            return;
        };
        let params = json!({ "taskId": id }).to_string();
        let cancelling = self.client.request("tasks/cancel", Some(&params));
        match tokio::time::timeout(CANCEL_LIMIT, cancelling).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot cancel the task"),
            Err(_) => tracing::debug!("the server did not confirm the cancellation of the task"),
        }
    }

    fn lock_task(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn timed_out(server: &str, timeout: Duration) -> ClientFailure {
    ClientFailure::TimedOut {
        server: server.to_owned(),
        seconds: timeout.as_secs(),
    }
}

async fn connect(builder: ClientBuilder, target: Target) -> Result<Client, ClientError> {
    match target {
        Target::Command(command) => builder.connect(*command).await,
        Target::Url { url, settings } => builder.http(*settings).connect(url).await,
        Target::Local(local) => builder.connect((local.0)()).await,
    }
}

fn with_questions(builder: ClientBuilder, questions: &Arc<Questions>) -> ClientBuilder {
    let (forms, urls) = (Arc::clone(questions), Arc::clone(questions));
    builder
        .on_elicitation(move |form| Arc::clone(&forms).form(form))
        .on_url_elicitation(move |request| Arc::clone(&urls).url(request))
}

/// Shows log messages of the server on stderr.
fn with_log(
    builder: ClientBuilder,
    level: Option<LogLevel>,
    questions: &Arc<Questions>,
    progress: &Arc<ProgressLine>,
) -> ClientBuilder {
    let (questions, progress) = (Arc::clone(questions), Arc::clone(progress));
    let least = level.unwrap_or(DEFAULT_LEVEL);
    let builder = builder.on_notification(move |note| {
        questions.touch();
        if note.method != "notifications/message" {
            return;
        }
        match note.read::<LogMessage>() {
            Ok(message) if is_at_least(message.level, least) => {
                progress.suspend(|| report::eprint(&report::content::log_line(&message)));
            }
            Ok(_) | Err(_) => {}
        }
    });
    match level {
        Some(level) => builder.log_level(level),
        None => builder,
    }
}

fn is_at_least(level: LogLevel, least: LogLevel) -> bool {
    let rank = |level: LogLevel| LogLevel::ALL.iter().position(|one| *one == level);
    rank(level) >= rank(least)
}

fn root(folder: &Path) -> Result<Root, ClientFailure> {
    let real = folder.canonicalize().ok().filter(|path| path.is_dir());
    let url = real
        .as_deref()
        .and_then(|path| Url::from_file_path(path).ok());
    let url = url.ok_or_else(|| ClientFailure::NotAFolder(folder.to_owned()))?;
    let name = real.as_deref().and_then(|path| path.file_name());
    let root = Root::new(url);
    Ok(match name {
        Some(name) => root.name(name.to_string_lossy()),
        None => root,
    })
}
