//! What a run is for, and what bounds it.

use super::observer::{Event, Observer};
use crate::session::EXEC_TIMEOUT;
use cmdgate_executor::CancellationToken;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a run knows that it is done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Verification {
    /// The project's own command ends with this code. It runs in the sandbox with the network off, and the exec policy
    /// must allow it: nobody is asked.
    Command {
        /// The program and its arguments; no shell.
        argv: Vec<String>,
        /// The exit code that means success.
        expect_exit: i32,
    },
    /// A file of the project holds this text.
    FileContains {
        /// The file, relative to the project root.
        file: PathBuf,
        /// The text.
        needle: String,
    },
    /// The model's word is taken for it.
    #[default]
    None,
}

/// What a run is for, and what bounds it.
///
/// ```
/// use cmdgate_harness::{TaskContract, Verification};
/// use std::time::Duration;
///
/// let contract = TaskContract::workspace("the tests fail; find out why and mend it", "/path/to/repo")
///     .with_verification(Verification::Command { argv: vec!["npm".into(), "test".into()], expect_exit: 0 })
///     .with_max_steps(40)
///     .with_exec_timeout(Duration::from_secs(300));
/// assert_eq!(contract.root(), std::path::Path::new("/path/to/repo"));
/// ```
#[derive(Clone)]
pub struct TaskContract {
    pub(super) goal: String,
    pub(super) root: PathBuf,
    pub(super) verification: Verification,
    pub(super) max_steps: u32,
    pub(super) time: Duration,
    pub(super) tokens: Option<u64>,
    pub(super) exec_timeout: Option<Duration>,
    pub(super) inherit_environment: bool,
    pub(super) unsandboxed: bool,
    pub(super) cancel: Option<CancellationToken>,
    pub(super) observers: Vec<Arc<dyn Observer>>,
}

impl fmt::Debug for TaskContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContract")
            .field("goal", &self.goal)
            .field("root", &self.root)
            .field("verification", &self.verification)
            .finish_non_exhaustive()
    }
}

impl TaskContract {
    /// A goal in the project at `root`. Bounds until they are set: 50 steps, one hour, any number of tokens, 15 minutes
    /// for one program; in the sandbox, with the environment that it lets through.
    pub fn workspace(goal: impl Into<String>, root: impl Into<PathBuf>) -> Self {
        Self {
            goal: goal.into(),
            root: root.into(),
            verification: Verification::None,
            max_steps: 50,
            time: Duration::from_hours(1),
            tokens: None,
            exec_timeout: None,
            inherit_environment: false,
            unsandboxed: false,
            cancel: None,
            observers: Vec::new(),
        }
    }

    /// How the run knows that it is done.
    #[must_use]
    pub fn with_verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// At most as many answers of the model.
    #[must_use]
    pub const fn with_max_steps(mut self, steps: u32) -> Self {
        self.max_steps = steps;
        self
    }

    /// At most as long, from start to end.
    #[must_use]
    pub const fn with_time_budget(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// At most as many tokens, as the provider counts them. The answer that goes over it is the last.
    #[must_use]
    pub const fn with_token_budget(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The time of one program that names none, and the most that one may name. A policy with a lock may allow less.
    #[must_use]
    pub const fn with_exec_timeout(mut self, time: Duration) -> Self {
        self.exec_timeout = Some(time);
        self
    }

    /// Passes the environment of this process to commands, secrets included. A command that runs because it was found
    /// harmless gets the allowlist all the same.
    #[must_use]
    pub const fn inherit_environment(mut self) -> Self {
        self.inherit_environment = true;
        self
    }

    /// Runs commands without a sandbox, with everything that this process may do. A policy with a lock, such as the
    /// hardened profile, does not let this happen; the verification runs in the sandbox all the same.
    #[must_use]
    pub const fn unsandboxed(mut self) -> Self {
        self.unsandboxed = true;
        self
    }

    /// Calls the run off when the token is cancelled: what runs is killed, and the end is recorded.
    #[must_use]
    pub fn with_cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Tells `observer` what happens.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// What is to be done.
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// The project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The longest that a program runs.
    pub fn exec_timeout(&self) -> Duration {
        self.exec_timeout.unwrap_or(EXEC_TIMEOUT)
    }

    pub(super) fn tell(&self, event: &Event<'_>) {
        for observer in &self.observers {
            observer.observe(event);
        }
    }
}
