//! The names of this crate in the form that programs written for the `io_harness` crate know.
//!
//! Such a program needs one line, and no change of its own:
//!
//! ```
//! use cmdgate_harness::io_harness;
//!
//! use io_harness::{run_with, ApproveAll, Policy, Scripted, Store, TaskContract, Verification};
//! # async fn demo(dir: &std::path::Path) -> io_harness::Result<()> {
//! let contract = TaskContract::workspace(
//!     "the test suite is failing; find out why and fix it",
//!     "/path/to/repo",
//!     Verification::Command { argv: vec!["npm".into(), "test".into()], expect_exit: 0 },
//! );
//! let policy = Policy::permissive().layer("app").allow_exec("npm*").deny_exec("git push*");
//! let store = Store::open(dir.join("runs.db"))?;
//! let result = run_with(&contract, &Scripted::default(), &store, &policy, &ApproveAll).await?;
//! # let _ = result;
//! # Ok(()) }
//! ```
//!
//! One name differs from the rest of this crate: [`TaskContract::workspace`] takes the verification as its third
//! argument, where [`crate::TaskContract::workspace`] takes two and has `with_verification`. Everything else is the same
//! item under the same name. What differs in what happens: commands run in a sandbox and with an environment of harmless
//! variables, until [`unsandboxed`](crate::TaskContract::unsandboxed) and
//! [`inherit_environment`](crate::TaskContract::inherit_environment) say otherwise; on a timeout the whole tree of
//! processes dies; and what is allowed is recorded too.

pub use crate::agent::{
    Event, Observer, OpenRouter, Provider, RunError as Error, RunOutcome, RunResult, Scripted, Verification,
    run_with,
};
pub use crate::approve::{Answer, ApproveAll, Approver, DenyAll, Question};
pub use crate::session::EXEC_TIMEOUT as DEFAULT_EXEC_TIMEOUT;
pub use crate::store::Store;
pub use crate::{Act, Effect, Policy, Result};

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// [`crate::TaskContract`], made with its verification. What takes that one takes a reference to this one.
#[derive(Debug, Clone)]
pub struct TaskContract(crate::TaskContract);

impl TaskContract {
    /// A goal in the project at `root`, reached when `verification` passes.
    pub fn workspace(goal: impl Into<String>, root: impl Into<PathBuf>, verification: Verification) -> Self {
        Self(crate::TaskContract::workspace(goal, root).with_verification(verification))
    }

    /// As [`crate::TaskContract::with_exec_timeout`].
    #[must_use]
    pub fn with_exec_timeout(self, time: Duration) -> Self {
        Self(self.0.with_exec_timeout(time))
    }

    /// As [`crate::TaskContract::with_max_steps`].
    #[must_use]
    pub fn with_max_steps(self, steps: u32) -> Self {
        Self(self.0.with_max_steps(steps))
    }

    /// As [`crate::TaskContract::with_time_budget`].
    #[must_use]
    pub fn with_time_budget(self, time: Duration) -> Self {
        Self(self.0.with_time_budget(time))
    }

    /// As [`crate::TaskContract::with_observer`].
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self(self.0.with_observer(observer))
    }
}

impl Deref for TaskContract {
    type Target = crate::TaskContract;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<TaskContract> for crate::TaskContract {
    fn from(contract: TaskContract) -> Self {
        contract.0
    }
}
