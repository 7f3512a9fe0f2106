//! `harness run` and `harness exec`: decide, run in the sandbox, present, record.

use super::decide::DecideArgs;
use super::out::{self, say};
use super::progress::Progress;
use crate::approve::pending::Pending;
use crate::approve::{AnswerFuture, ApproveAll, Approver, DeferAll, Question, TerminalApprover};
use crate::config::UserDirs;
use crate::exit::Exit;
use crate::gate::{Action, Request};
use crate::hook::code::Answered;
use crate::session::{Reply, RunOptions, Session};
use crate::store::{RunRecorder, Store};
use crate::tools::Toolbox;
use crate::{advice, diagnose, present, wire, words};
use cmdgate_executor::{CancellationToken, ExecError, NetworkEnforced, NotStarted, Outcome};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest time that a shell command may ask for, in milliseconds (contract S1). The longest is the session's.
const SHORTEST: u64 = 1_000;
/// A list of commands longer than this, in bytes, is not read.
const LONGEST_LIST: u64 = 4 * 1024 * 1024;

/// Decide about a shell command and run it in the sandbox
///
/// Exit status: the command's own; 124 timeout, 125 the harness or sandbox failed, 126 denied or approval needed, 127 not
/// found, 2 usage, 3 a policy file is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness run -- 'git log --oneline | head -5'\n  \
    harness run --sandbox workspace_write --approval never --timeout-ms 60000 -- 'npm test'\n  \
    harness run --profile hardened --each commands.txt")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    common: Common,
    /// Time for the command, 1000 to 60000 milliseconds, up to 900000 under the hardened profile [default: 10000, or
    /// 900000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    timeout_ms: Option<u64>,
    /// Run the commands of a file, one a line, in order; `-` is standard input. Blank lines and those that begin with
    /// `#` are left out. Where the
    /// profile or a policy sets `stop_at_first_failure`, a command that is refused or ends with another code than 0
    /// ends the list. The exit status is that of the last command that failed
    #[arg(long, value_name = "FILE", conflicts_with = "command", conflicts_with = "passthrough")]
    each: Option<PathBuf>,
    /// Go on with the list after a failure
    #[arg(long, requires = "each", conflicts_with = "command")]
    keep_going: bool,
    /// The command, as one argument
    #[arg(last = true, required_unless_present = "each", value_name = "COMMAND")]
    command: Option<String>,
}

/// Decide about a program with its arguments and run it in the sandbox; no shell anywhere
///
/// Exit status: as `harness run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness exec -- wc -l 'a file; with && odd $(name).txt'\n  \
    harness exec --sandbox workspace_write --approval never -- cargo test")]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    common: Common,
    /// Time for the program in milliseconds [default: 900000]
    #[arg(long, value_name = "N")]
    timeout_ms: Option<NonZeroU64>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM ARGS")]
    argv: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    decide: DecideArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Behave as the command itself would: its input is this program's, its output comes as it is, without the frame, and
    /// neither it nor, without --timeout-ms, the time is bounded. For callers that end it themselves
    #[arg(long, conflicts_with = "json")]
    passthrough: bool,
    /// The agent has asked a person about this command: what a hook with `--contain` adds
    #[arg(long, value_name = "PERMIT", hide = true, requires = "passthrough")]
    answered: Option<String>,
    /// Keep the whole output in this directory when it does not fit
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
}

pub(crate) fn run(args: RunArgs) -> Exit {
    let tasks = match (args.command, &args.each) {
        (Some(command), _) if command.trim().is_empty() => {
            return super::fail(
                Exit::Usage,
                "VALIDATION_ERROR: the command is empty: write it between quotes, as in `harness run -- 'git status'`",
            );
        }
        (Some(command), _) => vec![Task { place: None, request: Request::shell(command) }],
        (None, Some(list)) => match commands_of(list) {
            Ok(commands) => tasks_of(list, &commands),
            Err(error) => {
                return super::fail(Exit::Usage, format_args!("cannot read {}: {error}", list.display()));
            }
        },
        (None, None) => Vec::new(),
    };
    perform(&args.common, args.timeout_ms, tasks, args.keep_going)
}

pub(crate) fn exec(args: ExecArgs) -> Exit {
    let task = Task { place: None, request: Request::exec(args.argv) };
    perform(&args.common, args.timeout_ms.map(NonZeroU64::get), vec![task], false)
}

