//! One project with its gate and its executor: a request goes in, is decided, answered, run and recorded.

use crate::approve::remember::{self, RememberError, RememberedFile};
use crate::approve::{Answer, Approver, Question, Remember, Scope};
use crate::config::{self, Loaded, UserDirs};
use crate::gate::{Action, Approved, Decision, DecisionCode, Gate, Request, Source};
use crate::secrets;
use cmdgate_executor::{
    Background, CancellationToken, DeniedOperation, DomainRules, Environment, ExecError, Executor, Finished,
    Job, Keep, Limits, Mode, Network, OutputMode, PathList, Reads, Sandbox,
};
use cmdgate_policy::{Effect, Layer, ProfileName, SandboxMode, Settings, Timestamp};
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

/// The hard ceiling of a shell command (contract S2): no argument can raise it.
pub const SHELL_CEILING: Duration = Duration::from_mins(1);
/// The time of a shell command that names none (contract S1).
pub const SHELL_TIMEOUT: Duration = Duration::from_secs(10);
/// The time of an `exec` that names none (contract P10).
pub const EXEC_TIMEOUT: Duration = Duration::from_mins(15);

/// Where every decision and every run is written down. A run that cannot be recorded does not happen.
pub trait Recorder: Send + Sync {
    /// Writes down a decision before anything comes of it.
    ///
    /// # Errors
    ///
    /// When it cannot be written; then nothing is run.
    fn decided(&self, request: &Request, decision: &Decision) -> Result<RecordId, RecordError>;

    /// Writes down what an approver answered.
    ///
    /// # Errors
    ///
    /// When it cannot be written; then nothing is run.
    fn answered(
        &self,
        record: RecordId,
        request: &Request,
        decision: &Decision,
        answer: &Answer,
    ) -> Result<(), RecordError>;

    /// Writes down what was decided again after an approver said yes, about the action as it is by then.
    ///
    /// # Errors
    ///
    /// When it cannot be written; then nothing is run.
    fn decided_again(
        &self,
        record: RecordId,
        request: &Request,
        decision: &Decision,
    ) -> Result<(), RecordError>;

    /// Keeps a question that nobody answered, where questions are kept, and gives its number. With it goes what a file tool
    /// would write.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn deferred(
        &self,
        record: RecordId,
        session: &Session,
        request: &Request,
        decision: &Decision,
        content: Option<&str>,
    ) -> Result<Option<i64>, RecordError> {
        let _ = (record, session, request, decision, content);
        Ok(None)
    }

    /// Writes down how the run ended.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the run has happened by then.
    fn ended(
        &self,
        record: RecordId,
        request: &Request,
        end: &Result<Finished, ExecError>,
    ) -> Result<(), RecordError>;

    /// Writes down what became of a file tool: the bytes it moved, or why it could not.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the tool has done its work by then.
    fn moved(&self, record: RecordId, end: &Result<u64, String>) -> Result<(), RecordError>;
}

/// The number of a recorded step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub i64);

/// Why something could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot record this run: {what}; {remedy}")]
pub struct RecordError {
    /// What went wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// What became of a request.
#[derive(Debug)]
pub enum Reply {
    /// It ran, however it ended.
    Ran {
        /// The decision that let it run.
        decision: Box<Decision>,
        /// How it ended.
        finished: Box<Finished>,
        /// The end could not be written down.
        unrecorded: Option<RecordError>,
        /// What ran: what was asked for, or what the approver changed it to.
        action: Box<Action>,
    },
    /// It was denied, or an approver said no.
    Refused(Box<Decision>),
    /// An approval is needed, and nobody gave it.
    ApprovalRequired {
        /// The decision that asks.
        decision: Box<Decision>,
        /// The record that holds the question.
        record: RecordId,
        /// The number under which the question is kept for `harness approvals`, where it is.
        approval: Option<i64>,
    },
    /// It could not be started, or not in the sandbox that was asked for.
    Failed(ExecError),
    /// It was not run, because it could not be recorded.
    NotRecorded(RecordError),
}

/// How one command is run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The caller's own timeout, below the ceiling.
    pub timeout: Option<Duration>,
    /// Kills the run when it is cancelled.
    pub cancel: Option<CancellationToken>,
    /// Where full outputs go when they do not fit.
    pub spill: Option<std::path::PathBuf>,
    /// Write everything to this process's own streams as it comes.
    pub echo: bool,
    /// Pass the whole environment of this process, secrets included. A command that runs because it was found harmless
    /// gets the allowlist all the same: its verdict depends on that.
    pub inherit_environment: bool,
    /// For a caller that stands where the command would: the command gets this process's own standard input, unless it was
    /// found harmless because it has none, and without a timeout its time is not bounded here.
    pub in_place: bool,
    /// Whatever the settings say: in the sandbox, and with the network off.
    pub confined: bool,
    /// In a sandboxed run: nothing of the project is writable and the network is off, whatever the settings say.
    pub reads_only: bool,
}

