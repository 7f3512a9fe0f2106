//! Audits: what the tables say against judged commands and against the programs themselves.

pub mod cases;
pub mod flags;
pub mod trace;

use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `cargo xtask audit …`
#[derive(Debug, clap::Args)]
pub struct Cli {
    #[command(subcommand)]
    audit: Audit,
}

#[derive(Debug, Subcommand)]
enum Audit {
    /// Judge the case sets and print every line that misses.
    Cases(cases::Cli),
    /// Compare the tables with the option lists of the installed programs.
    Flags(flags::Cli),
    /// Run what is called safe in a hostile repository under a kernel trace.
    Trace(trace::Cli),
}

/// Runs the audit that was asked for.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.audit {
        Audit::Cases(cli) => cases::run(cli),
        Audit::Flags(cli) => flags::run(&cli),
        Audit::Trace(cli) => trace::run(&cli),
    }
}

/// The root of the workspace that this program was built from.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
