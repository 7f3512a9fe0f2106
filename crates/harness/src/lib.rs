//! The cmdgate command: judge, decide, confine and record the commands of a coding agent.

pub mod advice;
pub mod agent;
pub mod approve;
mod beyond;
pub mod cli;
pub mod config;
pub mod diagnose;
pub mod exit;
pub mod gate;
pub mod hook;
pub mod import;
pub mod init;
pub mod install;
pub mod io_harness;
mod jsonc;
pub mod learn;
pub mod mcp;
pub mod present;
mod provide;
mod read;
pub mod redact;
mod repository;
pub mod resolve;
pub mod secrets;
pub mod session;
pub mod store;
pub mod syntax;
mod toolchain;
pub mod tools;
pub mod trust;
pub mod unwrap;
pub mod wire;
pub mod words;

pub use agent::{
    OpenRouter, RunError, RunOutcome, RunResult, Scripted, TaskContract, Verification, resume, run_with,
};
pub use approve::{ApproveAll, Approver, DenyAll};
pub use cmdgate_policy::{Act, Effect, Policy};
pub use store::Store;

/// What a function of this crate gives that can fail as a run can.
pub type Result<T, E = RunError> = std::result::Result<T, E>;