/// A request that may run: the token, how it was decided, and where that is written.
#[derive(Debug)]
pub struct Admitted {
    /// What lets it run.
    pub approved: Approved,
    /// The decision.
    pub decision: Decision,
    /// Where the decision is recorded.
    pub record: RecordId,
}

/// One project, ready to decide and run.
#[derive(Debug)]
pub struct Session {
    gate: Arc<Gate>,
    executor: Executor,
    /// Where rules are remembered.
    remembered: Option<RememberedFile>,
    /// The project's policy file, where nobody has trusted what it holds.
    untrusted: Option<PathBuf>,
    /// The gate with the rules that were remembered meanwhile.
    overlay: RwLock<Option<Arc<Gate>>>,
    /// Not every file that rules deny to read could be hidden from a command.
    unhidden: AtomicBool,
}

impl Session {
    /// A session for the project at `root` under a loaded configuration.
    ///
    /// # Errors
    ///
    /// When the root or a setting cannot be used.
    pub fn new(root: &Path, loaded: Loaded) -> Result<Self, ExecError> {
        let remembered = loaded.remembered_file().map(RememberedFile::new);
        let untrusted = loaded.untrusted_file().map(Path::to_path_buf);
        let gate = Gate::new(root, loaded.policy, loaded.settings)?;
        let executor = Executor::builder(gate.root()).build()?;
        let overlay = RwLock::new(None);
        Ok(Self {
            gate: Arc::new(gate),
            executor,
            remembered,
            untrusted,
            overlay,
            unhidden: AtomicBool::new(false),
        })
    }

    /// Keeps what the sandbox's preflight finds in this directory of the user, for the next process.
    ///
    /// # Errors
    ///
    /// When the root cannot be used any more.
    pub fn keep_preflight(mut self, directory: &Path) -> Result<Self, ExecError> {
        self.executor = Executor::builder(self.gate.root()).keep_preflight(directory).build()?;
        Ok(self)
    }

    /// The same for a front door that runs nothing itself: see [`Gate::previewing`].
    #[must_use]
    pub fn previewing(mut self) -> Self {
        self.gate = Arc::new(Arc::unwrap_or_clone(self.gate).previewing());
        self
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The executor.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The project's policy file, where it is there and nobody has trusted its content, so that it only tightens.
    pub fn untrusted(&self) -> Option<&Path> {
        self.untrusted.as_deref()
    }

    /// What a person should know about the commands that have run so far.
    pub fn warnings(&self) -> Vec<&'static str> {
        if self.unhidden.load(Ordering::Relaxed) { vec![secrets::Secrets::WARNING] } else { Vec::new() }
    }

    /// Decides a request, asks if need be, runs it and records all of it.
    pub async fn perform(
        &self,
        request: Request,
        options: RunOptions,
        approver: &dyn Approver,
        recorder: &dyn Recorder,
    ) -> Reply {
        match self.admit(request, approver, recorder).await {
            Ok(admitted) => self.run_admitted(admitted, options, recorder).await,
            Err(reply) => *reply,
        }
    }

