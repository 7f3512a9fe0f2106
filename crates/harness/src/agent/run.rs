//! Model, tool, observation, again, until the work is done or a budget ends.

use super::contract::{TaskContract, Verification};
use super::message::{Message, Turn};
use super::observer::Event;
use super::provider::{OfferedTool, Provider, ProviderError};
use crate::approve::Approver;
use crate::config::{CONTRACT, Loaded};
use crate::gate::{Action, Approved, Decision, DecisionCode, Request};
use crate::present;
use crate::session::{RecordError, RecordId, Recorder as _, RunOptions, Session};
use crate::store::{GateEvent, RunRecorder, Store, StoreError};
use crate::tools::{Toolbox, read_approved};
use crate::words;
use cmdgate_executor::{CancellationToken, ExecError, Finished, Outcome};
use cmdgate_policy::{Effect, Layer, Policy, SandboxMode};
use serde_json::json;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// As long may a call that was cancelled take to come to its end.
const GRACE: Duration = Duration::from_secs(10);

const INSTRUCTIONS: &str = "You work on the project in the current directory by calling tools. Every call is decided by a \
    policy: what is refused says why, and asking for the same again gives the same answer. Commands run in a sandbox \
    without network. Read before you change, make the smallest change that does it, and check it. When the goal is \
    reached, answer without calling a tool and say in a few words what you did.";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// The model says it is done, and the verification passed where there is one.
    Done,
    /// The model has answered as often as it may.
    OutOfSteps,
    /// The time was up.
    OutOfTime,
    /// More tokens were used than allowed.
    OutOfTokens,
    /// It was called off.
    Cancelled,
}

impl RunOutcome {
    /// The stable spelling, as it stands in the trace.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::OutOfSteps => "out_of_steps",
            Self::OutOfTime => "out_of_time",
            Self::OutOfTokens => "out_of_tokens",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Its number in the trace.
    pub run_id: i64,
    /// How often the model answered.
    pub steps: u32,
    /// The tokens used, as far as the provider says.
    pub tokens: u64,
    /// What the model said last.
    pub answer: String,
}

/// Why a run failed. What had been done by then is in the trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The project cannot be worked in.
    #[error(transparent)]
    Project(#[from] ExecError),
    /// The trace cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A step could not be recorded, so it was not done.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The model gave no answer.
    #[error("the model gave no answer: {0}")]
    Provider(#[from] ProviderError),
    /// The verification may not run.
    #[error(
        "the verification `{argv}` may not run: {reason}; allow it with an exec rule, because nobody is asked about it"
    )]
    Gate {
        /// The verification.
        argv: String,
        /// Why not.
        reason: String,
    },
    /// There is nothing to resume.
    #[error("run {run} cannot be resumed: {why}")]
    Resume {
        /// The run.
        run: i64,
        /// Why not.
        why: String,
    },
}

/// Works on a contract until it is done or a budget ends.
///
/// Everything is decided by `policy`, whose settings count, too, with one difference: where none of its layers names a
/// sandbox, the project is writable. Asks go to `approver`. What is decided and done is written to `store`. When this
/// future is dropped, everything that it started ends.
///
/// # Errors
///
/// When the project or the trace cannot be used, when the exec policy does not allow the verification, or when the model
/// gives no answer.
pub async fn run_with<P: Provider + ?Sized>(
    contract: &TaskContract,
    provider: &P,
    store: &Store,
    policy: &Policy,
    approver: &dyn Approver,
) -> Result<RunResult, RunError> {
    run_loaded(contract, provider, store, bounded(contract, bare(policy)), approver, Kept::default()).await
}

/// Goes on with a run whose process died, or whose model failed, at the step that it had reached.
///
/// A call that had no reply by then is not made again: the model is told that nobody knows what came of it.
///
/// # Errors
///
/// As [`run_with`], and when there is no such run, it is done, or it had another goal.
pub async fn resume<P: Provider + ?Sized>(
    run: i64,
    contract: &TaskContract,
    provider: &P,
    store: &Store,
    policy: &Policy,
    approver: &dyn Approver,
) -> Result<RunResult, RunError> {
    let kept = Kept { resume: Some(run), ..Kept::default() };
    run_loaded(contract, provider, store, bounded(contract, bare(policy)), approver, kept).await
}

