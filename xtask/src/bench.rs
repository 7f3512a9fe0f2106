//! `cargo xtask bench`: every benchmark, optimised.

use crate::steps::cargo;
use anyhow::{Result, bail};

/// Runs all benchmarks, or those whose name holds the filter.
pub fn run(filter: Option<&str>) -> Result<()> {
    let mut command = cargo();
    command.args(["bench", "--workspace", "--benches"]);
    if let Some(filter) = filter {
        command.args(["--", filter]);
    }
    let status = command.status()?;
    if status.success() { Ok(()) } else { bail!("cargo bench ended with {status}") }
}