/// A command to run.
struct Task {
    /// The file and line it stands in, where it comes from a list.
    place: Option<String>,
    request: Request,
}

/// The commands of a list: its lines, but for blank ones and comments.
fn tasks_of(list: &Path, text: &str) -> Vec<Task> {
    let name = if list == Path::new("-") { "standard input".to_owned() } else { list.display().to_string() };
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(at, line)| Task { place: Some(format!("{name}:{}", at + 1)), request: Request::shell(line) })
        .collect()
}

/// The text of a list of commands.
fn commands_of(list: &Path) -> io::Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> =
        if list == Path::new("-") { Box::new(io::stdin()) } else { Box::new(std::fs::File::open(list)?) };
    if source.take(LONGEST_LIST + 1).read_to_string(&mut text)? as u64 > LONGEST_LIST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("a list has at most {LONGEST_LIST} bytes"),
        ));
    }
    Ok(text)
}

fn perform(args: &Common, timeout: Option<u64>, mut tasks: Vec<Task>, keep_going: bool) -> Exit {
    let session = match args.decide.recorded_in(args.trace.as_ref()).session(None) {
        Ok(session) => session,
        Err(exit) => return exit,
    };
    let most = session.shell_ceiling().as_millis();
    let shell = tasks.iter().any(|task| matches!(task.request.action, Action::Shell(_)));
    if let Some(millis) = timeout.filter(|&millis| shell && (millis < SHORTEST || u128::from(millis) > most))
    {
        return super::fail(
            Exit::Usage,
            format_args!("--timeout-ms {millis}: a command may run {SHORTEST} to {most} milliseconds here"),
        );
    }
    let timeout = timeout.map(Duration::from_millis);
    for task in &mut tasks {
        task.request.workdir = args.decide.workdir(&session);
    }
    let store = match open_store(args.trace.as_ref()) {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let recorder = match begin(&store, None, &session) {
        Ok(recorder) => recorder,
        Err(exit) => return exit,
    };
    let recorder = recorder.keeping_questions(super::approvals::options(&args.decide, timeout));
    let way = Way {
        timeout,
        spill: args.spill.clone(),
        json: args.json,
        passthrough: args.passthrough,
        stops: session.gate().settings().stop_at_first_failure == Some(true) && !keep_going,
    };
    // Contract P7, S17: the person at the terminal is asked; where there is none, the question is kept.
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if let Some(permit) = &args.answered {
        let gate = session.gate();
        let (sandbox, root) = (gate.mode().as_str(), gate.root().to_path_buf());
        let approver = Answered { permit: permit.clone(), sandbox, root };
        perform_by(&session, &recorder, tasks, &way, &approver)
    } else if terminal {
        let gate = session.gate();
        let approver = TerminalApprover::new(gate.policy(), gate.settings());
        perform_by(&session, &recorder, tasks, &way, &approver)
    } else {
        perform_by(&session, &recorder, tasks, &way, &DeferAll)
    }
}

/// Begins the run of a command, and says what the retention of the settings removed.
fn begin<'s>(store: &'s Store, goal: Option<String>, session: &Session) -> Result<RunRecorder<'s>, Exit> {
    let recorder =
        store.begin_in("command", goal, session).map_err(|error| super::fail(Exit::Failed, error))?;
    if let Some(text) = recorder.pruned() {
        say!("harness: {text}");
    }
    Ok(recorder)
}

/// Runs what was approved later on (contract P9): it is decided again, and a deny holds.
pub(crate) fn resume(store: &Store, session: &Session, pending: &Pending, json: bool) -> Exit {
    let goal = format!("approval {} of run {}", pending.id, pending.run);
    let recorder = match begin(store, Some(goal), session) {
        Ok(recorder) => recorder,
        Err(exit) => return exit,
    };
    let timeout =
        pending.options.get("timeout_ms").and_then(serde_json::Value::as_u64).map(Duration::from_millis);
    if let (Action::Write(path), Some(content)) = (&pending.request.action, &pending.content) {
        return resume_writing(session, &recorder, path, content, json);
    }
    let way = Way { timeout, spill: None, json, passthrough: false, stops: true };
    let task = Task { place: None, request: pending.request.clone() };
    perform_by(session, &recorder, vec![task], &way, &ApproveAll)
}

