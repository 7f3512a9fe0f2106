//! Development tasks of cmdgate: `cargo xtask --help`.

use clap::{Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
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
    /// Install what is missing and walk through the main job on a real repository.
    Demo,
    /// Install what the tests need and run all of them: a quarter of an hour on two cores.
    ///
    /// In this order: packages, which are named before they are installed; shape of the project, generated documents, format,
    /// lints, documentation; every test; the audits of cases and flags; the crates without a standard library and the
    /// executor for macOS, for which rustup adds two targets; the fuzz targets. It stops at the first step that fails, and says
    /// at the end what this machine could not do.
    Test,
    /// Check the shape of the project: dependencies, registry, contract rows, promises.
    Tidy,
    /// Write docs/commands.md from the tables.
    Docs {
        /// Only check that it is up to date.
        #[arg(long)]
        check: bool,
    },
    /// Run the benchmarks; `hook` measures the whole program, from its start to its answer.
    Bench {
        /// `hook`, or only benchmarks whose name holds this.
        filter: Option<String>,
        /// With `hook`, how often each is started.
        #[arg(long, default_value_t = 200)]
        rounds: usize,
        /// With `hook`, another build of the program to measure in the same run.
        #[arg(long, value_name = "FILE")]
        before: Option<PathBuf>,
    },
    /// Run the fuzz targets, each for some seconds.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only this target.
        target: Option<String>,
    },
    /// Compare the tables with judged commands and with the programs themselves.
    Audit(xtask::audit::Cli),
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        // The chain of what was being done; a trace through this program would help nobody.
        let _ = writeln!(std::io::stderr(), "\nerror: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> anyhow::Result<ExitCode> {
    match Cli::parse().task {
        Task::Demo => xtask::demo::run().map(|()| ExitCode::SUCCESS),
        Task::Test => xtask::test::run().map(|()| ExitCode::SUCCESS),
        Task::Tidy => xtask::tidy::run().map(|()| ExitCode::SUCCESS),
        Task::Docs { check } => xtask::docs::run(check).map(|()| ExitCode::SUCCESS),
        Task::Bench { filter, rounds, before } if filter.as_deref() == Some("hook") => {
            xtask::bench::hook(rounds, before.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Task::Bench { filter, rounds: _, before: _ } => {
            xtask::bench::run(filter.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Task::Fuzz { seconds, target } => {
            xtask::fuzz::run(seconds, target.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Task::Audit(cli) => xtask::audit::run(cli),
    }
}
