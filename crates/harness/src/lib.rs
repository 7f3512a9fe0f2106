//! The cmdgate command: judge, decide, confine and record the commands of a coding agent.

pub mod cli;
pub mod config;
pub mod exit;
pub mod gate;
pub mod present;
mod provide;
pub mod resolve;
mod toolchain;
pub mod trust;
pub mod unwrap;
pub mod wire;
