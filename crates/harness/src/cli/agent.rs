//! `harness agent`: work on a goal until the project's own command says it is reached.

use super::decide::DecideArgs;
use super::log::must_be_there;
use super::out::say;
use super::run::{Signals, open_store, runtime};
use crate::agent::{
    Event, Kept, Message, OpenRouter, ProviderError, Retry, RunError, RunOutcome, RunResult, TaskContract,
    Verification, bounded, run_loaded,
};
use crate::approve::{AnswerFuture, Approver, DeferAll, Question, TerminalApprover};
use crate::config::{Loaded, UserDirs};
use crate::exit::Exit;
use crate::present::printable;
use crate::store::Store;
use crate::wire::agent::AgentRun;
use crate::words;
use cmdgate_executor::CancellationToken;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);
/// The longest line of progress, in characters.
const LINE_CHARS: usize = 160;

/// Let a model work on a goal, each of its calls decided, confined and recorded like any other
///
/// The model is one behind an OpenAI-compatible chat API: OPENROUTER_API_KEY must be set, OPENROUTER_MODEL is
/// `openrouter/auto` and OPENROUTER_BASE_URL is `https://openrouter.ai/api/v1` where they are not. The project is
/// writable unless a policy or --sandbox says otherwise. Without a terminal, what needs an approval is refused to the
/// model and kept for `harness approvals`. Ctrl-C ends the run and everything it started; --resume goes on with it.
///
/// Exit status: 0 the goal is reached (and the verification passed), 1 the steps or tokens were used up, 124 the time was
/// up, 125 the model, the sandbox or the trace failed, or the run was called off, 126 the policy does not allow the
/// verification, 2 usage, 3 a policy file is wrong.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness agent 'the tests fail; find out why and mend it' --verify 'npm test'\n  \
    harness agent --resume 12 --verify 'npm test'"
)]
pub(crate) struct AgentArgs {
    /// What is to be done
    #[arg(value_name = "GOAL", required_unless_present = "resume", conflicts_with = "resume")]
    goal: Option<String>,
    /// The command that says whether it is: one program with its arguments, without a shell. An exec rule must allow it;
    /// it runs in the sandbox without network
    #[arg(long, value_name = "COMMAND", value_parser = verification)]
    verify: Option<Argv>,
    /// The exit code of the verification that means success
    #[arg(long, value_name = "CODE", default_value_t = 0, requires = "verify")]
    expect_exit: i32,
    /// The model [default: OPENROUTER_MODEL, or openrouter/auto]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// At most as many answers of the model
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,
    /// At most as many minutes
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=525_600))]
    max_minutes: u64,
    /// At most as many tokens, as the server counts them [default: any number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Go on with this run of the trace, which was called off or failed
    #[arg(long, value_name = "RUN")]
    resume: Option<i64>,
    /// Print JSON to standard output; progress goes to standard error all the same
    #[arg(long)]
    json: bool,
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    decide: DecideArgs,
}

/// A program with its arguments.
#[derive(Debug, Clone)]
struct Argv(Vec<String>);

