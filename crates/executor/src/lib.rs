//! Runs a command in a kernel sandbox with bounded time and output, and says what was enforced.

#![expect(dead_code, reason = "the back ends that read these settings come next")]

mod environment;
mod error;
mod executor;
mod job;
mod limits;
mod outcome;
pub mod output;
pub mod plan;
pub mod probe;
pub mod proxy;
pub mod pty;
pub mod sandbox;

pub use environment::{ALLOWED, Environment, TOOLCHAIN};
pub use error::{ExecError, Stage, WorkdirProblem};
pub use executor::{Executor, ExecutorBuilder};
pub use job::{Command, Job};
pub use limits::{Holds, LimitKind, LimitStatus, Limits};
pub use outcome::{
    Backend, Certainty, Denial, DeniedOperation, Enforced, Finished, KillStrength, NetworkEnforced,
    NotStarted, Outcome, UnixSockets,
};
pub use output::{Captured, Keep, OutputMode, Stream};
pub use proxy::{DomainRules, NetworkDecision};
pub use sandbox::{AfterRun, GitAccess, Mode, Network, PathList, PrivateTmp, Reads, Rung, Sandbox};
pub use tokio_util::sync::CancellationToken;
