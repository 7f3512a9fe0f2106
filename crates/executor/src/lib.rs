#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(any(target_os = "linux", target_os = "macos")),
    allow(
        dead_code,
        unused_imports,
        reason = "what a backend needs is built, and not used where there is none"
    )
)]

// Other Unix systems build and refuse every run; without descriptors, users and symlinks as Unix has them there is not
// even anything to plan.
#[cfg(not(unix))]
compile_error!(
    "commands can be confined on Linux (bubblewrap) and on macOS (sandbox-exec) only; on Windows use WSL 2 and build for Linux"
);

#[cfg(any(target_os = "macos", test))]
mod apple;
pub mod background;
#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod cgroup;
mod denial;
mod environment;
mod error;
mod executor;
#[cfg(target_os = "linux")]
mod find;
mod input;
mod job;
#[cfg(target_os = "linux")]
mod kill;
mod limits;
mod outcome;
pub mod output;
pub mod plan;
#[cfg(target_os = "linux")]
mod preflight;
pub mod probe;
#[cfg(target_os = "linux")]
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

/// Makes this process the parent of orphaned descendants (prctl(2), `PR_SET_CHILD_SUBREAPER`) and lets the executor
/// take its own out of the process table.
///
/// Call it once in a program whose process 1 does not reap, as in many containers: each sandboxed command leaves
/// one orphan, bubblewrap's first process, which would stay a zombie. A library that starts processes of its own
/// must then be ready to become the parent of *their* orphans, which is why this is not done unasked. (A command
/// without a sandbox does it where no control group can be made: its orphans could not be found otherwise.)
///
/// Of a run that is dropped while its sandbox is still being put together, one or two may stay zombies until this process
/// ends (seen on a machine under load).
///
/// Elsewhere than on Linux there are no such orphans, and this does nothing.
///
/// # Errors
/// What the system says; Linux 3.4 and later never refuse.
pub fn adopt_orphans() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    process::adopt_orphans()?;
    Ok(())
}
