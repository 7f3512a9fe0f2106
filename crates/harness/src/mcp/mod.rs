//! `harness mcp`: the command tools as a server of the Model Context Protocol, on standard input and output.
//!
//! What a tool is and does stands in [`crate::tools`], and what is decided in [`crate::gate`]. Here is only the protocol:
//! which project the client means, how its person is asked, progress, cancellation and the end.

mod ask;
mod lines;
mod project;
mod roots;
mod tell;

pub use project::OpenError;

use crate::config::{self, Overrides, UserDirs};
use crate::session::{RunOptions, Session};
use crate::store::Store;
use crate::tools::{ExecutionMode, SERVED, ToolReply, ToolSpec, Toolbox};
use ask::{Asker, Call, LONGEST_ASKED, Waiting, Way};
use lines::Lines;
use project::Project;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CustomRequest,
    CustomResult, ElicitRequest, ElicitResult, ErrorCode, ErrorData, Implementation, InputRequest,
    InputRequiredResult, InputResponses, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tell::tell;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio_util::task::AbortOnDropHandle;

/// As many calls are worked on at once; others wait.
const MOST_CALLS: u32 = 64;
/// How long what still runs at the end may take to be killed and recorded.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(1);

const INSTRUCTIONS: &str = "Commands are judged before they run. shell_read runs what is known to only read; \
    shell_run follows the whole policy and may ask a person; exec takes an argument list and no shell. shell_check says \
    what would happen. A refused command stays refused: do not look for another spelling.";

/// What the command line sets.
#[derive(Debug, Clone)]
pub struct Config {
    /// The project, where it was named: the client's roots count nothing then.
    pub root: Option<PathBuf>,
    /// The project of a client that names none.
    pub fallback: PathBuf,
    /// What else was set.
    pub overrides: Overrides,
    /// The user's directories.
    pub dirs: UserDirs,
    /// The same settings in the form in which a kept question stores them.
    pub options: Value,
    /// How long a person may take to answer.
    pub answer_timeout: Duration,
}

/// Why the server ended before its client did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The project that was named cannot be worked in.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The client did not begin as the protocol says.
    #[error("the client did not begin as the protocol says: {0}")]
    Handshake(String),
    /// The signals that end the server cannot be listened to.
    #[error("no signals: {0}")]
    Signals(#[from] std::io::Error),
}

/// Serves one client on standard input and output until it is gone, or until a signal ends this process. Nothing that was
/// started runs on after that.
///
/// # Errors
///
/// When the project that was named cannot be used, or the client does not speak the protocol.
pub async fn serve(config: Config, store: Store) -> Result<(), ServeError> {
    let server = Server::new(config, store);
    if let Some(root) = &server.0.config.root {
        // What is wrong with it is said at once, and not at the first call.
        let project =
            Project::open(root, &server.0.config.dirs, &server.0.config.overrides, &server.0.store)?;
        *server.0.current.lock().await = Some(Arc::new(project));
    }
    let ended = cmdgate_executor::CancellationToken::new();
    end_by_signal(ended.clone())?;
    let transport = Lines::new(tokio::io::stdin(), tokio::io::stdout());
    let served = match Box::pin(server.clone().serve_with_ct(transport, ended)).await {
        Ok(running) => {
            running.waiting().await.map(|_| ()).map_err(|error| ServeError::Handshake(error.to_string()))
        }
        // A client that came and went.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(ServeError::Handshake(error.to_string())),
    };
    server.0.end().await;
    tell::flush();
    served
}

/// A signal that ends a process ends the server in order.
fn end_by_signal(ended: cmdgate_executor::CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        ended.cancel();
    });
    Ok(())
}

/// The server; clones are the same one.
#[derive(Debug, Clone)]
struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    store: Store,
    /// The project of the last call.
    current: Mutex<Option<Arc<Project>>>,
    /// The client has other roots now.
    stale: AtomicBool,
    /// Tools whose calls may not overlap.
    turn: Mutex<()>,
    running: Semaphore,
    waiting: Waiting,
}

/// Where a call is to happen.
enum Place {
    Project(Arc<Project>),
    /// The client has to say its roots and call again.
    AskRoots,
}

impl Server {
    fn new(config: Config, store: Store) -> Self {
        Self(Arc::new(Inner {
            config,
            store,
            current: Mutex::default(),
            stale: AtomicBool::new(false),
            turn: Mutex::new(()),
            running: Semaphore::new(MOST_CALLS as usize),
            waiting: Waiting::default(),
        }))
    }
}

