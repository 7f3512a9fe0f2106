//! From a job to a finished run: checks, plan, start, outcome.
//!
//! What every system has in common is here; how a command is started and ended is in the module of the system.

#[cfg(target_os = "macos")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod other;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[cfg(target_os = "macos")]
use self::apple as system;
#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use self::other as system;
use crate::denial;
use crate::environment::Place;
use crate::error::{ExecError, Stage, WorkdirProblem};
use crate::executor::Core;
use crate::job::{Command, Settings};
#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::limits::LimitStatus;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::outcome::{Backend, KillStrength, NetworkEnforced, UnixSockets};
use crate::outcome::{Denial, Enforced, Finished, NotStarted, Outcome, Scanned};
use crate::output::Keep;
use crate::plan::{self, Plan};
use crate::proxy::{self, NetworkDecision, Proxy};
use crate::sandbox::{Mode, Network, Reads, Sandbox, bwrap};
use crate::scan::Scan;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::supervise::{self, End, Ended};
use crate::supervise::{Captures, Control};
use crate::view::HostView;

/// Longest single argument the kernel takes is 128 KiB (`MAX_ARG_STRLEN`, execve(2)), the final NUL included.
/// A longer shell command is read by bash from a sealed file in memory.
const LONGEST_ARGUMENT: usize = 120 * 1024;

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
pub(crate) fn prepare(
    core: Arc<Core>,
    command: Command,
    mut settings: Settings,
) -> Result<Prepared, ExecError> {
    check_command(&command)?;
    check_unconfined(&settings.sandbox)?;
    if let Some(kept) = core.kept.as_deref().and_then(Path::to_str) {
        settings.sandbox.protected = settings.sandbox.protected.with(kept);
    }
    let writable = extra_roots(&settings)?;
    let workdir = workdir(&core, &settings, &writable)?;
    let mut untrusted = vec![core.root.clone()];
    untrusted.extend(writable);
    let place = Place {
        sandboxed: bwrap::confines(settings.sandbox.mode),
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

/// Why nothing runs on a system that has no backend.
#[cfg_attr(any(target_os = "linux", target_os = "macos"), allow(dead_code, reason = "these have one"))]
pub(crate) fn no_backend(system: &str) -> ExecError {
    ExecError::SandboxUnavailable {
        stage: Stage::Platform,
        text: format!("there is no way to confine or to end commands on {system}, so none is run"),
        remedy: "run this on Linux (bubblewrap) or macOS (sandbox-exec)".to_owned(),
    }
}

/// Refuses what is asked for together with no sandbox and only a sandbox could give.
fn check_unconfined(sandbox: &Sandbox) -> Result<(), ExecError> {
    if bwrap::confines(sandbox.mode) {
        return Ok(());
    }
    let refuse = |what: &str, instead: &str| {
        Err(ExecError::SandboxUnavailable {
            stage: Stage::SetUp,
            text: format!("without a sandbox {what}"),
            remedy: format!(
                "ask for `{instead}` with danger_full_access, as `Sandbox::danger_full_access()` does, or for a sandbox"
            ),
        })
    };
    match (&sandbox.network, sandbox.reads) {
        (Network::Off, _) => refuse("the network cannot be closed", "Network::On"),
        (Network::Domains(_), _) => refuse("the network cannot be restricted to domains", "Network::On"),
        (Network::On, Reads::ProjectAndSystem) => {
            refuse("reads cannot be confined to the project", "Reads::Everything")
        }
        (Network::On, Reads::Everything) => Ok(()),
    }
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

    /// What the sandbox would look like.
    pub(crate) fn plan(&self) -> Result<Plan, ExecError> {
        Ok(self.planned(&self.core.session()?.tmp()))
    }

    /// The plan of this run, with `tmp` as its private directory for temporary files.
    fn planned(&self, tmp: &Path) -> Plan {
        let request = plan::Request {
            sandbox: &self.settings.sandbox,
            root: &self.core.root,
            root_as_given: &self.core.root_as_given,
            workdir: &self.workdir,
            homes: &self.core.homes,
            session_tmp: Some(tmp),
            shared_memory: self.settings.limits.shared_memory,
        };
        plan::plan(&request, &HostView)
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
                let (path, script) = system::script(text.as_bytes())
                    .map_err(|error| NotStarted::System { reason: error.to_string() })?;
                let words =
                    [bash.as_os_str(), OsStr::new("--noprofile"), OsStr::new("--norc"), path.as_os_str()]
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

    /// A confined run that is over: what the scan found, the proxy refused and the output hints at.
    fn concluded(self, attempt: Attempt) -> Finished {
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
            let streams = [&finished.stderr, &finished.stdout];
            let texts: Vec<&str> =
                streams.iter().flat_map(|stream| [stream.head.as_str(), stream.tail.as_str()]).collect();
            denials.extend(denial::likely(&plan, &texts));
        }
        finished.denials = denials;
        finished.network = network;
        finished.scan = scan;
        finished
    }

    /// A run without a sandbox that is over, or could not be started.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn ended_unconfined(self, ended: io::Result<Ended>, enforced: Enforced) -> Finished {
        let outcome = match ended {
            Ok(ended) => outcome(&ended),
            Err(error) => {
                let program = self.program();
                let kind = error.kind();
                Outcome::NotStarted(if kind == io::ErrorKind::NotFound {
                    NotStarted::ProgramNotFound { program }
                } else if kind == io::ErrorKind::PermissionDenied {
                    NotStarted::NotExecutable { program, reason: error.to_string() }
                } else {
                    NotStarted::System { reason: error.to_string() }
                })
            }
        };
        self.finished(outcome, enforced)
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

/// How a process that was started directly ended.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn outcome(ended: &Ended) -> Outcome {
    match (ended.end, ended.status.map(supervise::code_or_signal)) {
        (End::TimedOut, _) => Outcome::TimedOut { kill_incomplete: ended.kill_incomplete },
        (End::Cancelled, _) => Outcome::Cancelled { kill_incomplete: ended.kill_incomplete },
        (End::Exited, Some(Ok(code))) => Outcome::Exited(code),
        (End::Exited, Some(Err(signal))) => Outcome::Signaled(signal),
        (End::Exited, None) => {
            Outcome::NotStarted(NotStarted::System { reason: "its status was lost".to_owned() })
        }
    }
}

/// What is in force without a sandbox.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn unconfined(kill: KillStrength, limits: Vec<LimitStatus>) -> Enforced {
    Enforced {
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
        kill,
        limits,
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
            system::tidy_later(move || drop(scan.after()));
        }
    }
}

/// What is executed.
#[derive(Debug)]
struct Words {
    argv: Vec<OsString>,
    /// Where the program lies on the host.
    program: PathBuf,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has files without a name"))]
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

/// The absolute entries of this process's own search path.
#[cfg(target_os = "linux")]
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|entry| entry.is_absolute()).collect()
}

/// A mark that no other run of this machine has.
#[cfg(target_os = "macos")]
fn mark() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{}", std::process::id(), since.as_nanos(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S25
    #[test]
    fn a_system_without_a_backend_is_named_in_the_refusal() {
        let error = no_backend("plan9");
        assert!(matches!(error, ExecError::SandboxUnavailable { stage: Stage::Platform, .. }));
        let text = error.to_string();
        assert!(text.contains("plan9") && text.contains("none is run") && text.contains("Linux"), "{text}");
    }
}
