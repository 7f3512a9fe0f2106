//! The executor: a project root, defaults, and what is shared by all its commands.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::background::{Background, Registry};
use crate::environment::Environment;
use crate::error::{ExecError, Stage};
use crate::job::{Command, Job, Settings};
use crate::limits::Limits;
use crate::output::OutputMode;
use crate::probe::{self, Report};
use crate::sandbox::Sandbox;
use crate::session::Session;

/// Runs commands for one project. Cheap to clone; background commands die with the last clone.
#[derive(Debug, Clone)]
pub struct Executor {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) defaults: Settings,
    pub(crate) background: Registry,
}

/// What runs need of their executor. Runs hold on to this and not to [`Shared`].
#[derive(Debug)]
pub(crate) struct Core {
    /// The project root, symlinks resolved.
    pub(crate) root: PathBuf,
    pub(crate) root_as_given: PathBuf,
    pub(crate) homes: Vec<PathBuf>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "bubblewrap is for Linux"))]
    pub(crate) bwrap: Option<PathBuf>,
    pub(crate) kept: Option<PathBuf>,
    session: Mutex<Option<Arc<Session>>>,
}

impl Core {
    /// The private directory, made when it is first needed.
    pub(crate) fn session(&self) -> Result<Arc<Session>, ExecError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(session.clone());
        }
        let made =
            Arc::new(Session::create().map_err(ExecError::io("make the private temporary directory"))?);
        *session = Some(made.clone());
        Ok(made)
    }
}

/// Collects the defaults of an [`Executor`].
#[derive(Debug, Clone)]
#[must_use = "call `build`"]
pub struct ExecutorBuilder {
    root: PathBuf,
    settings: Settings,
    bwrap: Option<PathBuf>,
    kept: Option<PathBuf>,
    homes: Option<Vec<PathBuf>>,
}

impl Executor {
    /// Starts with a project root. Defaults: read-only sandbox without network, allowlisted environment, no
    /// time limit, the first 10240 characters or 256 lines of each stream.
    pub fn builder(root: impl Into<PathBuf>) -> ExecutorBuilder {
        ExecutorBuilder {
            root: root.into(),
            settings: Settings {
                workdir: PathBuf::from("."),
                timeout: None,
                ceiling: None,
                environment: Environment::allowlist(),
                sandbox: Sandbox::default(),
                limits: Limits::default(),
                output: OutputMode::default(),
                own_input: false,
                terminal: None,
                cancel: None,
            },
            bwrap: None,
            kept: None,
            homes: None,
        }
    }

    /// A shell command: `bash --noprofile --norc -c --` with exactly these bytes, standard input empty.
    pub fn shell(&self, command: impl AsRef<OsStr>) -> Job {
        self.job(Command::Shell(command.as_ref().to_owned()))
    }

    /// A program and its arguments. No shell is involved: every byte reaches the program as it is.
    pub fn argv<I, S>(&self, argv: I) -> Job
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.job(Command::Argv(
            argv.into_iter().map(|word| word.as_ref().to_owned()).collect::<Vec<OsString>>(),
        ))
    }

    /// The project root, symlinks resolved.
    pub fn root(&self) -> &Path {
        &self.shared.core.root
    }

    /// A background command by its number.
    ///
    /// # Errors
    /// [`ExecError::NoSuchBackground`]; those that ended long ago are forgotten.
    pub fn background(&self, id: u64) -> Result<Background, ExecError> {
        self.shared.background.get(id)
    }

    /// Every background command that runs, and the last that ended.
    pub fn backgrounds(&self) -> Vec<Background> {
        self.shared.background.all()
    }

    /// Looks at what this machine can enforce: every check with its remedy, the canary among them.
    pub async fn probe(&self) -> Report {
        probe::report(&self.shared.core, self.shared.defaults.sandbox.lowest_rung).await
    }

    fn job(&self, command: Command) -> Job {
        Job { executor: self.clone(), command, settings: self.shared.defaults.clone() }
    }
}

