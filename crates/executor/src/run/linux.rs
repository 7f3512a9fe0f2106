//! Running on Linux: bubblewrap, or nothing but control groups.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::process::Resource;

use super::{Attempt, Prepared, Watch, Words, extra_roots, lexical, search_path, unconfined};
use crate::bounds::{self, Bounds, Situation};
use crate::error::{ExecError, Stage};
use crate::find::{self, Binary};
use crate::job::{Command, Settings};
use crate::kill::{Mark, Tree};
use crate::limits::{Holds, LimitKind, LimitStatus};
use crate::outcome::{
    Backend, Enforced, Finished, KillStrength, NetworkEnforced, NotStarted, Outcome, UnixSockets,
};
use crate::output::Keep;
use crate::plan::{Access, Operation, Plan};
use crate::preflight::{self, Question, Ready, kept};
use crate::process::{self, Hold, Launch};
use crate::proxy::{self, Proxy, Serving};
use crate::pty::{self, Pty};
use crate::sandbox::bwrap::{self, Descriptors};
use crate::sandbox::remedy::{self, Facts};
use crate::sandbox::{Mode, Network, Rung, seccomp};
use crate::scan::Scan;
use crate::session::Session;
use crate::supervise::{self, Control, End, Ended, Output};

/// How often a sandbox that could not be put together is tried again. A file that comes and goes by the millisecond
/// is away at every second try, and comes back to break another one of bubblewrap's steps.
const ATTEMPTS: usize = 8;

impl Prepared {
    /// Finds the sandbox and shows that it holds; the answer is remembered. `anew` forgets what was.
    async fn ready(&self, session: &Session, anew: bool) -> Result<Ready, ExecError> {
        let mut untrusted = vec![self.core.root.clone(), session.tmp()];
        untrusted.extend(extra_roots(&self.settings)?);
        let binary = find::bwrap(self.core.bwrap.as_deref(), &search_path(), &untrusted).map_err(|text| {
            let remedy = remedy::install(&Facts::gather(Path::new("/usr/bin/bwrap")));
            ExecError::SandboxUnavailable { stage: Stage::Find, text, remedy }
        })?;
        let question = Question {
            binary: &binary,
            floor: self.settings.sandbox.lowest_rung,
            session,
            homes: &self.core.homes,
            kept: kept::usable(self.core.kept.as_deref(), &untrusted),
        };
        if anew { preflight::anew(question).await } else { preflight::ready(question).await }
    }

    /// Refuses what would be refused anyway, before anything is started.
    pub(crate) async fn check(&self) -> Result<(), ExecError> {
        self.proxy()?;
        if bwrap::confines(self.settings.sandbox.mode) {
            self.ready(&*self.core.session()?, false).await?;
        }
        Ok(())
    }

    pub(super) async fn run_confined(self, control: &Control) -> Result<Finished, ExecError> {
        let session = self.core.session()?;
        let mut ready = self.ready(&session, false).await?;
        let mut fleeting = Vec::new();
        let mut attempt = self.attempt(&session, &ready, &fleeting, control).await?;
        // Between the plan and the mounts a file may go away (a socket of another program, a lock file). Nothing
        // was executed then, and a new plan does not insist on it.
        for _ in 0..ATTEMPTS {
            let Outcome::SandboxFailed { stage: Stage::SetUp, text, .. } = &attempt.outcome else { break };
            fleeting.extend(vanished(text));
            self.captures.reset(&self.settings.output);
            if ready.recalled {
                // What another process found does not hold for this one.
                ready = self.ready(&session, true).await?;
            }
            attempt = self.attempt(&session, &ready, &fleeting, control).await?;
        }
        Ok(self.concluded(attempt))
    }