    /// Runs a request if it is known to be harmless, in a sandbox that lets it do no more than read; anything else is
    /// refused, and nobody is asked. All of it is recorded.
    pub async fn perform_harmless(
        &self,
        request: Request,
        options: RunOptions,
        recorder: &dyn Recorder,
    ) -> Reply {
        let gate = self.current();
        let decision = gate.decide_harmless(&request);
        let record = match recorder.decided(&request, &decision) {
            Ok(record) => record,
            Err(error) => return Reply::NotRecorded(error),
        };
        match gate.approve(request, &decision) {
            Some(approved) => {
                let options = RunOptions { reads_only: true, ..options };
                self.run_admitted(Admitted { approved, decision, record }, options, recorder).await
            }
            None => Reply::Refused(Box::new(decision)),
        }
    }

    /// What would be decided about a request now, the rules that were remembered meanwhile included. Nothing is recorded.
    pub fn decide(&self, request: &Request) -> Decision {
        self.current().decide(request)
    }

    /// The gate with what was remembered meanwhile.
    fn current(&self) -> Arc<Gate> {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        overlay.clone().unwrap_or_else(|| self.gate.clone())
    }

    async fn run_admitted(&self, admitted: Admitted, options: RunOptions, recorder: &dyn Recorder) -> Reply {
        let Admitted { approved, decision, record } = admitted;
        let end = self.run(&approved, options).await;
        let unrecorded = recorder.ended(record, approved.request(), &end).err();
        match end {
            Ok(finished) => Reply::Ran {
                decision: Box::new(decision),
                finished: Box::new(finished),
                unrecorded,
                action: Box::new(approved.request().action.clone()),
            },
            Err(error) => Reply::Failed(error),
        }
    }

    /// Decides a request and asks if need be, and records both. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// The reply to whoever asked, when it may not run.
    pub async fn admit(
        &self,
        request: Request,
        approver: &dyn Approver,
        recorder: &dyn Recorder,
    ) -> Result<Admitted, Box<Reply>> {
        self.admit_writing(request, None, approver, recorder).await
    }

    /// The same for a file tool that would write this content.
    ///
    /// # Errors
    ///
    /// As [`Session::admit`].
    pub async fn admit_writing(
        &self,
        request: Request,
        content: Option<&str>,
        approver: &dyn Approver,
        recorder: &dyn Recorder,
    ) -> Result<Admitted, Box<Reply>> {
        let gate = &*self.current();
        let decision = gate.decide(&request);
        let record = match recorder.decided(&request, &decision) {
            Ok(record) => record,
            Err(error) => return Err(Box::new(Reply::NotRecorded(error))),
        };
        let (approved, decision) = match decision.effect {
            Effect::Deny => return Err(Box::new(Reply::Refused(Box::new(decision)))),
            Effect::Allow => match gate.approve(request, &decision) {
                Some(approved) => (approved, decision),
                None => return Err(Box::new(Reply::Refused(Box::new(decision)))),
            },
            Effect::Ask => {
                let question = Question { request: &request, decision: &decision, content };
                let answer = approver.answer(question).await;
                if let Err(error) = recorder.answered(record, &request, &decision, &answer) {
                    return Err(Box::new(Reply::NotRecorded(error)));
                }
                let (approved, decision) = match self.after_answer(gate, request, decision, answer) {
                    Ok(approved) => approved,
                    Err(Unanswered::Denied { request, decision }) => {
                        return Err(Box::new(match recorder.decided_again(record, &request, &decision) {
                            Ok(()) => Reply::Refused(decision),
                            Err(error) => Reply::NotRecorded(error),
                        }));
                    }
                    Err(Unanswered::Refused(decision)) => return Err(Box::new(Reply::Refused(decision))),
                    Err(Unanswered::Deferred { request, decision }) => {
                        let kept = recorder.deferred(record, self, &request, &decision, content);
                        return Err(Box::new(match kept {
                            Ok(approval) => Reply::ApprovalRequired { decision, record, approval },
                            Err(error) => Reply::NotRecorded(error),
                        }));
                    }
                };
                if let Err(error) = recorder.decided_again(record, approved.request(), &decision) {
                    return Err(Box::new(Reply::NotRecorded(error)));
                }
                (approved, decision)
            }
        };
        Ok(Admitted { approved, decision, record })
    }