/// Writes what a file tool was to write, through that very tool.
fn resume_writing(
    session: &Session,
    recorder: &RunRecorder<'_>,
    path: &Path,
    content: &str,
    json: bool,
) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let path = path.to_string_lossy();
    let arguments = serde_json::json!({ "path": path, "content": content }).to_string();
    let reply = runtime.block_on(async {
        let toolbox = Toolbox::new(session, &ApproveAll, recorder, RunOptions::default());
        toolbox.call("write_file", &arguments).await
    });
    let (ended, exit) = match reply.code {
        None => ("written", Exit::Success),
        Some("PERMISSION_DENIED" | "APPROVAL_REQUIRED" | "PATH_OUTSIDE_ALLOWED_ROOT") => {
            ("refused", Exit::Refused)
        }
        Some(_) => ("failed", Exit::Failed),
    };
    if let Err(error) = recorder.finish(ended) {
        say!("harness: the end of this run could not be recorded: {error}");
    }
    let shown = if json {
        super::log::print_json(&wire::Replied::of_file(&path, ended, reply.code, &reply.text))
    } else if exit == Exit::Success {
        super::log::print(&format!("{}\n", present::printable(&reply.text)))
    } else {
        Err(super::fail(exit, present::printable(&reply.text)))
    };
    shown.map_or_else(|failed| failed, |_| exit)
}

/// How a command is run and its end shown.
struct Way {
    timeout: Option<Duration>,
    spill: Option<PathBuf>,
    json: bool,
    passthrough: bool,
    /// The first failure ends a list of commands.
    stops: bool,
}

fn perform_by(
    session: &Session,
    recorder: &RunRecorder<'_>,
    tasks: Vec<Task>,
    way: &Way,
    approver: &dyn Approver,
) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let cancel = CancellationToken::new();
    let options = RunOptions {
        timeout: way.timeout,
        cancel: Some(cancel.clone()),
        spill: way.spill.clone(),
        echo: way.passthrough,
        in_place: way.passthrough,
        ..RunOptions::default()
    };
    // What passes through may draw on the terminal itself.
    let progress = if way.passthrough { Progress::default() } else { Progress::begin("running") };
    let approver = &Watched { approver, progress: &progress };
    let mut exit = Exit::Success;
    // A list without commands has nothing that could fail.
    let mut ended = "ran";
    runtime.block_on(async {
        let interrupted = cancel.clone();
        let mut signals = Signals::new();
        tokio::spawn(async move {
            signals.next().await;
            interrupted.cancel();
        });
        for Task { place, request } in tasks {
            let asked = request.clone();
            let reply = session.perform(request, options.clone(), approver, recorder).await;
            progress.silence(true);
            ended = wire::reply_kind(&reply);
            if let Reply::ApprovalRequired { approval: Some(id), .. } = &reply {
                say!(
                    "harness: stored as approval {id}: `harness approvals approve {id}`, then `harness approvals resume {id}`"
                );
            }
            let fails = |exit: &Exit| !matches!(exit, Exit::Success | Exit::Command(0));
            if let Some(place) = place.filter(|_| fails(&exit_of(&reply))) {
                say!("harness: {place}: {}", present::printable(&words::of(&asked.action)));
            }
            let one = match show(way, session, &asked, &reply) {
                Ok(()) => exit_of(&reply),
                Err(failed) => failed,
            };
            let failed = fails(&one);
            if failed {
                exit = one;
            }
            if (failed && way.stops) || cancel.is_cancelled() {
                break;
            }
            progress.silence(false);
        }
    });
    for warning in session.warnings() {
        say!("harness: {warning}");
    }
    if let Err(error) = recorder.finish(ended) {
        say!("harness: the end of this run could not be recorded: {error}");
    }
    exit
}

/// An approver during whose question no progress is shown.
struct Watched<'a> {
    approver: &'a dyn Approver,
    progress: &'a Progress,
}

impl Approver for Watched<'_> {
    fn answer<'q>(&'q self, question: Question<'q>) -> AnswerFuture<'q> {
        Box::pin(async move {
            self.progress.silence(true);
            let answer = self.approver.answer(question).await;
            self.progress.silence(false);
            answer
        })
    }
}

