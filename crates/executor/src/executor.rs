//! The executor: a project root, defaults, and what is shared by all its commands.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::environment::Environment;
use crate::error::{ExecError, Stage};
use crate::job::{Command, Job, Settings};
use crate::limits::Limits;
use crate::outcome::Finished;
use crate::output::OutputMode;
use crate::sandbox::Sandbox;

/// Runs commands for one project. Cheap to clone; background commands die with the last clone.
#[derive(Debug, Clone)]
pub struct Executor {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) root: PathBuf,
    pub(crate) defaults: Settings,
}

/// Collects the defaults of an [`Executor`].
#[derive(Debug, Clone)]
#[must_use = "call `build`"]
pub struct ExecutorBuilder {
    root: PathBuf,
    settings: Settings,
    bwrap: Option<PathBuf>,
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
                cancel: None,
            },
            bwrap: None,
        }
    }

    /// A shell command: `bash --noprofile --norc -c` with exactly these bytes, standard input empty.
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
        &self.shared.root
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

    /// Checks the root and makes the executor. Starts nothing: whether the sandbox can be had is found out by
    /// the first job, or by [`crate::probe`].
    pub fn build(self) -> Result<Executor, ExecError> {
        let root = std::fs::canonicalize(&self.root)
            .map_err(|error| ExecError::Root { path: self.root.clone(), reason: error.to_string() })?;
        if !root.is_dir() {
            return Err(ExecError::Root { path: self.root, reason: "it is not a directory".to_owned() });
        }
        Ok(Executor { shared: Arc::new(Shared { root, defaults: self.settings }) })
    }
}

#[expect(clippy::unused_async, reason = "the signature that callers build on")]
pub(crate) async fn run(_job: Job) -> Result<Finished, ExecError> {
    Err(ExecError::SandboxUnavailable {
        stage: Stage::Platform,
        text: "no backend is compiled in".to_owned(),
        remedy: "use a build with a backend".to_owned(),
    })
}