    async fn attempt(
        &self,
        session: &Session,
        ready: &Ready,
        fleeting: &[PathBuf],
        control: &Control,
    ) -> Result<Attempt, ExecError> {
        let mut plan = self.planned(&session.tmp());
        plan.tolerate(fleeting);
        let situation =
            Situation { root: ready.features.root, sandboxed: true, sized_mounts: ready.features.size };
        let bounds = self.bounds(situation)?;
        let enforced = enforced(&self.settings, &plan, ready, bounds.statuses.clone());
        let mut gate =
            Gate { resources: bounds.resources.clone(), proxy: self.proxy()?, serving: None, failed: None };
        let words = match self.words(&|path| seen(&plan, path)) {
            Ok(words) => words,
            Err(reason) => {
                return Ok(Attempt {
                    outcome: Outcome::NotStarted(reason),
                    enforced,
                    network: Vec::new(),
                    denials: Vec::new(),
                    scan: None,
                    plan,
                });
            }
        };
        let sandbox = &self.settings.sandbox;
        let mut watch = Watch((sandbox.mode == Mode::WorkspaceWrite).then(|| {
            Scan::before(&plan, sandbox.git, sandbox.after_run, sandbox.scan_entries, session.quarantine())
        }));
        let started = self.start(ready, &plan, bounds, words, control, &mut gate).await;
        let (denials, scan) = watch.end().await;
        let network = gate.serving.map(|serving| serving.decisions()).unwrap_or_default();
        let outcome = match (started, gate.failed) {
            (_, Some((stage, text))) => {
                let remedy = remedy::set_up(&text, &Facts::gather(&ready.binary.path));
                Outcome::SandboxFailed { stage, text, remedy }
            }
            (Ok(ended), None) => {
                let message = self.said_on_stderr();
                confined_outcome(&ended, &message, &self.command, &ready.binary)
            }
            (Err(error), None) => Outcome::NotStarted(NotStarted::System { reason: error.to_string() }),
        };
        Ok(Attempt { outcome, enforced, network, denials, scan, plan })
    }

    async fn start(
        &self,
        ready: &Ready,
        plan: &Plan,
        bounds: Bounds,
        words: Words,
        control: &Control,
        gate: &mut Gate,
    ) -> io::Result<Ended> {
        let (streams, output) = self.streams()?;
        let (status_read, status_write) = process::pipe()?;
        let (block_read, block_write) = process::block()?;
        let [refuse, absent] =
            seccomp::filters(plan.refuse_unix_sockets.is_none()).map_err(io::Error::other)?;
        let (refuse, absent) = (process::filled_pipe(refuse)?, process::filled_pipe(absent)?);
        let descriptors = Descriptors {
            seccomp: [process::number(&refuse), process::number(&absent)],
            status: process::number(&status_write),
            block: process::number(&block_read),
            terminal: self.settings.terminal.is_some(),
        };
        // The loader's variables would act on bubblewrap itself: they are set inside only.
        let (loader, environment): (Vec<_>, Vec<_>) = self
            .environment
            .iter()
            .cloned()
            .partition(|(name, _)| name.as_bytes().starts_with(b"LD_") || name == "GLIBC_TUNABLES");
        let mut arguments = Vec::new();
        for (name, value) in loader {
            arguments.extend(["--setenv".into(), name, value]);
        }
        arguments.extend(bwrap::arguments(plan, ready.features, descriptors, &words.argv));
        let mut keep = vec![refuse, absent, status_write, block_read];
        keep.extend(words.script);
        let launch = Launch {
            program: ready.binary.path.clone(),
            arguments,
            environment,
            directory: PathBuf::from("/"),
            streams,
            keep,
            groups: bounds.entries,
            resources: Vec::new(),
            hold: Some(Hold { block: block_write, status: status_read }),
            tree: None,
            session: false,
            terminal: self.settings.terminal.is_some(),
            outlives: false,
        };
        // Until the sandbox stands only bubblewrap speaks, perhaps about an attempt that comes to nothing.
        self.captures.set_echo(false);
        let ended = supervise::confined(launch, output, control, |child| {
            gate.open(child)?;
            self.captures.set_echo(self.settings.output.echo);
            Ok(())
        })
        .await;
        drop(bounds.leaf);
        ended
    }