pub(crate) fn agent(args: &AgentArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &AgentArgs) -> Result<Exit, Exit> {
    if args.decide.workdir.is_some() {
        return Err(super::fail(Exit::Usage, "--workdir: an agent works in the project root; pass --root"));
    }
    let model = OpenRouter::from_env().map_err(|error| super::fail(Exit::Usage, error))?;
    let model = match &args.model {
        Some(name) => model.with_model(name),
        None => model,
    };
    let root = args.decide.root()?;
    let loaded = args.decide.recorded_in(args.trace.as_ref()).load(&root, None)?;
    if args.resume.is_some() {
        must_be_there(args.trace.as_ref())?;
    }
    let store = open_store(args.trace.as_ref())?;
    let goal = match (&args.goal, args.resume) {
        (_, Some(run)) => goal_of(&store, run)?,
        (goal, None) => goal.clone().unwrap_or_default(),
    };
    if goal.trim().is_empty() {
        return Err(super::fail(Exit::Usage, "the goal is empty"));
    }
    let progress = Progress::new();
    let cancel = CancellationToken::new();
    let begun = Arc::new(AtomicI64::new(0));
    let contract = contract(args, goal, root, &progress, &cancel, &begun);
    progress.line(&format!("model {} at {}", model.model(), model.base_url()));
    let told = progress.clone();
    let model = model.with_retries_told(Arc::new(move |retry: &Retry<'_>| told.retry(retry)));
    let ended = work(args, &model, &contract, loaded, &store, &progress, &cancel);
    progress.end();
    let run_id = Some(begun.load(Ordering::Relaxed)).filter(|&run| run > 0);
    show(args, &model, run_id, &ended?)
}

fn contract(
    args: &AgentArgs,
    goal: String,
    root: PathBuf,
    progress: &Progress,
    cancel: &CancellationToken,
    begun: &Arc<AtomicI64>,
) -> TaskContract {
    let verification = match &args.verify {
        Some(Argv(argv)) => Verification::Command { argv: argv.clone(), expect_exit: args.expect_exit },
        None => Verification::None,
    };
    let (shown, begun) = (progress.clone(), begun.clone());
    let contract = TaskContract::workspace(goal, root)
        .with_verification(verification)
        .with_max_steps(args.max_steps)
        .with_time_budget(Duration::from_mins(args.max_minutes))
        .with_cancel(cancel.clone())
        .with_observer(Arc::new(move |event: &Event<'_>| {
            if let Event::Started { run } = event {
                begun.store(*run, Ordering::Relaxed);
            }
            shown.observe(event);
        }));
    match args.max_tokens {
        Some(tokens) => contract.with_token_budget(tokens),
        None => contract,
    }
}

/// The goal of a run that is to go on.
fn goal_of(store: &Store, run: i64) -> Result<String, Exit> {
    let kept = store.messages(run).map_err(|error| super::fail(Exit::Failed, error))?;
    match kept.get(1).and_then(|text| serde_json::from_str(text).ok()) {
        Some(Message::User { text }) => Ok(text),
        Some(Message::System { .. } | Message::Assistant(_) | Message::Tool { .. }) | None => {
            Err(super::fail(
                Exit::Unwell,
                format_args!("run {run} cannot be resumed: there is no conversation of it in this trace"),
            ))
        }
    }
}

/// Runs it, until it ends or a signal calls it off.
fn work(
    args: &AgentArgs,
    model: &OpenRouter,
    contract: &TaskContract,
    loaded: Loaded,
    store: &Store,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Result<RunResult, RunError>, Exit> {
    let runtime = runtime()?;
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    // The person is told what bounds the commands of this run, which may be another sandbox than that of a single one.
    let loaded = bounded(contract, loaded);
    let asks = AtTerminal {
        approver: TerminalApprover::new(&loaded.policy, &loaded.settings),
        progress: progress.clone(),
    };
    let approver: &dyn Approver = if terminal { &asks } else { &DeferAll };
    let kept = Kept {
        resume: args.resume,
        questions: Some(super::approvals::options(&args.decide, None)),
        preflight: UserDirs::from_environment().state.map(|state| state.join("preflight")),
    };
    let ended = runtime.block_on(async {
        let called_off = cancel.clone();
        let mut signals = Signals::new();
        tokio::spawn(async move {
            signals.next().await;
            called_off.cancel();
            // Whoever cannot wait for the end of what runs asks a second time.
            signals.next().await;
            std::process::exit(i32::from(Exit::Failed.code()));
        });
        run_loaded(contract, model, store, loaded, approver, kept).await
    });
    // A request that nobody waits for any more is not waited for.
    runtime.shutdown_background();
    Ok(ended)
}

/// Prints how it ended, and gives the exit.
fn show(
    args: &AgentArgs,
    model: &OpenRouter,
    run: Option<i64>,
    ended: &Result<RunResult, RunError>,
) -> Result<Exit, Exit> {
    let exit = match ended {
        Ok(result) => exit_of(result.outcome),
        Err(error) => exit_of_error(error),
    };
    if args.json {
        let wire = match ended {
            Ok(result) => AgentRun::ended(model.model(), result),
            Err(error) => AgentRun::failed(model.model(), run, error),
        };
        super::log::print_json(&wire)?;
        return Ok(exit);
    }
    match ended {
        Ok(result) => {
            let what = match result.outcome {
                RunOutcome::Done => "done",
                RunOutcome::OutOfSteps => "not done: the steps were used up",
                RunOutcome::OutOfTime => "not done: the time was up",
                RunOutcome::OutOfTokens => "not done: the tokens were used up",
                RunOutcome::Cancelled => "called off",
            };
            say!(
                "harness: {what} after {} answer{} and {} tokens; `harness log --run {}` shows what was done",
                result.steps,
                if result.steps == 1 { "" } else { "s" },
                result.tokens,
                result.run_id
            );
            let answer: Vec<String> = result.answer.lines().map(printable).collect();
            if !answer.is_empty() {
                super::log::print(&(answer.join("\n") + "\n"))?;
            }
            Ok(exit)
        }
        Err(error) => {
            if let Some(run) = run.filter(|_| matches!(error, RunError::Provider(_))) {
                say!("harness: `harness agent --resume {run}` goes on where it stopped");
            }
            Err(super::fail(exit, error))
        }
    }
}

const fn exit_of(outcome: RunOutcome) -> Exit {
    match outcome {
        RunOutcome::Done => Exit::Success,
        RunOutcome::OutOfSteps | RunOutcome::OutOfTokens => Exit::Unwell,
        RunOutcome::OutOfTime => Exit::Timeout,
        RunOutcome::Cancelled => Exit::Failed,
    }
}

const fn exit_of_error(error: &RunError) -> Exit {
    match error {
        RunError::Gate { .. } => Exit::Refused,
        RunError::Resume { .. } => Exit::Unwell,
        RunError::Provider(ProviderError::NoKey | ProviderError::Setting { .. }) => Exit::Usage,
        RunError::Provider(_) | RunError::Project(_) | RunError::Store(_) | RunError::Record(_) => {
            Exit::Failed
        }
    }
}

fn verification(text: &str) -> Result<Argv, String> {
    words::parse(text).map(Argv)
}

/// Asks at the terminal, with the spinner out of the way.
struct AtTerminal {
    approver: TerminalApprover,
    progress: Progress,
}

impl Approver for AtTerminal {
    fn answer<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        self.progress.rest();
        self.approver.answer(question)
    }
}

/// What is going on: a spinner at a terminal, plain lines elsewhere, and always on standard error.
#[derive(Debug, Clone)]
struct Progress {
    spinner: Option<ProgressBar>,
}

impl Progress {
    fn new() -> Self {
        let spinner = io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                spinner.set_style(style);
            }
            spinner
        });
        Self { spinner }
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        let text = shortened(text);
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| say!("{text}")),
            None => say!("{text}"),
        }
    }

    /// What is waited for.
    fn waiting(&self, text: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(shortened(text));
            spinner.reset_elapsed();
            spinner.enable_steady_tick(TURN);
        }
    }

    /// Leaves the terminal to others until something is waited for again.
    fn rest(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.suspend(|| {});
            spinner.reset();
        }
    }

    fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }

    /// The model is asked once more.
    fn retry(&self, retry: &Retry<'_>) {
        let pause = retry.pause.as_secs_f64();
        self.line(&format!("     {}", cause_of(retry.why)));
        self.line(&format!("     again in {pause:.1} s: attempt {} of {}", retry.attempt, retry.attempts));
        self.waiting(&format!("the model, attempt {}", retry.attempt));
    }

    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Started { run } => {
                self.line(&format!("run {run}"));
                self.waiting("the model");
            }
            Event::Pruned { text } => self.line(&format!("harness: {text}")),
            Event::Answer { step, text } => {
                if let Some(line) = text.lines().find(|line| !line.trim().is_empty()) {
                    self.line(&format!("{step:>3}  {line}"));
                }
                self.waiting("the verification");
            }
            Event::ToolCall { step, name, arguments } => {
                let call = format!("{name} {}", what_of(arguments));
                self.line(&format!("{step:>3}  {call}"));
                self.waiting(&call);
            }
            Event::ToolReply { text, .. } => {
                self.line(&format!("     → {}", gist_of(text)));
                self.waiting("the model");
            }
            Event::Verified { passed } => {
                self.line(if *passed { "     verified" } else { "     the verification failed" });
                self.waiting("the model");
            }
            Event::Ended { .. } => self.rest(),
        }
    }
}

