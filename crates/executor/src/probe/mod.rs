//! What this machine can enforce, for `doctor`.

#[cfg(target_os = "macos")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod other;

#[cfg(target_os = "macos")]
pub(crate) use self::apple::report;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::report;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) use self::other::report;
use crate::sandbox::Rung;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// Works, with less than everything.
    Warning,
    /// Keeps the sandbox from running.
    Failed,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A stable name: `bwrap`, `user_namespaces`, `canary`, …
    pub name: &'static str,
    /// How it went.
    pub status: CheckStatus,
    /// What was found.
    pub detail: String,
    /// What to do about it, when something is not as it should be.
    pub remedy: Option<String>,
}

/// What this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Everything looked at, in order.
    pub checks: Vec<Check>,
    /// The rung that a sandbox would run on; `None` when it would be refused.
    pub rung: Option<Rung>,
}

impl Report {
    /// Whether a sandboxed command would run.
    pub const fn works(&self) -> bool {
        self.rung.is_some()
    }
}

/// Whether there is a bash to run commands with.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn bash() -> Check {
    match crate::run::bash() {
        Some(bash) => {
            Check { name: "bash", status: CheckStatus::Ok, detail: bash.display().to_string(), remedy: None }
        }
        None => Check {
            name: "bash",
            status: CheckStatus::Failed,
            detail: "bash was not found".to_owned(),
            remedy: Some("install bash".to_owned()),
        },
    }
}