    pub(super) async fn run_unconfined(mut self, control: &Control) -> Result<Finished, ExecError> {
        let root = rustix::process::geteuid().is_root();
        let bounds = self.bounds(Situation { root, sandboxed: false, sized_mounts: false })?;
        if !bounds.leaf.kills() {
            // Orphans of the command can only be found and ended as children of this process.
            process::adopt_orphans().map_err(ExecError::io("become the parent of orphaned processes"))?;
        }
        let kill = if bounds.leaf.kills() { KillStrength::ControlGroup } else { KillStrength::Subreaper };
        let enforced = unconfined(kill, bounds.statuses.clone());
        let words = match self.words(&|path| Some(path.to_owned())) {
            Ok(words) => words,
            Err(reason) => return Ok(self.not_started(reason, enforced)),
        };
        let mark = Mark::new();
        let (name, value) = mark.variable();
        self.environment.push((name.into(), value.into()));
        let ended = self.start_unconfined(bounds, words, mark, control).await;
        Ok(self.ended_unconfined(ended, enforced))
    }

    async fn start_unconfined(
        &self,
        bounds: Bounds,
        words: Words,
        mark: Mark,
        control: &Control,
    ) -> io::Result<Ended> {
        let (streams, output) = self.streams()?;
        let mut resources = bounds.resources;
        resources.push(mark.resource());
        let launch = Launch {
            program: words.program,
            arguments: words.argv.into_iter().skip(1).collect(),
            environment: self.environment.clone(),
            directory: self.workdir.clone(),
            streams,
            keep: words.script.into_iter().collect(),
            groups: bounds.entries,
            resources,
            hold: None,
            tree: Some(Tree::new(mark, bounds.leaf)),
            session: true,
            terminal: self.settings.terminal.is_some(),
            outlives: false,
        };
        supervise::unconfined(launch, output, control).await
    }

    /// The beginning of standard error, which a terminal gives out with everything else.
    fn said_on_stderr(&self) -> String {
        let captures = &self.captures;
        let side = if self.settings.terminal.is_some() { captures.stdout() } else { captures.stderr() };
        side.snapshot(Keep::Head).head
    }

    /// The command's standard streams, and our ends of them.
    fn streams(&self) -> io::Result<([OwnedFd; 3], Output)> {
        if let Some(size) = self.settings.terminal {
            let (controller, streams) = Pty::open(size)?.split()?;
            pty::end_input(&controller)?;
            return Ok((streams, Output::terminal(controller, self.captures.clone())?));
        }
        let (out_read, out_write) = process::pipe()?;
        let (err_read, err_write) = process::pipe()?;
        let output = Output::new(out_read, err_read, self.captures.clone())?;
        Ok(([crate::input::open(self.settings.own_input)?, out_write, err_write], output))
    }

    fn bounds(&self, situation: Situation) -> Result<Bounds, ExecError> {
        let mut bounds = Bounds::prepare(&self.settings.limits, situation);
        bounds.statuses.extend(process::guard_shortcoming().map(|reason| LimitStatus {
            kind: LimitKind::EndsWithCaller,
            value: 0,
            holds: Holds::Unenforced(reason),
        }));
        if self.settings.limits.required
            && let Some((name, reason)) = bounds.unenforced()
        {
            return Err(ExecError::SandboxUnavailable {
                stage: Stage::Limits,
                text: format!("the limit `{name}` cannot be put in force: {reason}"),
                remedy: "run where a control group can be made, or accept it by not setting `required`"
                    .to_owned(),
            });
        }
        Ok(bounds)
    }
}

/// The path that bubblewrap wanted to mount and did not find.
fn vanished(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("Can't find source path ")?;
    rest.split_once(": No such file or directory").map(|(path, _)| PathBuf::from(path))
}

/// What is done while the sandbox stands and the command has not been executed yet.
#[derive(Debug)]
struct Gate {
    resources: Vec<(Resource, u64)>,
    proxy: Option<Proxy>,
    serving: Option<Serving>,
    failed: Option<(Stage, String)>,
}

impl Gate {
    fn open(&mut self, child: i32) -> io::Result<()> {
        bounds::prefer_for_oom(child);
        let limits = bounds::set_limits(child, &self.resources);
        if limits.is_err() && !process::lives(child) {
            // The sandbox has failed meanwhile, which its exit will tell.
            return Ok(());
        }
        self.note(Stage::Limits, limits)?;
        if let (Some(proxy), Ok(pid)) = (self.proxy.take(), u32::try_from(child)) {
            let serving = proxy::listen_inside(pid, proxy::PORT).and_then(|listener| proxy.serve(listener));
            if serving.is_err() && !process::lives(child) {
                return Ok(());
            }
            self.serving = Some(self.note(Stage::Proxy, serving)?);
        }
        Ok(())
    }