/// Why an attempt failed, without what the last line of all would say.
fn cause_of(error: &ProviderError) -> String {
    match error {
        ProviderError::Transport { what, .. }
        | ProviderError::Nonsense { what, .. }
        | ProviderError::Unfinished { what, .. } => what.clone(),
        ProviderError::Timeout { what, .. } => format!("the time was up: {what}"),
        ProviderError::Status { status, message, .. } => format!("the server answered {status}: {message}"),
        ProviderError::ScriptEnded(_)
        | ProviderError::NoKey
        | ProviderError::Setting { .. }
        | ProviderError::Redirect { .. }
        | ProviderError::TooLarge { .. } => error.to_string(),
    }
}

/// What a call is about: its command, its words, its path, or its arguments as they are.
fn what_of(arguments: &str) -> String {
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    let text = ["command", "path", "id"].iter().find_map(|name| match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let argv = || {
        let argv = value.get("argv")?.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
        Some(words::line(&argv))
    };
    text.or_else(argv).unwrap_or_else(|| arguments.to_owned())
}

/// The line of a reply that says most.
fn gist_of(text: &str) -> &str {
    let ended = |line: &&str| {
        ["Exit code:", "Ended by", "TIMEOUT:", "ABORTED:"].iter().any(|end| line.starts_with(end))
    };
    let report = text.starts_with("Command: ");
    text.lines()
        .take(4)
        .find(|line| report && ended(line))
        .or_else(|| text.lines().next())
        .unwrap_or_default()
}

/// Safe to print, on one line.
fn shortened(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_what_a_call_is_about_and_what_came_of_it() {
        assert_eq!(what_of(r#"{"argv":["npm","test", "a b"]}"#), "npm test 'a b'");
        assert_eq!(what_of(r#"{"command":"ls -l"}"#), "ls -l");
        assert_eq!(what_of(r#"{"id":3}"#), "3");
        assert_eq!(what_of("{broken"), "{broken");
        assert_eq!(gist_of("Command: x\nWorkdir: .\nExit code: 1 (3ms)\n\nstdout:\n"), "Exit code: 1 (3ms)");
        assert_eq!(gist_of("PERMISSION_DENIED: no\nmore"), "PERMISSION_DENIED: no");
        assert_eq!(shortened("a\u{1b}[2J"), "a\\u{1b}[2J");
    }
}
