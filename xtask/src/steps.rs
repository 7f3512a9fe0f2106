//! Runs steps one after the other, says how long each took, and lists at the end what could not be done.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// The workspace root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), std::path::Path::to_path_buf)
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A cargo that shows at a terminal how far it is, and in a log only what is wrong.
pub fn cargo_quietly(subcommand: &str) -> Command {
    let mut command = cargo();
    command.arg(subcommand);
    if !io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    command
}

/// A series of steps.
#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<String>,
    skipped: Vec<String>,
}

impl Steps {
    /// Runs one step.
    pub fn run(&mut self, title: &str, command: &mut Command) -> Result<()> {
        self.with(title, || {
            let line: Vec<_> = std::iter::once(command.get_program())
                .chain(command.get_args())
                .map(OsStr::to_string_lossy)
                .collect();
            let line = line.join(" ");
            let status = command.status().with_context(|| format!("starting `{line}`"))?;
            if status.success() { Ok(()) } else { bail!("`{line}` ended with {status}") }
        })
    }

    /// Runs one step that is not a process.
    pub fn with(&mut self, title: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut out = io::stdout();
        writeln!(out, "\n== {title}")?;
        out.flush()?;
        let begin = Instant::now();
        step().with_context(|| title.to_owned())?;
        let line = format!("{title} ({:.0} s)", begin.elapsed().as_secs_f64());
        writeln!(io::stdout(), "== done: {line}")?;
        self.done.push(line);
        Ok(())
    }

    /// Notes a step that this machine cannot do.
    pub fn skip(&mut self, title: &str, why: &str) {
        self.skipped.push(format!("{title}: {why}"));
    }

    /// Says what was done and what could not be.
    pub fn summary(&self) -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "\nDone:")?;
        for line in &self.done {
            writeln!(out, "  {line}")?;
        }
        if !self.skipped.is_empty() {
            writeln!(out, "Could not be done on this machine:")?;
            for line in &self.skipped {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }
}