    /// What an approver's answer comes to (contract P7): the action, changed or not, is decided again and a deny holds;
    /// the rules to remember are checked as well, and one that may not be kept is left out and named.
    fn after_answer(
        &self,
        gate: &Gate,
        request: Request,
        decision: Decision,
        answer: Answer,
    ) -> Result<(Approved, Decision), Unanswered> {
        let (request, remember) = match answer {
            Answer::Approve { modified: Some(action), remember } => (Request { action, ..request }, remember),
            Answer::Approve { modified: None, remember } => (request, remember),
            Answer::Deny { reason } => {
                let reason = if reason.is_empty() { "the approver said no".to_owned() } else { reason };
                let mut refused = decision;
                refused.effect = Effect::Deny;
                refused.source = Source::Approver;
                refused.code = Some(DecisionCode::PermissionDenied);
                refused.reason = reason;
                return Err(Unanswered::Refused(Box::new(refused)));
            }
            Answer::Defer => {
                return Err(Unanswered::Deferred { request, decision: Box::new(decision) });
            }
        };
        let mut again = gate.decide(&request);
        let approved = match gate.approve_asked(request.clone()) {
            Ok(approved) => approved,
            Err(decision) => return Err(Unanswered::Denied { request, decision }),
        };
        again.effect = Effect::Allow;
        again.source = Source::Approver;
        again.code = None;
        for wish in &remember {
            if let Err(error) = self.remember(gate, wish) {
                again.reason = format!("{}; {error}", again.reason);
            }
        }
        Ok((approved, again))
    }

    /// Keeps a rule, if it may be kept: from now on in this session, and in the file where that was wished.
    fn remember(&self, gate: &Gate, wish: &Remember) -> Result<(), RememberError> {
        remember::check(&wish.rule, gate.policy())?;
        let file = || self.remembered.as_ref().ok_or(RememberError::NoDirectory);
        match wish.scope {
            Scope::Session => {}
            Scope::Project => file()?.add(&wish.rule, Some(self.gate.root()))?,
            Scope::User => file()?.add(&wish.rule, None)?,
        }
        let mut overlay = self.overlay.write().unwrap_or_else(PoisonError::into_inner);
        let latest = overlay.as_ref().unwrap_or(&self.gate).as_ref().clone();
        let layer = Layer::new("session").with_rule(wish.rule.clone());
        *overlay = Some(Arc::new(latest.with_layer(layer)));
        Ok(())
    }

    /// Runs what was approved.
    ///
    /// # Errors
    ///
    /// When nothing was started.
    pub async fn run(&self, approved: &Approved, options: RunOptions) -> Result<Finished, ExecError> {
        let mut finished = self.job(approved, options, false)?.run().await?;
        self.name_keys(&mut finished);
        Ok(finished)
    }

    /// Says which key of a policy file opens a protected path that a command was not let write.
    fn name_keys(&self, finished: &mut Finished) {
        for denial in finished.denials.iter_mut().filter(|denial| denial.rule == "protected") {
            let DeniedOperation::Write(path) = &denial.operation else { continue };
            let inside = path.strip_prefix(self.gate.root()).ok().and_then(Path::to_str);
            let Some(entry) = inside.and_then(|path| self.gate.settings().protecting(path)) else { continue };
            let limit = if entry == ".git" { "; hooks and configuration stay read-only" } else { "" };
            let _ = write!(
                denial.advice,
                " (`unprotected_paths = [{entry:?}]` in the user's policy file opens it{limit})"
            );
        }
    }

    /// Starts what was approved in the background. It dies with this session.
    ///
    /// # Errors
    ///
    /// When nothing was started; at most [`cmdgate_executor::background::MAX_LIVE`] run at once.
    pub async fn start(&self, approved: &Approved, options: RunOptions) -> Result<Background, ExecError> {
        self.job(approved, options, true)?.start().await
    }

    /// The longest that a shell command may run here. Only the hardened profile, in which nothing long can do harm,
    /// has a higher ceiling than [`SHELL_CEILING`] (contract H5).
    pub fn shell_ceiling(&self) -> Duration {
        let settings = self.gate.settings();
        let most = millis(settings.limits.max_timeout_ms).unwrap_or(SHELL_CEILING);
        if settings.profile == Some(ProfileName::Hardened) { most } else { most.min(SHELL_CEILING) }
    }