    fn note<T>(&mut self, stage: Stage, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.failed = Some((stage, error.to_string()));
        }
        result
    }
}

/// Where a path that a confined command would see lies on the host; `None` when it cannot see it.
fn seen(plan: &Plan, path: &Path) -> Option<PathBuf> {
    let clean = lexical(path);
    let host = match (&plan.session_tmp, clean.strip_prefix("/tmp")) {
        (Some(session), Ok(rest)) if !clean.starts_with(&plan.root) => session.join(rest),
        _ => clean.clone(),
    };
    let real = std::fs::canonicalize(&host).ok()?;
    // What a link in the private /tmp leads to is looked up as the command would see it.
    let real_inside = match &plan.session_tmp {
        Some(session) => {
            real.strip_prefix(session).map_or_else(|_| real.clone(), |rest| Path::new("/tmp").join(rest))
        }
        None => real.clone(),
    };
    (plan.decide(Operation::Read, &real_inside) == Access::Allow).then_some(host)
}

fn enforced(settings: &Settings, plan: &Plan, ready: &Ready, limits: Vec<LimitStatus>) -> Enforced {
    Enforced {
        mode: settings.sandbox.mode,
        backend: Backend::Bubblewrap { path: ready.binary.path.clone(), version: ready.version.clone() },
        rung: Some(ready.features.rung),
        user_namespace: true,
        pid_namespace: true,
        nested_namespaces_disabled: ready.features.rung == Rung::Full,
        seccomp: true,
        network: match plan.network {
            Network::Off => NetworkEnforced::Closed,
            Network::Domains(_) => NetworkEnforced::ProxyOnly,
            Network::On => NetworkEnforced::Open,
        },
        unix_sockets: match plan.refuse_unix_sockets {
            None => UnixSockets::OwnOnly,
            Some(reason) => UnixSockets::Refused(reason.to_owned()),
        },
        reads: plan.reads,
        kill: KillStrength::Namespace,
        limits,
    }
}

fn confined_outcome(ended: &Ended, message: &str, command: &Command, binary: &Binary) -> Outcome {
    let signal = ended.status.and_then(|status: ExitStatus| supervise::code_or_signal(status).err());
    match (ended.end, ended.reported, signal) {
        (End::TimedOut, _, _) => Outcome::TimedOut { kill_incomplete: ended.kill_incomplete },
        (End::Cancelled, _, _) => Outcome::Cancelled { kill_incomplete: ended.kill_incomplete },
        (End::Exited, Some(code), _) => Outcome::Exited(code),
        // Somebody killed the monitor: whether the command had been executed is not known.
        (End::Exited, None, Some(signal)) => Outcome::Signaled(signal),
        (End::Exited, None, None) => {
            let text = message.trim().to_owned();
            // Nothing was executed, so these words are bubblewrap's own. The last thing it does is execvp.
            if let (Command::Argv(words), true) = (command, text.contains("execvp")) {
                let program =
                    words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
                return Outcome::NotStarted(NotStarted::NotExecutable { program, reason: text });
            }
            let remedy = remedy::set_up(&text, &Facts::gather(&binary.path));
            Outcome::SandboxFailed { stage: Stage::SetUp, text, remedy }
        }
    }
}

/// A long shell command, in a file that bash reads: the path to name, and the descriptor that it needs.
pub(super) fn script(text: &[u8]) -> io::Result<(PathBuf, OwnedFd)> {
    let script = process::sealed_file("command", text)?;
    Ok((PathBuf::from(format!("/dev/fd/{}", process::number(&script))), script))
}

/// Does something once the tree of a dropped run has been ended.
pub(super) fn tidy_later(work: impl FnOnce() + Send + 'static) {
    // In turn after the work that waits for the killed tree to be gone.
    process::tidy_later(work);
}
