//! One command and everything that is said about how to run it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::environment::Environment;
use crate::error::ExecError;
use crate::executor::Executor;
use crate::limits::Limits;
use crate::outcome::Finished;
use crate::output::OutputMode;
use crate::plan::Plan;
use crate::pty::TerminalSize;
use crate::run;
use crate::sandbox::Sandbox;

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `bash --noprofile --norc -c --` with exactly these bytes.
    Shell(OsString),
    /// A program and its arguments; no shell anywhere.
    Argv(Vec<OsString>),
}

/// One command and how to run it. Made by [`Executor::shell`] and [`Executor::argv`]; every setting starts as
/// the executor has it.
#[derive(Debug, Clone)]
#[must_use = "a job does nothing until `run` or `start` is called"]
pub struct Job {
    pub(crate) executor: Executor,
    pub(crate) command: Command,
    pub(crate) settings: Settings,
}

/// The settings that an executor has as defaults and a job can change.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) workdir: PathBuf,
    pub(crate) timeout: Option<Duration>,
    pub(crate) ceiling: Option<Duration>,
    pub(crate) environment: Environment,
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    pub(crate) output: OutputMode,
    pub(crate) own_input: bool,
    pub(crate) terminal: Option<TerminalSize>,
    pub(crate) cancel: Option<CancellationToken>,
}

impl Job {
    /// Runs in this directory: absolute, or relative to the project root. It must lie, by its real path, inside
    /// the project or one of the extra roots. Default: the project root.
    pub fn workdir(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.workdir = path.into();
        self
    }

    /// The caller's own time limit. Cannot lift the ceiling.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.timeout = Some(limit);
        self
    }

    /// The limit that no [`Job::timeout`] can lift. A later call can lower it and not raise it.
    pub fn ceiling(mut self, limit: Duration) -> Self {
        self.settings.ceiling = Some(self.settings.ceiling.map_or(limit, |known| known.min(limit)));
        self
    }

    /// Replaces the environment rules.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.settings.environment = environment;
        self
    }

    /// Sets one variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.settings.environment = self.settings.environment.set(name, value);
        self
    }

    /// Passes the parent's whole environment, secrets included.
    pub fn inherit_environment(mut self) -> Self {
        self.settings.environment.inherit_all = true;
        self
    }

    /// Replaces what the command may touch.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.settings.sandbox = sandbox;
        self
    }

    /// No sandbox: the explicit opt-out, the same as [`Sandbox::danger_full_access`].
    pub fn unsandboxed(self) -> Self {
        self.sandbox(Sandbox::danger_full_access())
    }

    /// Replaces the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Replaces what is kept of the output.
    pub fn output(mut self, output: OutputMode) -> Self {
        self.settings.output = output;
        self
    }

    /// Gives the command this process's own standard input, in place of an empty one, when that is a pipe, a socket, a
    /// terminal, or a file opened for reading. What is read then is gone for this process. A sandboxed command on macOS
    /// has none all the same.
    pub fn own_input(mut self) -> Self {
        self.settings.own_input = true;
        self
    }

    /// Gives the command a terminal of this size as standard input, output and error.
    ///
    /// Both streams arrive as standard output, within the same bounds. Nobody types: whoever reads finds the end of
    /// the input, as often as 64 times. The terminal is the command's own, and leads nowhere but to this library.
    pub fn terminal(mut self, size: TerminalSize) -> Self {
        self.settings.terminal = Some(size);
        self
    }

    /// Kills the tree when this token is cancelled.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.settings.cancel = Some(token);
        self
    }

    /// What the sandbox would look like: every mount, and the table that says what is denied and why. Starts
    /// nothing.
    ///
    /// # Errors
    /// [`ExecError`] when the job would be refused before anything is looked at.
    pub fn plan(&self) -> Result<Plan, ExecError> {
        let core = self.executor.shared.core.clone();
        run::prepare(core, self.command.clone(), self.settings.clone())?.plan()
    }

    /// Runs the command to its end. Dropping the future kills the whole tree.
    ///
    /// # Errors
    /// [`ExecError`] when nothing was started. What became of something started is [`Finished::outcome`].
    pub async fn run(self) -> Result<Finished, ExecError> {
        run::prepare(self.executor.shared.core.clone(), self.command, self.settings)?.run().await
    }

    /// Starts the command in the background. It dies with the executor, however that ends.
    ///
    /// # Errors
    /// [`ExecError::TooManyBackground`] when [`MAX_LIVE`](crate::background::MAX_LIVE) already run, and whatever
    /// [`Job::run`] would refuse. Must be called inside a tokio runtime.
    pub async fn start(self) -> Result<Background, ExecError> {
        let shared = self.executor.shared.clone();
        shared.background.start(self).await
    }
}
