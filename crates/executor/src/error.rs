//! Why nothing was run.

use std::io;
use std::path::PathBuf;

/// The step of setting a sandbox up that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The sandbox program was not found, or the one found may not be trusted.
    Find,
    /// The sandbox program could not be started.
    Start,
    /// The sandbox program refused its arguments or a namespace, mount or filter could not be made.
    SetUp,
    /// The sandbox came up, but a canary showed that it does not hold.
    Canary,
    /// This operating system has no backend.
    Platform,
    /// The proxy for [`crate::Network::Domains`] could not be set up.
    Proxy,
    /// A limit that the caller required could not be put in force.
    Limits,
}

impl Stage {
    /// A stable, lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Start => "start",
            Self::SetUp => "set_up",
            Self::Canary => "canary",
            Self::Platform => "platform",
            Self::Proxy => "proxy",
            Self::Limits => "limits",
        }
    }
}

/// Why a working directory was refused. [`WorkdirProblem::code`] is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkdirProblem {
    /// It leads out of the project and of every extra root, by name or through a symlink.
    OutsideAllowedRoot,
    /// There is nothing by that name.
    Missing,
    /// It is a file or something else that is not a directory.
    NotADirectory,
    /// It exists and cannot be entered.
    Unreadable,
}

impl WorkdirProblem {
    /// `PATH_OUTSIDE_ALLOWED_ROOT`, `PATH_NOT_FOUND`, `PATH_NOT_A_DIRECTORY` or `PATH_UNREADABLE`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OutsideAllowedRoot => "PATH_OUTSIDE_ALLOWED_ROOT",
            Self::Missing => "PATH_NOT_FOUND",
            Self::NotADirectory => "PATH_NOT_A_DIRECTORY",
            Self::Unreadable => "PATH_UNREADABLE",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::OutsideAllowedRoot => "it lies outside the project root; pass a directory inside it",
            Self::Missing => "there is no such directory",
            Self::NotADirectory => "it is not a directory",
            Self::Unreadable => "it cannot be entered; check its permissions",
        }
    }
}

/// Why nothing was run. What happened to something that *was* started is an [`crate::Outcome`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The project root cannot be used.
    #[error("project root {path:?} cannot be used: {reason}")]
    Root {
        /// The root as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A further root cannot be used.
    #[error("extra root {path:?} cannot be used: {reason}")]
    ExtraRoot {
        /// The root as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The working directory was refused.
    #[error("working directory {path:?} refused ({code}): {sentence}", code = .problem.code(), sentence = .problem.sentence())]
    Workdir {
        /// The directory as given.
        path: PathBuf,
        /// What is wrong with it.
        problem: WorkdirProblem,
    },
    /// The command is empty or blank, or the argument list is empty.
    #[error("command is empty: give a command, or a program as the first argument")]
    EmptyCommand,
    /// A command, argument or environment entry holds a NUL byte, which no Unix program can receive.
    #[error("{what} holds a NUL byte, which no program can receive")]
    NulByte {
        /// What held it.
        what: String,
    },
    /// An environment name is empty or holds `=`.
    #[error("environment name {name:?} is not valid: it is empty or holds `=`")]
    EnvironmentName {
        /// The name.
        name: String,
    },
    /// The sandbox that was asked for cannot be had, so nothing was run.
    #[error("sandbox unavailable at stage {stage}: {text}; {remedy}", stage = .stage.name())]
    SandboxUnavailable {
        /// The step that failed.
        stage: Stage,
        /// What the system said.
        text: String,
        /// What to install or set.
        remedy: String,
    },
    /// As many background commands run as may.
    #[error("{limit} background commands already run; end one first")]
    TooManyBackground {
        /// How many may run.
        limit: usize,
    },
    /// There is no background command by that number.
    #[error("no background command has the number {id}")]
    NoSuchBackground {
        /// The number.
        id: u64,
    },
    /// A resource of the executor itself failed.
    #[error("failed to {doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl ExecError {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