/// What there is of a run before it starts, and what is to be kept of it besides the trace.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The run that goes on.
    pub(crate) resume: Option<i64>,
    /// Questions that nobody answers are stored, with these options of the command line.
    pub(crate) questions: Option<serde_json::Value>,
    /// Where what the sandbox's preflight finds is kept for the next process.
    pub(crate) preflight: Option<PathBuf>,
}

/// A policy as a configuration that was read from no files.
fn bare(policy: &Policy) -> Loaded {
    Loaded { policy: policy.clone(), settings: policy.settings(), origins: Vec::new() }
}

/// Begins a run under a configuration that the contract has been taken into, or goes on with one.
pub(crate) async fn run_loaded<P: Provider + ?Sized>(
    contract: &TaskContract,
    provider: &P,
    store: &Store,
    loaded: Loaded,
    approver: &dyn Approver,
    kept: Kept,
) -> Result<RunResult, RunError> {
    let session = Session::new(&contract.root, loaded)?;
    let session = match &kept.preflight {
        Some(directory) => session.keep_preflight(directory)?,
        None => session,
    };
    let mode = session.gate().mode().as_str();
    let (conversation, recorder) = if let Some(run) = kept.resume {
        (conversation(run, contract, &session, store)?, store.reopen_in(run, &session)?)
    } else {
        (Vec::new(), store.begin_in("agent", Some(contract.goal.clone()), &session)?)
    };
    let recorder = match kept.questions {
        None => recorder,
        Some(mut options) => {
            // Where nothing names a sandbox, a run has another one than a command of its own.
            if let Some(object) = options.as_object_mut() {
                object.insert("sandbox".to_owned(), json!(mode));
            }
            recorder.keeping_questions(options)
        }
    };
    let mut run = Run::new(contract, &session, &recorder);
    if conversation.is_empty() {
        run.keep(Message::System { text: INSTRUCTIONS.to_owned() })?;
        run.keep(Message::User { text: contract.goal.clone() })?;
    }
    for message in conversation {
        run.take(message);
    }
    for call in run.unanswered() {
        let text = "INTERRUPTED: this run was interrupted here. Whether the call took effect is not known: look before \
                    you repeat it."
            .to_owned();
        run.keep(Message::Tool { call, text })?;
    }
    run.drive(provider, approver).await
}

/// The conversation of a run that can go on.
fn conversation(
    run: i64,
    contract: &TaskContract,
    session: &Session,
    store: &Store,
) -> Result<Vec<Message>, RunError> {
    let refuse = |why: String| RunError::Resume { run, why };
    if let Some(root) = store.root(run)?.filter(|root| *root != session.gate().root().to_string_lossy()) {
        return Err(refuse(format!("it worked in {root}")));
    }
    let mut conversation = Vec::new();
    for text in store.messages(run)? {
        let message: Message = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("its conversation cannot be read: {error}")))?;
        conversation.push(message);
    }
    match conversation.get(1) {
        Some(Message::User { text }) if *text == contract.goal => {}
        Some(_) => return Err(refuse("it had another goal".to_owned())),
        None => return Err(refuse("there is no conversation of it in this trace".to_owned())),
    }
    if store.outcome(run)?.as_deref() == Some(RunOutcome::Done.as_str()) {
        return Err(refuse("it is done".to_owned()));
    }
    Ok(conversation)
}

/// What counts in a run: the configuration, with what the contract sets as its topmost layer.
pub(crate) fn bounded(contract: &TaskContract, loaded: Loaded) -> Loaded {
    let mut layer = Layer::new(CONTRACT);
    let chosen = loaded
        .policy
        .layers()
        .iter()
        .any(|layer| !layer.name.starts_with("builtin") && layer.settings.sandbox.is_some());
    if contract.unsandboxed {
        layer.settings.sandbox = Some(SandboxMode::DangerFullAccess);
    } else if !chosen {
        layer.settings.sandbox = Some(SandboxMode::WorkspaceWrite);
    }
    layer.settings.limits.exec_timeout_ms = contract
        .exec_timeout
        .and_then(|time| NonZeroU64::new(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)));
    let policy = loaded.policy.with_layer(layer);
    let settings = policy.settings();
    Loaded { policy, settings, origins: loaded.origins }
}

/// One run while it goes on.
struct Run<'r> {
    contract: &'r TaskContract,
    session: &'r Session,
    recorder: &'r RunRecorder<'r>,
    conversation: Vec<Message>,
    steps: u32,
    tokens: u64,
    answer: String,
    deadline: Instant,
}