    /// The longest that a program may run here, and how long it runs when nothing is said (contract P10).
    pub fn exec_ceiling(&self) -> Duration {
        millis(self.gate.settings().limits.exec_timeout_ms).unwrap_or(EXEC_TIMEOUT)
    }

    /// How long a command may run in the foreground that asks for this time, or for none.
    pub fn time_limit(&self, action: &Action, asked: Option<Duration>) -> Duration {
        let (usual, ceiling) = match action {
            Action::Exec(_) => (self.exec_ceiling(), self.exec_ceiling()),
            Action::Shell(_) | Action::Read(_) | Action::Write(_) => {
                let usual = millis(self.gate.settings().limits.timeout_ms).unwrap_or(SHELL_TIMEOUT);
                (usual, self.shell_ceiling())
            }
        };
        asked.unwrap_or(usual).min(ceiling)
    }

    /// The advice for a command that a dedicated tool would have done (contract H6), where advice is wanted.
    pub fn hint(&self, decision: &Decision) -> Option<String> {
        if self.gate.settings().hints != Some(true) {
            return None;
        }
        let [argv] = decision.commands.argvs.as_slice() else { return None };
        let program = argv.first()?;
        self.gate.policy().hint(program).map(|hint| format!("hint: {hint}, instead of `{program}`"))
    }

    fn job(&self, approved: &Approved, options: RunOptions, background: bool) -> Result<Job, ExecError> {
        let settings = self.gate.settings();
        let limits = settings.limits;
        let (job, timeout, ceiling, keep) = match &approved.request().action {
            // What runs in the background is polled and killed; only the longer ceiling ends it unasked.
            Action::Shell(command) if background => {
                (self.executor.shell(command), self.exec_ceiling(), self.exec_ceiling(), Keep::Head)
            }
            Action::Shell(command) => (
                self.executor.shell(command),
                millis(limits.timeout_ms).unwrap_or(SHELL_TIMEOUT),
                self.shell_ceiling(),
                Keep::Head,
            ),
            Action::Exec(argv) => {
                (self.executor.argv(argv), self.exec_ceiling(), self.exec_ceiling(), Keep::HeadAndTail)
            }
            Action::Read(_) | Action::Write(_) => return Err(ExecError::EmptyCommand),
        };
        let base = if approved.provision().clean_environment {
            Environment::allowlist()
        } else {
            environment(settings, matches!(approved.request().action, Action::Exec(_)))
        };
        let limit = options.timeout.unwrap_or(timeout);
        // A control group takes as long as a short command to make, and bounds the processes of root, which nothing else
        // does: for what may run long.
        let group = limit.min(ceiling) > SHELL_CEILING && !options.in_place;
        let job = match options.timeout {
            None if options.in_place => job,
            Some(_) | None => job.timeout(limit).ceiling(ceiling),
        };
        let mut job = job
            .workdir(approved.workdir())
            .sandbox(self.sandbox(approved, &options))
            .limits(Limits { group, ..kernel_limits(settings) })
            .environment(base)
            .output(OutputMode {
                keep,
                max_chars: count(limits.output_chars).unwrap_or(10_240),
                max_lines: count(limits.output_lines).or(Some(256)),
                spill: options.spill,
                echo: options.echo,
                ..OutputMode::default()
            });
        let provision = approved.provision();
        if options.inherit_environment && !provision.clean_environment && !provision.listed_environment {
            job = job.inherit_environment();
        }
        for (name, value) in &approved.provision().environment {
            job = job.env(name, value);
        }
        if options.in_place && !approved.provision().null_stdin {
            job = job.own_input();
        }
        if let Some(token) = options.cancel {
            job = job.cancel(token);
        }
        Ok(job)
    }