impl Inner {
    /// The project of this call. A client's root that changed makes another one, and ends what ran in the old one.
    async fn place(
        &self,
        context: &RequestContext<RoleServer>,
        capabilities: &ClientCapabilities,
        responses: Option<&InputResponses>,
    ) -> Result<Place, ToolReply> {
        let mut current = self.current.lock().await;
        let stale = self.stale.load(Ordering::Relaxed) && self.config.root.is_none();
        if let Some(project) = current.as_ref().filter(|_| !stale) {
            return Ok(Place::Project(project.clone()));
        }
        let refuse =
            |error: &dyn std::fmt::Display| ToolReply::failed("NO_PROJECT", format!("NO_PROJECT: {error}"));
        let named = match (&self.config.root, &capabilities.roots) {
            (Some(root), _) => Some(root.clone()),
            (None, None) => None,
            (None, Some(_)) => {
                self.stale.store(false, Ordering::Relaxed);
                let project = if is_modern(context) {
                    match responses.and_then(|responses| responses.get("roots")) {
                        Some(answer) => roots::answered(answer),
                        None => return Ok(Place::AskRoots),
                    }
                } else {
                    roots::asked(context).await
                };
                project.map_err(|error| {
                    // The next call asks again.
                    self.stale.store(true, Ordering::Relaxed);
                    refuse(&error)
                })?
            }
        };
        let root = match named {
            Some(root) => root,
            None => {
                roots::usable("working directory", &self.config.fallback).map_err(|error| refuse(&error))?
            }
        };
        if let Some(project) = current.as_ref().filter(|project| project.session.gate().root() == root) {
            return Ok(Place::Project(project.clone()));
        }
        if let Some(old) = current.take() {
            tell(&format!("the project is {} now", root.display()));
            old.end(&self.store).await;
        }
        let project = Project::open(&root, &self.config.dirs, &self.config.overrides, &self.store)
            .map_err(|error| refuse(&error))?;
        let project = Arc::new(project);
        *current = Some(project.clone());
        Ok(Place::Project(project))
    }

    /// The settings without a project's own; none where they cannot be used, which the first call will say.
    fn provisional(&self) -> Option<Session> {
        let root = self.config.root.as_ref().unwrap_or(&self.config.fallback);
        let loaded = config::load(root, &self.config.dirs, &self.config.overrides).ok()?;
        Session::new(root, loaded).ok()
    }

    /// Waits for what still runs, which is being killed by now, and ends the run.
    async fn end(&self) {
        if tokio::time::timeout(END_TIMEOUT, self.running.acquire_many(MOST_CALLS)).await.is_err() {
            tell("some calls did not end in time; their commands are killed");
        }
        if let Some(project) = self.current.lock().await.take() {
            project.end(&self.store).await;
        }
    }

