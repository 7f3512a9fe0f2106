//! `cargo xtask test`: installs what the tests need and runs all of them.

use crate::audit;
use crate::packages::{FOR_TESTS, ensure};
use crate::steps::{Steps, cargo, cargo_quietly, root};
use crate::tidy;
use anyhow::{Result, bail};
use std::process::{Command, ExitCode, Stdio};

/// Runs everything.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps.with("what the tests need", || ensure(FOR_TESTS))?;
    steps.with("tidy", tidy::run)?;
    steps.with("docs/commands.md is up to date", || crate::docs::run(true))?;
    steps.run("format", cargo().args(["fmt", "--all", "--check"]))?;
    steps.run(
        "clippy",
        cargo_quietly("clippy").args(["--workspace", "--all-targets", "--", "--deny", "warnings"]),
    )?;
    steps.run(
        "documentation",
        cargo_quietly("doc").env("RUSTDOCFLAGS", "--deny warnings").args(["--workspace", "--no-deps"]),
    )?;
    // Built first, so that the tests that drive the program never meet an old one.
    steps.run("build", cargo_quietly("build").args(["--workspace", "--all-targets"]))?;
    steps.run("tests", cargo().args(["test", "--workspace", "--no-fail-fast"]))?;
    // In this process: its own file may have been built anew by the steps above, so that it cannot be started again.
    steps.with("case audit", || passed(audit::cases::run(audit::cases::Cli::figures())?))?;
    steps.with("flag audit", || passed(audit::flags::run(&audit::flags::Cli::default())?))?;
    pure_crates(&mut steps)?;
    other_systems(&mut steps)?;
    fuzz_targets(&mut steps)?;
    steps.summary()
}

/// An audit that found faults has printed them.
fn passed(code: ExitCode) -> Result<()> {
    if code == ExitCode::SUCCESS { Ok(()) } else { bail!("the audit found faults") }
}

/// The pure crates have no standard library.
fn pure_crates(steps: &mut Steps) -> Result<()> {
    let target = "wasm32-unknown-unknown";
    let title = "lexer and classifier without a standard library";
    if has_target(target) {
        return steps.run(
            title,
            cargo_quietly("build").args([
                "--target",
                target,
                "-p",
                "cmdgate-lexer",
                "-p",
                "cmdgate-classifier",
            ]),
        );
    }
    steps.skip(
        title,
        "the target wasm32-unknown-unknown cannot be had; `#![no_std]` and clippy hold it instead",
    );
    Ok(())
}

fn other_systems(steps: &mut Steps) -> Result<()> {
    let target = "aarch64-apple-darwin";
    let title = "the executor for macOS type-checks";
    if has_target(target) {
        return steps.run(title, cargo_quietly("check").args(["--target", target, "-p", "cmdgate-executor"]));
    }
    steps.skip(title, "the target aarch64-apple-darwin cannot be had");
    Ok(())
}

fn fuzz_targets(steps: &mut Steps) -> Result<()> {
    let title = "fuzz targets build";
    let nightly = Command::new("cargo")
        .args(["+nightly", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let mut command = if nightly {
        let mut command = Command::new("cargo");
        command.arg("+nightly").current_dir(root()).env_remove("RUSTUP_TOOLCHAIN");
        command
    } else {
        cargo()
    };
    steps.run(title, command.args(["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml"]))
}

/// Whether a target is installed, or can be.
fn has_target(target: &str) -> bool {
    let installed = || {
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output().is_ok_and(
            |output| {
                let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                output.status.success() && std::path::Path::new(&path).is_dir()
            },
        )
    };
    installed()
        || (Command::new("rustup")
            .args(["target", "add", target])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
            && installed())
}