    /// The sandbox of an approved run.
    fn sandbox(&self, approved: &Approved, options: &RunOptions) -> Sandbox {
        let &RunOptions { confined, reads_only, .. } = options;
        let settings = self.gate.settings();
        let root = self.gate.root();
        let folders = |list: &Option<Vec<String>>| {
            list.iter().flatten().map(|text| config::expand_home(root, text)).collect::<Vec<_>>()
        };
        let mode = match self.gate.mode() {
            SandboxMode::ReadOnly => Mode::ReadOnly,
            SandboxMode::WorkspaceWrite if reads_only => Mode::ReadOnly,
            SandboxMode::WorkspaceWrite => Mode::WorkspaceWrite,
            SandboxMode::DangerFullAccess if confined => Mode::WorkspaceWrite,
            SandboxMode::DangerFullAccess => return Sandbox::danger_full_access(),
        };
        let network = match settings.network.allow_domains.as_deref() {
            None | Some([]) => Network::Off,
            Some(_) if confined || reads_only => Network::Off,
            Some(allowed) => {
                Network::Domains(DomainRules::allowing(allowed).denying(&settings.network.deny_domains))
            }
        };
        let reads =
            if approved.provision().confine_reads { Reads::ProjectAndSystem } else { Reads::Everything };
        let open = settings.unprotected_paths.iter().flatten();
        let protected = open.fold(PathList::default_protected(), |list, entry| list.without(entry));
        let protected = settings.protected().map(unescaped).fold(protected, PathList::with);
        // What the user allows, and the record, wherever the project lies: it may be the home directory.
        let users = UserDirs::from_environment();
        let own = [users.config, users.state].into_iter().flatten();
        let protected = own
            .map(|directory| std::fs::canonicalize(&directory).unwrap_or(directory))
            .filter_map(|directory| directory.to_str().map(str::to_owned))
            .fold(protected, PathList::with);
        // Contract P8: what a rule denies to read is not there, whatever opens it. `secrets` are such rules.
        let secrets = secrets::find(root, self.gate.policy(), Timestamp::from(SystemTime::now()));
        if secrets.incomplete {
            self.unhidden.store(true, Ordering::Relaxed);
        }
        let hidden = settings
            .secrets
            .iter()
            .map(String::as_str)
            .chain(secrets.paths.iter().filter_map(|path| path.to_str()))
            .fold(PathList::default_hidden(), PathList::with);
        Sandbox {
            mode,
            network,
            reads,
            writable_roots: folders(&settings.write_roots),
            read_roots: folders(&settings.read_roots),
            protected,
            hidden,
            ..Sandbox::default()
        }
    }
}

/// A path as the sandbox takes it: in the patterns of a policy, a backslash takes the meaning off what follows.
fn unescaped(pattern: &str) -> String {
    let mut characters = pattern.chars();
    std::iter::from_fn(|| match characters.next()? {
        '\\' => characters.next(),
        character => Some(character),
    })
    .collect()
}

/// Why an ask did not become a run.
enum Unanswered {
    /// Approved, and denied when it was decided again.
    Denied { request: Request, decision: Box<Decision> },
    /// The approver said no.
    Refused(Box<Decision>),
    /// Nobody answered.
    Deferred { request: Request, decision: Box<Decision> },
}

fn millis(value: Option<NonZeroU64>) -> Option<Duration> {
    value.map(|value| Duration::from_millis(value.get()))
}

fn count(value: Option<NonZeroU64>) -> Option<usize> {
    value.and_then(|value| usize::try_from(value.get()).ok())
}

fn kernel_limits(settings: &Settings) -> Limits {
    let limits = settings.limits;
    let plain = |value: Option<NonZeroU64>| value.map(NonZeroU64::get);
    let defaults = Limits::default();
    Limits {
        processes: plain(limits.processes).or(defaults.processes),
        open_files: plain(limits.open_files).or(defaults.open_files),
        file_size: plain(limits.file_size_bytes).or(defaults.file_size),
        memory: plain(limits.memory_bytes).or(defaults.memory),
        cpu_seconds: plain(limits.cpu_seconds).or(defaults.cpu_seconds),
        ..defaults
    }
}

fn environment(settings: &Settings, toolchains: bool) -> Environment {
    let base = if toolchains { Environment::allowlist().toolchains() } else { Environment::allowlist() };
    settings.environment.add.iter().flatten().fold(base, Environment::pass)
}