/// What a verification came to.
struct Verified {
    passed: bool,
    report: String,
}

impl<'r> Run<'r> {
    fn new(contract: &'r TaskContract, session: &'r Session, recorder: &'r RunRecorder<'r>) -> Self {
        let now = Instant::now();
        Self {
            contract,
            session,
            recorder,
            conversation: Vec::new(),
            steps: 0,
            tokens: 0,
            answer: String::new(),
            // A budget beyond what the clock can hold is none.
            deadline: now.checked_add(contract.time).unwrap_or_else(|| now + Duration::from_hours(24 * 365)),
        }
    }

    /// Takes a message into the conversation.
    fn take(&mut self, message: Message) {
        if let Message::Assistant(turn) = &message {
            self.steps = self.steps.saturating_add(1);
            self.tokens = self.tokens.saturating_add(turn.tokens);
            turn.text.clone_into(&mut self.answer);
        }
        self.conversation.push(message);
    }

    /// Takes a message, and writes it down first.
    fn keep(&mut self, message: Message) -> Result<(), RunError> {
        let kept = serde_json::to_value(&message)
            .map_err(|error| RecordError { what: error.to_string(), remedy: "report this".to_owned() })?;
        self.recorder.keep_message(kept)?;
        self.take(message);
        Ok(())
    }

    /// The calls of the last answer that have no reply.
    fn unanswered(&self) -> Vec<String> {
        let mut replied = Vec::new();
        for message in self.conversation.iter().rev() {
            match message {
                Message::Tool { call, .. } => replied.push(call),
                Message::Assistant(turn) => {
                    return turn
                        .calls
                        .iter()
                        .map(|call| &call.id)
                        .filter(|id| !replied.contains(id))
                        .cloned()
                        .collect();
                }
                Message::System { .. } | Message::User { .. } => break,
            }
        }
        Vec::new()
    }

    async fn drive<P: Provider + ?Sized>(
        mut self,
        provider: &P,
        approver: &dyn Approver,
    ) -> Result<RunResult, RunError> {
        let run = self.recorder.run();
        self.contract.tell(&Event::Started { run });
        if let Some(text) = self.recorder.pruned() {
            self.contract.tell(&Event::Pruned { text: &text });
        }
        let cancel = CancellationToken::new();
        let options = RunOptions {
            cancel: Some(cancel.clone()),
            inherit_environment: self.contract.inherit_environment,
            ..RunOptions::default()
        };
        let toolbox = Toolbox::new(self.session, approver, self.recorder, options);
        let outcome = self.work(provider, &toolbox, &cancel).await;
        // Contract P16: what runs in the background ends with the run.
        toolbox.end().await;
        let written = match &outcome {
            Ok(outcome) => outcome.as_str(),
            Err(RunError::Gate { .. }) => "gate_refused",
            Err(RunError::Provider(_)) => "provider_failed",
            Err(
                RunError::Project(_) | RunError::Store(_) | RunError::Record(_) | RunError::Resume { .. },
            ) => "failed",
        };
        let finished = self.recorder.finish(written);
        let outcome = outcome?;
        finished?;
        self.contract.tell(&Event::Ended { outcome });
        let Self { steps, tokens, answer, .. } = self;
        Ok(RunResult { outcome, run_id: run, steps, tokens, answer })
    }

