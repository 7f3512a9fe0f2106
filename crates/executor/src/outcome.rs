//! How a run ended, what was enforced while it lasted, and what was denied.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Stage;
use crate::limits::LimitStatus;
use crate::output::Captured;
use crate::proxy::NetworkDecision;
use crate::sandbox::{Mode, Reads, Rung};

/// How a run ended. Deliberately exhaustive: a new ending must be decided about by every caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The command ran and ended with this code. Under a sandbox a code above 128 may also stand for a signal
    /// that ended the command itself: `exit 137` and SIGKILL look the same there.
    Exited(i32),
    /// The command was ended by this signal.
    Signaled(i32),
    /// The time was up and the whole tree was killed.
    TimedOut {
        /// Something could not be shown to be gone (a process in uninterruptible sleep).
        kill_incomplete: bool,
    },
    /// The caller cancelled and the whole tree was killed.
    Cancelled {
        /// Something could not be shown to be gone.
        kill_incomplete: bool,
    },
    /// The sandbox itself failed; the command was not executed.
    SandboxFailed {
        /// The step that failed.
        stage: Stage,
        /// What the sandbox program said.
        text: String,
        /// What to do about it.
        remedy: String,
    },
    /// The command was not started, the sandbox not being at fault.
    NotStarted(NotStarted),
}

/// Why a command was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStarted {
    /// There is no such program on the sanitised `PATH`, or it is not visible in the sandbox.
    ProgramNotFound {
        /// The program as named.
        program: String,
    },
    /// The program is there and may not be executed.
    NotExecutable {
        /// The program as named.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The system could not start a process.
    System {
        /// What the system said.
        reason: String,
    },
}

/// A finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub outcome: Outcome,
    /// Standard output, bounded.
    pub stdout: Captured,
    /// Standard error, bounded.
    pub stderr: Captured,
    /// Wall-clock time from start to the proof that nothing is left.
    pub duration: Duration,
    /// The real path of the directory it ran in.
    pub workdir: PathBuf,
    /// What was in force.
    pub enforced: Enforced,
    /// What was denied, certain or likely.
    pub denials: Vec<Denial>,
    /// Connections asked for through the proxy.
    pub network: Vec<NetworkDecision>,
    /// How far the scan after the run got; `None` where there is nothing to scan because nothing could be written,
    /// or everything.
    pub scan: Option<Scanned>,
}

/// How far the scan after a run got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// Files and directories looked at.
    pub entries: usize,
    /// Whether that was all of them. Protected names are always looked at.
    pub complete: bool,
}

/// The program that confines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// No sandbox ([`Mode::DangerFullAccess`]).
    None,
    /// bubblewrap on Linux.
    Bubblewrap {
        /// Its path.
        path: PathBuf,
        /// What `--version` says.
        version: String,
    },
    /// `sandbox-exec` on macOS.
    SandboxExec,
}

/// Which network the command really saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkEnforced {
    /// Only its own loopback.
    Closed,
    /// Only the proxy.
    ProxyOnly,
    /// The host's.
    Open,
}

/// What the command could do with unix sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnixSockets {
    /// Its own work; the host's are masked or cut off.
    OwnOnly,
    /// None can be made, for this reason.
    Refused(String),
    /// Nothing stops it.
    Open,
}

/// How surely the whole tree dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KillStrength {
    /// A PID namespace: the kernel ends everything with its first process.
    Namespace,
    /// A control group ends everything in it.
    ControlGroup,
    /// Descendants and adopted orphans are found and killed until none is left.
    Subreaper,
    /// The process group, then searches by a mark in the environment.
    BestEffort,
}

/// What was in force while a command ran. Nothing here is a wish: each field is set from what was really done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforced {
    /// The mode.
    pub mode: Mode,
    /// The program that confines.
    pub backend: Backend,
    /// The rung reached; `None` without a sandbox.
    pub rung: Option<Rung>,
    /// Whether the command is in its own user namespace without any capability.
    pub user_namespace: bool,
    /// Whether it is in its own PID namespace.
    pub pid_namespace: bool,
    /// Whether further user namespaces are refused by the kernel's own limit (seccomp refuses them besides).
    pub nested_namespaces_disabled: bool,
    /// Whether both system call filters were on.
    pub seccomp: bool,
    /// The network.
    pub network: NetworkEnforced,
    /// Unix sockets.
    pub unix_sockets: UnixSockets,
    /// Which files were visible.
    pub reads: Reads,
    /// How surely the tree dies.
    pub kill: KillStrength,
    /// Each bound that was asked for.
    pub limits: Vec<LimitStatus>,
}

/// How sure a denial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Shown by the kernel, the sandbox program, the proxy or the scan after the run.
    Certain,
    /// The output names an error on a path that the plan denies. Never a reason to run again unconfined.
    Likely,
}

/// What was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeniedOperation {
    /// Reading a file.
    Read(PathBuf),
    /// Writing, making or removing a file.
    Write(PathBuf),
    /// Reaching a host or address; `the network` where the output names none.
    Network(String),
    /// A system call that the filter refuses.
    SystemCall(String),
}

/// Something that the command was not let do, or that was undone after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What was attempted.
    pub operation: DeniedOperation,
    /// The rule that denies it, as a stable name.
    pub rule: String,
    /// How sure this is.
    pub certainty: Certainty,
    /// Whether the change was undone.
    pub reverted: bool,
    /// The line of output or the observation that shows it.
    pub evidence: String,
    /// What to do about it, for the model.
    pub advice: String,
}

impl Denial {
    /// One line for the model: what, by which rule, how sure, and what to do.
    ///
    /// A name that the command chose can neither begin another line nor speak to a terminal: what is not seen as it
    /// stands is escaped.
    pub fn line(&self) -> String {
        let what = match &self.operation {
            DeniedOperation::Read(path) => format!("reading {}", path.display()),
            DeniedOperation::Write(path) => format!("writing {}", path.display()),
            DeniedOperation::Network(target) => format!("reaching {target}"),
            DeniedOperation::SystemCall(call) => call.clone(),
        };
        let how = match (self.certainty, self.reverted) {
            (_, true) => "undone by the sandbox",
            (Certainty::Certain, false) => "denied by the sandbox",
            (Certainty::Likely, false) => "probably denied by the sandbox",
        };
        let line = format!("{how}: {what} (rule {}): {}", self.rule, self.advice);
        line.chars().fold(String::with_capacity(line.len()), |mut shown, character| {
            if unseen(character) {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
            shown
        })
    }
}

/// Characters that break a line, steer a terminal, or change or hide what stands beside them (Unicode: Cc, the line and
/// paragraph separators, and the formatting characters of direction, joining and tagging).
fn unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
