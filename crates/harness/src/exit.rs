//! Exit codes as a type.

use std::process::ExitCode;

/// How the `harness` program ends. The numbers are API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, safe, or allowed.
    Success,
    /// 1: something is not well (`doctor`, `log verify`, failed policy examples).
    Unwell,
    /// 2: the command line is wrong.
    Usage,
    /// 3: a policy or configuration file is wrong.
    Policy,
    /// 10: needs review (`classify`) or needs an approval (`check`, `explain`).
    Ask,
    /// 20: denied (`check`, `explain`).
    Deny,
    /// 124: the time was up and the whole tree was killed.
    Timeout,
    /// 125: the harness or the sandbox failed; the command did not run, or its end is not known.
    Failed,
    /// 126: denied, or an approval is needed and nobody could give it.
    Refused,
    /// 127: the program does not exist.
    NotFound,
    /// The command's own code.
    Command(u8),
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Unwell => 1,
            Self::Usage => 2,
            Self::Policy => 3,
            Self::Ask => 10,
            Self::Deny => 20,
            Self::Timeout => 124,
            Self::Failed => 125,
            Self::Refused => 126,
            Self::NotFound => 127,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