    async fn work<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        toolbox: &Toolbox<'_>,
        cancel: &CancellationToken,
    ) -> Result<RunOutcome, RunError> {
        // A verification that may not run is found out before anything is spent.
        self.verification_may_run()?;
        let tools = OfferedTool::all_in(self.session);
        // A run that was cut off between the model's last word and the end of the verification goes on with that.
        let mut is_said_done = self.is_said_done();
        loop {
            if !std::mem::take(&mut is_said_done) {
                if self.contract.tokens.is_some_and(|most| self.tokens > most) {
                    return Ok(RunOutcome::OutOfTokens);
                }
                if self.steps >= self.contract.max_steps {
                    return Ok(RunOutcome::OutOfSteps);
                }
                let turn = tokio::select! {
                    biased;
                    outcome = self.stopped() => return Ok(outcome),
                    turn = provider.next(&self.conversation, &tools) => turn?,
                };
                self.keep(Message::Assistant(turn.clone()))?;
                self.contract.tell(&Event::Answer { step: self.steps, text: &turn.text });
                if !turn.calls.is_empty() {
                    if let Some(outcome) = self.call_all(&turn, toolbox, cancel).await? {
                        return Ok(outcome);
                    }
                    continue;
                }
            }
            let Some(verified) = self.verify().await? else { return Ok(RunOutcome::Done) };
            self.contract.tell(&Event::Verified { passed: verified.passed });
            if verified.passed {
                return Ok(RunOutcome::Done);
            }
            if let Some(outcome) = self.must_stop() {
                return Ok(outcome);
            }
            self.keep(Message::User { text: verified.report })?;
        }
    }

    /// Whether the last that was said is the model's answer that it is done.
    fn is_said_done(&self) -> bool {
        match self.conversation.last() {
            Some(Message::Assistant(turn)) => turn.calls.is_empty(),
            Some(Message::System { .. } | Message::User { .. } | Message::Tool { .. }) | None => false,
        }
    }

    /// Whether the run must end here.
    fn must_stop(&self) -> Option<RunOutcome> {
        if self.contract.cancel.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Some(RunOutcome::Cancelled);
        }
        (Instant::now() >= self.deadline).then_some(RunOutcome::OutOfTime)
    }

    /// Comes to an end when the run must: it was called off, or its time is up.
    async fn stopped(&self) -> RunOutcome {
        let called_off = async {
            match &self.contract.cancel {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = called_off => RunOutcome::Cancelled,
            () = tokio::time::sleep_until(self.deadline) => RunOutcome::OutOfTime,
        }
    }

    /// Makes the calls of an answer, one after the other, until the run must stop.
    async fn call_all(
        &mut self,
        turn: &Turn,
        toolbox: &Toolbox<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<RunOutcome>, RunError> {
        for call in &turn.calls {
            if let Some(outcome) = self.must_stop() {
                return Ok(Some(outcome));
            }
            self.contract.tell(&Event::ToolCall {
                step: self.steps,
                name: &call.name,
                arguments: &call.arguments,
            });
            let mut calling = std::pin::pin!(toolbox.call(&call.name, &call.arguments));
            let reply = tokio::select! {
                reply = &mut calling => Some(reply),
                _ = self.stopped() => {
                    cancel.cancel();
                    tokio::time::timeout(GRACE, calling).await.ok()
                }
            };
            let Some(reply) = reply else { return Ok(self.must_stop()) };
            self.contract.tell(&Event::ToolReply {
                step: self.steps,
                name: &call.name,
                code: reply.code,
                text: &reply.text,
            });
            self.keep(Message::Tool { call: call.id.clone(), text: reply.text })?;
        }
        Ok(None)
    }

    /// Refuses a run whose verification the policy does not allow, and records the refusal.
    fn verification_may_run(&self) -> Result<(), RunError> {
        match &self.contract.verification {
            Verification::Command { argv, .. } => self.admit_gate(argv, false).map(|_| ()),
            Verification::FileContains { .. } | Verification::None => Ok(()),
        }
    }

    /// Contract P13: the exec policy must allow the verification, and a proof that it is harmless is not enough.
    fn admit_gate(
        &self,
        argv: &[String],
        record_allow: bool,
    ) -> Result<(Option<RecordId>, Approved), RunError> {
        let request = Request::exec(argv.iter().cloned());
        let mut decision = self.session.gate().decide(&request);
        let ruling = self.session.gate().policy().check_exec(argv);
        if decision.effect == Effect::Allow && ruling.effect != Effect::Allow {
            decision.reason = ruling.to_string();
            decision.effect = Effect::Ask;
            decision.ruling = Some(ruling);
        }
        let approved = self.session.gate().approve(request.clone(), &decision);
        match approved {
            Some(approved) => {
                let record =
                    if record_allow { Some(self.recorder.decided(&request, &decision)?) } else { None };
                Ok((record, approved))
            }
            None => Err(self.gate_refused(&request, decision)?),
        }
    }

    fn gate_refused(&self, request: &Request, mut decision: Decision) -> Result<RunError, RunError> {
        if decision.effect == Effect::Ask {
            decision.reason = format!("the exec policy asks about it ({})", decision.reason);
        }
        decision.effect = Effect::Deny;
        decision.code = Some(DecisionCode::PermissionDenied);
        self.recorder.decided(request, &decision)?;
        Ok(RunError::Gate { argv: words::of(&request.action).into_owned(), reason: decision.reason })
    }

    /// Runs the verification. `None` where there is none.
    async fn verify(&self) -> Result<Option<Verified>, RunError> {
        match &self.contract.verification {
            Verification::None => Ok(None),
            Verification::Command { argv, expect_exit } => {
                self.verify_by_command(argv, *expect_exit).await.map(Some)
            }
            Verification::FileContains { file, needle } => self.verify_by_file(file, needle).map(Some),
        }
    }

    async fn verify_by_command(&self, argv: &[String], expect_exit: i32) -> Result<Verified, RunError> {
        let (record, approved) = self.admit_gate(argv, true)?;
        let cancel = CancellationToken::new();
        let options = RunOptions {
            confined: true,
            cancel: Some(cancel.clone()),
            inherit_environment: self.contract.inherit_environment,
            ..RunOptions::default()
        };
        let mut running = std::pin::pin!(self.session.run(&approved, options));
        let end = tokio::select! {
            end = &mut running => end,
            _ = self.stopped() => {
                cancel.cancel();
                running.await
            }
        };
        if let Some(record) = record {
            self.recorder.ended(record, approved.request(), &end)?;
        }
        let (phase, exit, output) = match &end {
            Ok(finished) => {
                let text = present::report(&words::line(argv), self.session.gate().root(), finished);
                (phase_of(finished, expect_exit), exit_of(finished), text)
            }
            Err(error) => (Some("start"), None, format!("EXECUTION_ERROR: {error}")),
        };
        let detail = json!({ "argv": argv, "passed": phase.is_none(), "output": output });
        self.recorder.gate_event(record, GateEvent::Output, detail)?;
        if let Some(phase) = phase {
            let detail = json!({ "argv": argv, "phase": phase, "exit": exit, "expect_exit": expect_exit });
            self.recorder.gate_event(record, GateEvent::PhaseFailed, detail)?;
        }
        let report = format!(
            "The verification failed (it must end with exit code {expect_exit}). Go on until it passes.\n\n{output}"
        );
        Ok(Verified { passed: phase.is_none(), report })
    }

    fn verify_by_file(&self, file: &std::path::Path, needle: &str) -> Result<Verified, RunError> {
        let request = Request { action: Action::Read(file.to_path_buf()), workdir: None };
        let decision = self.session.gate().decide(&request);
        let Some(approved) = self.session.gate().approve(request.clone(), &decision) else {
            return Err(self.gate_refused(&request, decision)?);
        };
        let record = self.recorder.decided(&request, &decision)?;
        let read = read_approved(&approved).map_err(|error| error.to_string());
        let end = read.as_ref().map(|content| content.len() as u64).map_err(Clone::clone);
        self.recorder.moved(record, &end)?;
        let (phase, why) = match read {
            Ok(content) if String::from_utf8_lossy(&content).contains(needle) => (None, String::new()),
            Ok(_) => (Some("content"), format!("{} does not hold {needle:?}", file.display())),
            Err(error) => (Some("read"), format!("{}: {error}", file.display())),
        };
        if let Some(phase) = phase {
            let detail = json!({ "file": file.to_string_lossy(), "phase": phase, "why": why });
            self.recorder.gate_event(Some(record), GateEvent::PhaseFailed, detail)?;
        }
        Ok(Verified { passed: phase.is_none(), report: format!("The verification failed: {why}") })
    }
}

/// The phase at which a verification failed; none when it passed.
fn phase_of(finished: &Finished, expect_exit: i32) -> Option<&'static str> {
    match &finished.outcome {
        Outcome::Exited(code) if *code == expect_exit => None,
        Outcome::Exited(_) | Outcome::Signaled(_) => Some("exit"),
        Outcome::TimedOut { .. } | Outcome::Cancelled { .. } => Some("time"),
        Outcome::SandboxFailed { .. } | Outcome::NotStarted(_) => Some("start"),
    }
}

const fn exit_of(finished: &Finished) -> Option<i32> {
    match &finished.outcome {
        Outcome::Exited(code) => Some(*code),
        Outcome::Signaled(_)
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled { .. }
        | Outcome::SandboxFailed { .. }
        | Outcome::NotStarted(_) => None,
    }
}
