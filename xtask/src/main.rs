//! Development tasks of cmdgate: `cargo xtask --help`.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Development tasks of cmdgate.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compare the tables with judged commands and with the programs themselves.
    Audit(xtask::audit::Cli),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().task {
        Task::Audit(cli) => xtask::audit::run(cli),
    }
}