/// Prints what became of one command.
fn show(way: &Way, session: &Session, asked: &Request, reply: &Reply) -> Result<(), Exit> {
    let action = match reply {
        Reply::Ran { action, .. } => action,
        Reply::Refused(_) | Reply::ApprovalRequired { .. } | Reply::Failed(_) | Reply::NotRecorded(_) => {
            &asked.action
        }
    };
    let shown = words::of(action);
    let hint = match reply {
        Reply::Ran { decision, .. } => session.hint(decision),
        Reply::Refused(_) | Reply::ApprovalRequired { .. } | Reply::Failed(_) | Reply::NotRecorded(_) => None,
    };
    let mut text = if way.passthrough && matches!(reply, Reply::Ran { .. }) {
        if let Some(hint) = &hint {
            say!("harness: {hint}");
        }
        passed_through(way, session, asked, reply)?
    } else if way.json {
        if matches!(reply, Reply::Refused(_) | Reply::ApprovalRequired { .. })
            && let Some(line) = advice::untrusted(session)
        {
            say!("harness: {line}");
        }
        let mut replied = wire::Replied::new(&shown, session.gate().root(), reply);
        replied.hint = hint;
        if matches!(reply, Reply::Ran { .. }) {
            replied.warnings = session.warnings();
        }
        serde_json::to_string(&replied).map_err(|error| super::fail(Exit::Failed, error))?
    } else {
        let mut text = text_of(&shown, session, asked, reply);
        for notice in notices(way, session, asked, reply) {
            let _ = writeln!(text, "\n[{notice}]");
        }
        if let Some(hint) = hint {
            let _ = writeln!(text, "\n[{hint}]");
        }
        text
    };
    if way.json {
        text.push('\n');
    }
    out::write_raw(text.as_bytes())
}

/// The wish of somebody that this process end: Ctrl-C or SIGTERM. It is noted from the making of this on, inside a
/// runtime; before that, and where signals cannot be waited for, they end the process.
pub(super) struct Signals {
    #[cfg(unix)]
    streams: Option<[tokio::signal::unix::Signal; 2]>,
}

