//! `cargo xtask fuzz`: every fuzz target for a while.

use crate::steps::root;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The targets, as they are called in `fuzz/Cargo.toml`.
pub const TARGETS: [&str; 5] = ["lex", "classify", "argv", "policy", "hook"];

/// Runs each target, or the one that is named, for so many seconds. Needs a nightly compiler and `cargo-fuzz`.
pub fn run(seconds: u64, only: Option<&str>) -> Result<()> {
    if only.is_some_and(|name| !TARGETS.contains(&name)) {
        bail!("the targets are {}", TARGETS.join(", "));
    }
    for target in TARGETS.into_iter().filter(|target| only.is_none_or(|name| name == *target)) {
        let status = Command::new("cargo")
            .args(["+nightly", "fuzz", "run", target, "--"])
            .arg(format!("-max_total_time={seconds}"))
            .current_dir(root())
            .env_remove("RUSTUP_TOOLCHAIN")
            .status()
            .context("starting cargo")?;
        if !status.success() {
            bail!(
                "`{target}` ended with {status}; without a nightly compiler or `cargo install cargo-fuzz` it cannot start"
            );
        }
    }
    Ok(())
}
