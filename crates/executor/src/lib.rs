//! Runs a command in a kernel sandbox with bounded time and output, and says what was enforced.

pub mod background;
mod bounds;
mod cgroup;
mod denial;
mod environment;
mod error;
mod executor;
mod find;
mod job;
mod kill;
mod limits;
mod outcome;
pub mod output;
pub mod plan;
mod preflight;
pub mod probe;
mod process;
pub mod proxy;
pub mod pty;
mod run;
pub mod sandbox;
mod scan;
mod session;
mod supervise;
pub mod view;

pub use background::{Background, Poll, State};
pub use environment::{ALLOWED, Environment, TOOLCHAIN, search_path};
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
pub use pty::TerminalSize;
pub use sandbox::{AfterRun, GitAccess, Mode, Network, PathList, PrivateTmp, Reads, Rung, Sandbox};
pub use tokio_util::sync::CancellationToken;
