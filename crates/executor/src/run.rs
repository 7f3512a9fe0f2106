//! From a job to a finished run: checks, plan, start, outcome.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Resource;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounds::{self, Bounds, Situation};
use crate::denial;
use crate::environment::Place;
use crate::error::{ExecError, Stage, WorkdirProblem};
use crate::executor::Core;
use crate::find::{self, Binary};
use crate::job::{Command, Settings};
use crate::kill::{self, Tree};
use crate::limits::LimitStatus;
use crate::outcome::{
    Backend, Denial, Enforced, Finished, KillStrength, NetworkEnforced, NotStarted, Outcome, Scanned,
    UnixSockets,
};
use crate::output::Keep;
use crate::plan::{self, Access, Operation, Plan};
use crate::preflight::{self, Ready};
use crate::process::{self, Hold, Launch};
use crate::proxy::{self, NetworkDecision, Proxy, Serving};
use crate::pty::{self, Pty};
use crate::sandbox::bwrap::{self, Descriptors};
use crate::sandbox::remedy::{self, Facts};
use crate::sandbox::{Mode, Network, Reads, Rung, seccomp};
use crate::scan::Scan;
use crate::session::Session;
use crate::supervise::{self, Captures, Control, End, Ended, Output};
use crate::view::HostView;

/// Longest single argument the kernel takes is 128 KiB (`MAX_ARG_STRLEN`, execve(2)), the final NUL included.
/// A longer shell command is read by bash from a sealed file in memory.
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// How often a sandbox that could not be put together is tried again.
const ATTEMPTS: usize = 3;

/// A run that has been checked and not been started.
#[derive(Debug)]
pub(crate) struct Prepared {
    core: Arc<Core>,
    command: Command,
    settings: Settings,
    workdir: PathBuf,
    environment: Vec<(OsString, OsString)>,
    pub(crate) captures: Arc<Captures>,
}