impl Signals {
    pub(super) fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let streams = signal(SignalKind::interrupt()).and_then(|interrupt| {
                let terminate = signal(SignalKind::terminate())?;
                Ok([interrupt, terminate])
            });
            Self { streams: streams.ok() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Comes to an end at the next one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        match &mut self.streams {
            Some([interrupt, terminate]) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A runtime on this thread alone.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Exit> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| super::fail(Exit::Failed, format_args!("no runtime: {error}")))
}

/// Opens the trace at `path`, or the user's own.
pub(crate) fn open_store(path: Option<&PathBuf>) -> Result<Store, Exit> {
    let failed = |error| super::fail(Exit::Failed, error);
    let store = Store::open(trace_at(path)?).map_err(failed)?;
    if path.is_some() {
        // It may lie where commands write, and only what is there can be kept from them.
        store.begin_spool().map_err(failed)?;
    }
    Ok(store)
}

/// The same to read it, also where it cannot be written.
pub(super) fn open_store_to_read(path: Option<&PathBuf>) -> Result<Store, Exit> {
    Store::open_to_read(trace_at(path)?).map_err(|error| super::fail(Exit::Failed, error))
}

/// Where the trace is: where it was said, or in the user's own state directory.
pub(super) fn trace_at(path: Option<&PathBuf>) -> Result<PathBuf, Exit> {
    let default = || UserDirs::from_environment().state.map(|state| state.join("trace.db"));
    path.cloned().or_else(default).ok_or_else(|| {
        super::fail(
            Exit::Failed,
            "there is no state directory for the trace: set HOME or XDG_STATE_HOME, or pass --trace FILE",
        )
    })
}

fn text_of(command: &str, session: &Session, request: &Request, reply: &Reply) -> String {
    match reply {
        Reply::Ran { finished, unrecorded, .. } => {
            if let Some(error) = unrecorded {
                say!("harness: {error}");
            }
            present::report(command, session.gate().root(), finished)
        }
        Reply::Refused(decision) => {
            say!("{}", diagnose::decision_with_advice(session, request, decision));
            String::new()
        }
        Reply::ApprovalRequired { decision, .. } => {
            say!("{}", diagnose::decision_with_advice(session, request, decision));
            String::new()
        }
        Reply::Failed(error) => {
            say!("harness: EXECUTION_ERROR: {error}");
            String::new()
        }
        Reply::NotRecorded(error) => {
            say!("harness: {error}");
            String::new()
        }
    }
}

/// After the command's own output: only what its caller would otherwise not learn, and on standard error. That output was
/// lost is a failure, whatever the command made of it.
fn passed_through(way: &Way, session: &Session, asked: &Request, reply: &Reply) -> Result<String, Exit> {
    if let Reply::Ran { finished, unrecorded, .. } = reply {
        for denial in &finished.denials {
            say!("harness: {}", denial.line());
        }
        match &finished.outcome {
            Outcome::TimedOut { .. } => {
                let millis = finished.duration.as_millis();
                say!("harness: TIMEOUT: killed after {millis}ms");
            }
            Outcome::SandboxFailed { stage, text, remedy } => {
                say!("harness: the sandbox failed at {}: {text}; {remedy}", stage.name());
            }
            Outcome::NotStarted(why) => say!("harness: {}", present::not_started(why)),
            Outcome::Exited(_) | Outcome::Signaled(_) | Outcome::Cancelled { .. } => {}
        }
        for notice in notices(way, session, asked, reply) {
            say!("harness: {notice}");
        }
        if let Some(error) = unrecorded {
            say!("harness: {error}");
        }
        let streams = [("output", &finished.stdout), ("error", &finished.stderr)];
        let mut whole = true;
        for (name, error) in streams.iter().filter_map(|(name, of)| Some((name, of.not_passed_on.as_ref()?)))
        {
            whole = false;
            say!("harness: standard {name} cannot be written: {error}; what the command wrote there is lost");
        }
        if !whole && matches!(finished.outcome, Outcome::Exited(_) | Outcome::Signaled(_)) {
            return Err(Exit::Failed);
        }
    }
    Ok(String::new())
}

/// What whoever gave the command line can change about how a run ended.
fn notices(way: &Way, session: &Session, asked: &Request, reply: &Reply) -> Vec<String> {
    let Reply::Ran { finished, .. } = reply else { return Vec::new() };
    let mut notices = Vec::new();
    if matches!(finished.outcome, Outcome::TimedOut { .. }) {
        let limit = session.time_limit(&asked.action, way.timeout).as_millis();
        let (most, key) = match asked.action {
            Action::Exec(_) => (session.exec_ceiling(), "limits.exec_timeout_ms"),
            Action::Shell(_) | Action::Read(_) | Action::Write(_) => {
                (session.shell_ceiling(), "limits.timeout_ms")
            }
        };
        let most = most.as_millis();
        notices.push(if limit < most {
            format!("the limit was {limit}ms: `--timeout-ms N` sets another, up to {most}, and `{key}` in a policy")
        } else {
            format!("the limit was {limit}ms, the most that `--timeout-ms` and `{key}` in a policy can give here")
        });
        if finished.enforced.network == NetworkEnforced::Closed {
            notices.push(
                "the network was off; `network.allow_domains` in a policy opens it for the hosts it names"
                    .to_owned(),
            );
        }
    }
    let cut = [&finished.stdout, &finished.stderr].into_iter().any(|stream| stream.cut.is_some());
    if cut && way.spill.is_none() && !way.passthrough {
        notices.push("`--spill DIR` keeps the whole output in a file".to_owned());
    }
    notices
}

fn exit_of(reply: &Reply) -> Exit {
    match reply {
        Reply::Ran { finished, .. } => match &finished.outcome {
            Outcome::Exited(code) => Exit::Command(u8::try_from(*code).unwrap_or(u8::MAX)),
            Outcome::Signaled(signal) => Exit::Command(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
            Outcome::TimedOut { .. } => Exit::Timeout,
            Outcome::Cancelled { .. } | Outcome::SandboxFailed { .. } => Exit::Failed,
            Outcome::NotStarted(NotStarted::ProgramNotFound { .. }) => Exit::NotFound,
            Outcome::NotStarted(NotStarted::NotExecutable { .. }) => Exit::Refused,
            Outcome::NotStarted(NotStarted::System { .. }) => Exit::Failed,
        },
        Reply::Refused(_) | Reply::ApprovalRequired { .. } => Exit::Refused,
        Reply::Failed(ExecError::Workdir { .. }) => Exit::Refused,
        Reply::Failed(_) | Reply::NotRecorded(_) => Exit::Failed,
    }
}
