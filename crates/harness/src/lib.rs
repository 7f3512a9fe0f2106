//! The cmdgate command: judge, decide, confine and record the commands of a coding agent.

pub mod cli;
pub mod exit;
pub mod wire;