/// Checks everything that can be checked without starting anything.
pub(crate) fn prepare(core: Arc<Core>, command: Command, settings: Settings) -> Result<Prepared, ExecError> {
    check_command(&command)?;
    let writable = extra_roots(&settings)?;
    let workdir = workdir(&core, &settings, &writable)?;
    let mut untrusted = vec![core.root.clone()];
    untrusted.extend(writable);
    let place = Place {
        private_tmp: bwrap::confines(settings.sandbox.mode),
        untrusted: &untrusted,
        terminal: settings.terminal.is_some(),
    };
    let mut environment = settings.environment.compute(std::env::vars_os(), place)?;
    if bwrap::confines(settings.sandbox.mode) && matches!(settings.sandbox.network, Network::Domains(_)) {
        let inside = proxy::inside_environment();
        environment.retain(|(name, _)| !inside.iter().any(|(known, _)| name == known));
        environment.extend(inside.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
    let captures = Arc::new(Captures::new(&settings.output));
    Ok(Prepared { core, command, settings, workdir, environment, captures })
}

fn check_command(command: &Command) -> Result<(), ExecError> {
    let nul = |text: &OsStr| text.as_bytes().contains(&0);
    match command {
        Command::Shell(text) => {
            if text.as_bytes().iter().all(u8::is_ascii_whitespace) {
                return Err(ExecError::EmptyCommand);
            }
            if nul(text) {
                return Err(ExecError::NulByte { what: "command".to_owned() });
            }
        }
        Command::Argv(words) => {
            if words.first().is_none_or(|program| program.is_empty()) {
                return Err(ExecError::EmptyCommand);
            }
            if let Some(index) = words.iter().position(|word| nul(word)) {
                return Err(ExecError::NulByte { what: format!("argument {index}") });
            }
        }
    }
    Ok(())
}

/// The extra writable roots, symlinks resolved.
fn extra_roots(settings: &Settings) -> Result<Vec<PathBuf>, ExecError> {
    let sandbox = &settings.sandbox;
    let refuse =
        |path: &Path, reason: &str| ExecError::ExtraRoot { path: path.to_owned(), reason: reason.to_owned() };
    if let Some(path) = sandbox.read_roots.iter().find(|path| !path.is_absolute()) {
        return Err(refuse(path, "it is not absolute"));
    }
    if sandbox.mode != Mode::WorkspaceWrite {
        return Ok(Vec::new());
    }
    sandbox
        .writable_roots
        .iter()
        .map(|path| {
            if !path.is_absolute() {
                return Err(refuse(path, "it is not absolute"));
            }
            let real = std::fs::canonicalize(path).map_err(|error| refuse(path, &error.to_string()))?;
            if let Some(reason) = crate::executor::unfit_root(&real) {
                return Err(refuse(path, reason));
            }
            Ok(real)
        })
        .collect()
}

/// Resolves the working directory twice: by name, and by what the name really leads to.
fn workdir(core: &Core, settings: &Settings, writable: &[PathBuf]) -> Result<PathBuf, ExecError> {
    let given = &settings.workdir;
    let refuse = |problem| ExecError::Workdir { path: given.clone(), problem };
    let mut allowed: Vec<&Path> = vec![&core.root];
    allowed.extend(writable.iter().map(PathBuf::as_path));
    allowed.extend(settings.sandbox.read_roots.iter().map(PathBuf::as_path));
    if given.as_os_str().as_bytes().contains(&0) {
        return Err(refuse(WorkdirProblem::Missing));
    }
    let named = lexical(&core.root.join(given));
    let within = |path: &Path, roots: &[&Path]| roots.iter().any(|root| path.starts_with(root));
    if !within(&named, &allowed) && !named.starts_with(&core.root_as_given) {
        return Err(refuse(WorkdirProblem::OutsideAllowedRoot));
    }
    let real = std::fs::canonicalize(core.root.join(given)).map_err(|error| {
        let kind = error.kind();
        refuse(if kind == io::ErrorKind::NotFound {
            WorkdirProblem::Missing
        } else if kind == io::ErrorKind::NotADirectory {
            WorkdirProblem::NotADirectory
        } else {
            WorkdirProblem::Unreadable
        })
    })?;
    let real_roots: Vec<PathBuf> =
        allowed.iter().filter_map(|root| std::fs::canonicalize(root).ok()).collect();
    if !real_roots.iter().any(|root| real.starts_with(root)) {
        return Err(refuse(WorkdirProblem::OutsideAllowedRoot));
    }
    if !real.is_dir() {
        return Err(refuse(WorkdirProblem::NotADirectory));
    }
    if rustix::fs::access(&real, rustix::fs::Access::EXEC_OK).is_err() {
        return Err(refuse(WorkdirProblem::Unreadable));
    }
    Ok(real)
}

/// A path with `.` and `..` taken out by name alone.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// Where bash is.
pub(crate) fn bash() -> Option<PathBuf> {
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"]
        .iter()
        .map(PathBuf::from)
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

impl Prepared {
    /// Runs to the end.
    pub(crate) async fn run(self) -> Result<Finished, ExecError> {
        let started = Instant::now();
        let limit = [self.settings.timeout, self.settings.ceiling].into_iter().flatten().min();
        let control = Control {
            deadline: limit.and_then(|limit| started.checked_add(limit)),
            cancel: self.settings.cancel.clone().unwrap_or_default(),
        };
        let mut finished = match self.settings.sandbox.mode {
            Mode::ReadOnly | Mode::WorkspaceWrite => self.run_confined(&control).await?,
            Mode::DangerFullAccess => self.run_unconfined(&control).await?,
        };
        finished.duration = started.elapsed();
        Ok(finished)
    }

    /// Finds the sandbox and shows that it holds; the answer is remembered.
    async fn ready(&self, session: &Session) -> Result<Ready, ExecError> {
        let mut untrusted = vec![self.core.root.clone(), session.tmp()];
        untrusted.extend(extra_roots(&self.settings)?);
        let binary = find::bwrap(self.core.bwrap.as_deref(), &search_path(), &untrusted).map_err(|text| {
            let remedy = remedy::install(&Facts::gather(Path::new("/usr/bin/bwrap")));
            ExecError::SandboxUnavailable { stage: Stage::Find, text, remedy }
        })?;
        let floor = self.settings.sandbox.lowest_rung;
        preflight::ready(&binary, floor, session, &self.core.homes).await
    }

    /// Refuses what would be refused anyway, before anything is started.
    pub(crate) async fn check(&self) -> Result<(), ExecError> {
        self.proxy()?;
        if bwrap::confines(self.settings.sandbox.mode) {
            self.ready(&*self.core.session()?).await?;
        }
        Ok(())
    }

    /// Ends the run when this is cancelled, besides the caller's own token.
    pub(crate) fn also_cancelled_by(&mut self, token: &CancellationToken) {
        let own = token.child_token();
        if let Some(callers) = self.settings.cancel.replace(own.clone()) {
            let linked = own.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = callers.cancelled() => linked.cancel(),
                    () = linked.cancelled() => {}
                }
            });
        }
    }

    async fn run_confined(self, control: &Control) -> Result<Finished, ExecError> {
        let session = self.core.session()?;
        let ready = self.ready(&session).await?;
        let mut attempt = self.attempt(&session, &ready, control).await?;
        // Between the plan and the mounts a file may go away (a socket of another program, a lock file). Nothing
        // was executed then, and a new plan does not name it.
        for _ in 0..ATTEMPTS {
            if !matches!(attempt.outcome, Outcome::SandboxFailed { stage: Stage::SetUp, .. }) {
                break;
            }
            self.captures.reset(&self.settings.output);
            attempt = self.attempt(&session, &ready, control).await?;
        }
        let Attempt { outcome, enforced, network, mut denials, scan, plan } = attempt;
        let mut finished = self.finished(outcome, enforced);
        let code = match finished.outcome {
            Outcome::Exited(code) => Some(code),
            Outcome::Signaled(_)
            | Outcome::TimedOut { .. }
            | Outcome::Cancelled { .. }
            | Outcome::SandboxFailed { .. }
            | Outcome::NotStarted(_) => None,
        };
        denials.extend(denial::reported(code, &network));
        if !matches!(finished.outcome, Outcome::SandboxFailed { .. } | Outcome::NotStarted(_)) {
            for stream in [&finished.stderr, &finished.stdout] {
                denials.extend(denial::likely(&plan, &stream.head));
                denials.extend(denial::likely(&plan, &stream.tail));
            }
        }
        finished.denials = denials;
        finished.network = network;
        finished.scan = scan;
        Ok(finished)
    }

    async fn attempt(
        &self,
        session: &Session,
        ready: &Ready,
        control: &Control,
    ) -> Result<Attempt, ExecError> {
        let core = &self.core;
        let session_tmp = session.tmp();
        let request = plan::Request {
            sandbox: &self.settings.sandbox,
            root: &core.root,
            root_as_given: &core.root_as_given,
            workdir: &self.workdir,
            homes: &core.homes,
            session_tmp: Some(&session_tmp),
            shared_memory: self.settings.limits.shared_memory,
        };
        let plan = plan::plan(&request, &HostView);
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
        let (block_read, block_write) = process::pipe()?;
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
        };
        let ended = supervise::confined(launch, output, control, |child| gate.open(child)).await;
        drop(bounds.leaf);
        ended
    }

    async fn run_unconfined(mut self, control: &Control) -> Result<Finished, ExecError> {
        let root = rustix::process::geteuid().is_root();
        let bounds = self.bounds(Situation { root, sandboxed: false, sized_mounts: false })?;
        if !bounds.leaf.kills() {
            // Orphans of the command can only be found and ended as children of this process.
            process::adopt_orphans().map_err(ExecError::io("become the parent of orphaned processes"))?;
        }
        let enforced = Enforced {
            mode: Mode::DangerFullAccess,
            backend: Backend::None,
            rung: None,
            user_namespace: false,
            pid_namespace: false,
            nested_namespaces_disabled: false,
            seccomp: false,
            network: NetworkEnforced::Open,
            unix_sockets: UnixSockets::Open,
            reads: Reads::Everything,
            kill: if bounds.leaf.kills() { KillStrength::ControlGroup } else { KillStrength::Subreaper },
            limits: bounds.statuses.clone(),
        };
        let words = match self.words(&|path| Some(path.to_owned())) {
            Ok(words) => words,
            Err(reason) => return Ok(self.not_started(reason, enforced)),
        };
        let mark = mark();
        self.environment.push((kill::MARK.into(), mark.clone().into()));
        match self.start_unconfined(bounds, words, mark, control).await {
            Ok(ended) => {
                let outcome = match (ended.end, ended.status.map(supervise::code_or_signal)) {
                    (End::TimedOut, _) => Outcome::TimedOut { kill_incomplete: ended.kill_incomplete },
                    (End::Cancelled, _) => Outcome::Cancelled { kill_incomplete: ended.kill_incomplete },
                    (End::Exited, Some(Ok(code))) => Outcome::Exited(code),
                    (End::Exited, Some(Err(signal))) => Outcome::Signaled(signal),
                    (End::Exited, None) => {
                        Outcome::NotStarted(NotStarted::System { reason: "its status was lost".to_owned() })
                    }
                };
                Ok(self.finished(outcome, enforced))
            }
            Err(error) => {
                let program = self.program();
                let kind = error.kind();
                let reason = if kind == io::ErrorKind::NotFound {
                    NotStarted::ProgramNotFound { program }
                } else if kind == io::ErrorKind::PermissionDenied {
                    NotStarted::NotExecutable { program, reason: error.to_string() }
                } else {
                    NotStarted::System { reason: error.to_string() }
                };
                Ok(self.not_started(reason, enforced))
            }
        }
    }

    async fn start_unconfined(
        &self,
        bounds: Bounds,
        words: Words,
        mark: String,
        control: &Control,
    ) -> io::Result<Ended> {
        let (streams, output) = self.streams()?;
        let launch = Launch {
            program: words.program,
            arguments: words.argv.into_iter().skip(1).collect(),
            environment: self.environment.clone(),
            directory: self.workdir.clone(),
            streams,
            keep: words.script.into_iter().collect(),
            groups: bounds.entries,
            resources: bounds.resources,
            hold: None,
            tree: Some(Tree::new(mark, bounds.leaf)),
            session: true,
            terminal: self.settings.terminal.is_some(),
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
        Ok(([process::null()?, out_write, err_write], output))
    }

    fn bounds(&self, situation: Situation) -> Result<Bounds, ExecError> {
        let bounds = Bounds::prepare(&self.settings.limits, situation);
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

    /// The proxy that [`Network::Domains`] asks for.
    fn proxy(&self) -> Result<Option<Proxy>, ExecError> {
        match &self.settings.sandbox.network {
            Network::Off | Network::On => Ok(None),
            Network::Domains(rules) => {
                Proxy::new(rules).map(Some).map_err(|error| ExecError::SandboxUnavailable {
                    stage: Stage::Proxy,
                    text: error.to_string(),
                    remedy: "write host names like `example.com` or `*.example.com`".to_owned(),
                })
            }
        }
    }

    fn program(&self) -> String {
        match &self.command {
            Command::Shell(_) => "/bin/bash".to_owned(),
            Command::Argv(words) => {
                words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
            }
        }
    }

    /// The words to execute. `seen` says where a path that the command would see lies on the host.
    fn words(&self, seen: &dyn Fn(&Path) -> Option<PathBuf>) -> Result<Words, NotStarted> {
        match &self.command {
            Command::Shell(text) => {
                let bash = bash().filter(|bash| seen(bash).is_some());
                let bash = bash.ok_or_else(|| NotStarted::ProgramNotFound { program: self.program() })?;
                if text.len() < LONGEST_ARGUMENT {
                    return Ok(Words { argv: bwrap::shell_words(&bash, text), program: bash, script: None });
                }
                let script = process::sealed_file("command", text.as_bytes())
                    .map_err(|error| NotStarted::System { reason: error.to_string() })?;
                let path = format!("/dev/fd/{}", process::number(&script));
                let words =
                    [bash.as_os_str(), OsStr::new("--noprofile"), OsStr::new("--norc"), OsStr::new(&path)]
                        .map(OsStr::to_owned)
                        .to_vec();
                Ok(Words { argv: words, program: bash, script: Some(script) })
            }
            Command::Argv(words) => {
                let program = words.first().map(OsString::as_os_str).unwrap_or_default();
                let path = self
                    .environment
                    .iter()
                    .find(|(name, _)| name == "PATH")
                    .map(|(_, value)| value.as_os_str());
                let program = resolve(program, path.unwrap_or_default(), &self.workdir, seen)?;
                Ok(Words { argv: words.clone(), program, script: None })
            }
        }
    }

    fn finished(self, outcome: Outcome, enforced: Enforced) -> Finished {
        let keep = match (&outcome, self.settings.output.keep) {
            // The last words before a kill say more than the first.
            (Outcome::TimedOut { .. } | Outcome::Cancelled { .. }, Keep::Head) => Keep::Tail,
            (_, keep) => keep,
        };
        Finished {
            outcome,
            stdout: self.captures.stdout().finish(keep),
            stderr: self.captures.stderr().finish(keep),
            duration: std::time::Duration::ZERO,
            workdir: self.workdir,
            enforced,
            denials: Vec::new(),
            network: Vec::new(),
            scan: None,
        }
    }

    fn not_started(self, reason: NotStarted, enforced: Enforced) -> Finished {
        self.finished(Outcome::NotStarted(reason), enforced)
    }
}

/// One attempt at a confined run.
#[derive(Debug)]
struct Attempt {
    outcome: Outcome,
    enforced: Enforced,
    network: Vec<NetworkDecision>,
    denials: Vec<Denial>,
    scan: Option<Scanned>,
    plan: Plan,
}

/// Makes sure that the scan after a run takes place, also when the run's future is dropped.
#[derive(Debug)]
struct Watch(Option<Scan>);

impl Watch {
    async fn end(&mut self) -> (Vec<Denial>, Option<Scanned>) {
        let Some(scan) = self.0.take() else { return (Vec::new(), None) };
        let after = tokio::task::spawn_blocking(move || scan.after()).await;
        after.map_or_else(|_| (Vec::new(), None), |(denials, scanned)| (denials, Some(scanned)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(scan) = self.0.take() {
            // In turn after the work that waits for the killed tree to be gone.
            process::tidy_later(move || drop(scan.after()));
        }
    }
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
        self.note(Stage::Limits, limits)?;
        if let (Some(proxy), Ok(pid)) = (self.proxy.take(), u32::try_from(child)) {
            let serving = proxy::listen_inside(pid, proxy::PORT).and_then(|listener| proxy.serve(listener));
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

/// What is executed.
#[derive(Debug)]
struct Words {
    argv: Vec<OsString>,
    /// Where the program lies on the host.
    program: PathBuf,
    script: Option<OwnedFd>,
}

/// Finds a program as execvp(3) would, among what the command can see.
fn resolve(
    program: &OsStr,
    path: &OsStr,
    workdir: &Path,
    seen: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<PathBuf, NotStarted> {
    let name = program.to_string_lossy().into_owned();
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![workdir.join(program)]
    } else {
        std::env::split_paths(path).map(|directory| workdir.join(directory).join(program)).collect()
    };
    let named = program.as_bytes().contains(&b'/');
    let mut denied = None;
    for candidate in candidates {
        let Some(host) = seen(&candidate) else { continue };
        match std::fs::metadata(&host) {
            Ok(metadata) if metadata.is_dir() => denied = Some("it is a directory".to_owned()),
            Ok(_) => match rustix::fs::access(&host, rustix::fs::Access::EXEC_OK) {
                Ok(()) => return Ok(candidate),
                Err(error) => denied = Some(error.to_string()),
            },
            // In a search, a directory that cannot be entered holds nothing for this user.
            Err(error) if named && error.kind() == io::ErrorKind::PermissionDenied => {
                denied = Some(error.to_string());
            }
            Err(_) => {}
        }
    }
    Err(match denied {
        Some(reason) => NotStarted::NotExecutable { program: name, reason },
        None => NotStarted::ProgramNotFound { program: name },
    })
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

/// The absolute entries of this process's own search path.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|entry| entry.is_absolute()).collect()
}

/// A mark that no other run of this machine has.
fn mark() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{}", std::process::id(), since.as_nanos(), COUNTER.fetch_add(1, Ordering::Relaxed))
}