    async fn call(
        &self,
        tool: &'static ToolSpec,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        asking: &AtomicBool,
    ) -> Result<CallToolResponse, ErrorData> {
        let _turn = match tool.execution {
            ExecutionMode::Sequential => Some(unless_cancelled(context, self.turn.lock()).await?),
            ExecutionMode::Parallel => None,
        };
        let capabilities = context.client_capabilities().unwrap_or_default();
        let place = self.place(context, &capabilities, request.input_responses.as_ref()).await;
        let project = match place {
            Ok(Place::Project(project)) => project,
            Ok(Place::AskRoots) => {
                let requests = BTreeMap::from([("roots".to_owned(), roots::question())]);
                return Ok(InputRequiredResult::from_input_requests(requests).into());
            }
            Err(reply) => return Ok(result_of(reply).into()),
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let mut kept = self.config.options.clone();
        if let (Some(kept), Some(timeout)) = (kept.as_object_mut(), arguments.get("timeoutMs")) {
            kept.insert("timeout_ms".to_owned(), timeout.clone());
        }
        let arguments = arguments.to_string();
        let call = Call { tool: tool.name.to_owned(), arguments, run: project.run };
        let way = match request.request_state {
            Some(name) => {
                let Some(form) = self.waiting.take(&name, &call) else {
                    return Err(ErrorData::invalid_params(
                        "requestState: it was not given for this very call, was used before or is too old; call again without it",
                        None,
                    ));
                };
                let answered =
                    request.input_responses.as_ref().and_then(|responses| responses.get("approve"));
                let answered =
                    answered.and_then(|value| serde_json::from_value::<ElicitResult>(value.clone()).ok());
                Way::Given(match answered {
                    Some(result) => form.answer(&result),
                    None => crate::approve::Answer::Deny { reason: "the person was not asked".to_owned() },
                })
            }
            None if call.arguments.len() > LONGEST_ASKED || !ask::has_forms(&capabilities) => Way::Nobody,
            None if is_modern(context) => Way::Later,
            None => Way::Elicit,
        };
        let keeps = !matches!(way, Way::Later);
        let asker = Asker::new(context, &project.session, way, self.config.answer_timeout, asking);
        let mut recorder = match self.store.reopen_in(project.run, &project.session) {
            Ok(recorder) => recorder,
            Err(error) => {
                let reply = ToolReply::failed("EXECUTION_ERROR", format!("EXECUTION_ERROR: {error}"));
                return Ok(result_of(reply).into());
            }
        };
        if keeps {
            recorder = recorder.keeping_questions(kept);
        }
        let options = RunOptions { cancel: Some(context.ct.clone()), ..RunOptions::default() };
        let toolbox = Toolbox::new(&project.session, &asker, &recorder, options)
            .offering(SERVED)
            .sharing(project.backgrounds.clone());
        let reply = toolbox.call(tool.name, &call.arguments).await;
        drop(toolbox);
        let Some(form) = asker.later() else { return Ok(result_of(reply).into()) };
        let params = form.params();
        let name = self
            .waiting
            .add(call, form, Instant::now() + self.config.answer_timeout)
            .map_err(|error| ErrorData::internal_error(format!("no random name: {error}"), None))?;
        let form = InputRequest::Elicitation(ElicitRequest::new(params));
        Ok(InputRequiredResult::new(Some(BTreeMap::from([("approve".to_owned(), form)])), Some(name)).into())
    }
}

/// Whether the request is of a revision in which a server sends no requests.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    // Revisions are dates, and are ordered as texts.
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Waits, but not when the call is cancelled.
async fn unless_cancelled<T>(
    context: &RequestContext<RoleServer>,
    waited: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    tokio::select! {
        biased;
        () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        value = waited => Ok(value),
    }
}

/// Tells the client every second that the call is still worked on, until the handle is dropped.
fn tell_progress(
    context: &RequestContext<RoleServer>,
    asking: Arc<AtomicBool>,
) -> Option<AbortOnDropHandle<()>> {
    let token = context.meta.get_progress_token()?;
    let peer = context.peer.clone();
    // A task of its own: a client that does not read must not keep the command's time from running out.
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        let begun = Instant::now();
        let mut tick = tokio::time::interval(PROGRESS);
        tick.tick().await;
        loop {
            tick.tick().await;
            let seconds = begun.elapsed().as_secs();
            let doing = if asking.load(Ordering::Relaxed) { "waiting for an answer" } else { "running" };
            let params = ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64())
                .with_message(format!("{doing}, {seconds} s"));
            if peer.notify_progress(params).await.is_err() {
                return;
            }
        }
    })))
}

fn result_of(reply: ToolReply) -> CallToolResult {
    let content = vec![ContentBlock::text(reply.text)];
    let mut result =
        if reply.code.is_some() { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = reply.structured;
    result
}

/// The tool as the client gets it, with the bounds of a session, where there is one.
fn tool_of(spec: &ToolSpec, session: Option<&Session>) -> Tool {
    let object = |value: Value| match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    };
    let annotations = ToolAnnotations::new()
        .read_only(spec.annotations.read_only)
        .destructive(spec.annotations.destructive)
        .idempotent(spec.annotations.idempotent)
        .open_world(spec.annotations.open_world);
    let parameters = session.map_or_else(|| spec.parameters(), |session| spec.parameters_in(session));
    let mut tool = Tool::new(spec.name, spec.description, object(parameters)).with_annotations(annotations);
    tool.output_schema = spec.output().map(|schema| Arc::new(object(schema)));
    tool
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("cmdgate", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Whoever is being asked about its roots, say, has it for a while.
        let open = self.0.current.try_lock().ok().and_then(|current| current.clone());
        // Before the first call the client has not said which folder is the project.
        let provisional = if open.is_some() { None } else { self.0.provisional() };
        let session = open.as_ref().map(|project| &project.session).or(provisional.as_ref());
        Ok(ListToolsResult::with_all_items(SERVED.iter().map(|spec| tool_of(spec, session)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = SERVED.iter().find(|tool| tool.name == request.name) else {
            let name: String = request.name.chars().take(64).collect();
            let known: Vec<&str> = SERVED.iter().map(|tool| tool.name).collect();
            let message = format!("there is no tool `{name}`; there are {}", known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let closed = |_| ErrorData::internal_error("the server is ending", None);
        let _permit: SemaphorePermit<'_> =
            unless_cancelled(&context, self.0.running.acquire()).await?.map_err(closed)?;
        let asking = Arc::new(AtomicBool::new(false));
        let _progress = tell_progress(&context, asking.clone());
        self.0.call(tool, request, &context, &asking).await
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.0.stale.store(true, Ordering::Relaxed);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A request of the protocol comes here when its parameters are not what the protocol says.
        let known = ["initialize", "ping", "server/discover", "tools/call", "tools/list"];
        let method: String = request.method.chars().take(64).collect();
        if known.contains(&method.as_str()) {
            let message = format!("the parameters of {method} are not as the protocol says");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None))
    }
}