impl ExecutorBuilder {
    /// The default sandbox of every job.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.settings.sandbox = sandbox;
        self
    }

    /// The default environment rules.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.settings.environment = environment;
        self
    }

    /// The default bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// What is kept of the output by default.
    pub fn output(mut self, output: OutputMode) -> Self {
        self.settings.output = output;
        self
    }

    /// The default time limit of a job.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.timeout = Some(limit);
        self
    }

    /// A time limit that no job can lift.
    pub fn ceiling(mut self, limit: Duration) -> Self {
        self.settings.ceiling = Some(limit);
        self
    }

    /// Uses this bubblewrap rather than the first trustworthy one found. Must be absolute; it is vetted all the same.
    pub fn bwrap(mut self, path: impl Into<PathBuf>) -> Self {
        self.bwrap = Some(path.into());
        self
    }

    /// Keeps in this directory that the sandbox holds, for other processes of the same user: each would otherwise find out
    /// by itself, which takes longer than a short command. Default: nothing is kept.
    ///
    /// The directory must be absolute, and for this alone; it is made when missing, and must belong to the user and be
    /// closed to everybody else. It is not used for a run that may write there, and is protected from such runs
    /// ([`Sandbox::protected`]). An answer counts for a day and for exactly the same programs, kernel, boot, user and
    /// namespaces. Linux only; elsewhere it does nothing.
    pub fn keep_preflight(mut self, directory: impl Into<PathBuf>) -> Self {
        self.kept = Some(directory.into());
        self
    }

    /// Checks the root and makes the executor. Starts nothing: whether the sandbox can be had is found out by
    /// the first job, or by [`crate::probe`].
    pub fn build(self) -> Result<Executor, ExecError> {
        let refuse = |reason: String| ExecError::Root { path: self.root.clone(), reason };
        let root = std::fs::canonicalize(&self.root).map_err(|error| refuse(error.to_string()))?;
        if !root.is_dir() {
            return Err(refuse("it is not a directory".to_owned()));
        }
        if let Some(reason) = unfit_root(&root) {
            return Err(refuse(reason.to_owned()));
        }
        if let Some(relative) = self.bwrap.as_deref().filter(|path| !path.is_absolute()) {
            return Err(ExecError::SandboxUnavailable {
                stage: Stage::Find,
                text: format!("{} is not an absolute path", relative.display()),
                remedy: "name bubblewrap by its absolute path".to_owned(),
            });
        }
        let root_as_given = std::path::absolute(&self.root).unwrap_or_else(|_| root.clone());
        let homes = self.homes.unwrap_or_else(homes);
        let core = Core {
            root,
            root_as_given,
            homes,
            bwrap: self.bwrap,
            kept: self.kept.filter(|directory| directory.is_absolute() && directory.to_str().is_some()),
            session: Mutex::new(None),
        };
        Ok(Executor {
            shared: Arc::new(Shared {
                core: Arc::new(core),
                defaults: self.settings,
                background: Registry::default(),
            }),
        })
    }

    /// The user's home directories, below which secrets are looked for. Default: `$HOME` and the one in the
    /// user database.
    pub fn homes(mut self, homes: Vec<PathBuf>) -> Self {
        self.homes = Some(homes);
        self
    }
}

/// Why a directory cannot be a root: a sandbox that may write it, or that hides what it must show, is none.
pub(crate) fn unfit_root(root: &Path) -> Option<&'static str> {
    if root == Path::new("/") {
        return Some("the root of the file system cannot be a project");
    }
    for place in ["/proc", "/sys"] {
        if root.starts_with(place) {
            return Some("a file system of the kernel cannot be a project");
        }
    }
    if root == Path::new("/dev") || (root.starts_with("/dev") && !root.starts_with("/dev/shm/")) {
        return Some("a directory of devices cannot be a project");
    }
    None
}

/// The user's home directories: what the environment says, and what the user database says.
fn homes() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("HOME").map(PathBuf::from).into_iter().collect();
    let own = rustix::process::getuid().as_raw().to_string();
    let database = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    homes.extend(database.lines().filter_map(|line| {
        let mut fields = line.split(':');
        (fields.nth(2) == Some(&own)).then(|| fields.nth(2).map(PathBuf::from)).flatten()
    }));
    homes.retain(|home| home.is_absolute() && home != Path::new("/"));
    homes.sort();
    homes.dedup();
    homes
}
