//! `harness doctor`: what this machine can enforce.

use crate::exit::Exit;
use crate::wire;
use cmdgate_executor::Executor;
use cmdgate_executor::probe::{CheckStatus, Report};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Say what this machine can enforce, with a live canary, and how to mend what is missing
///
/// Exit status: 0 all well, 1 not.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Exit {
    let root = match std::env::current_dir() {
        Ok(root) => root,
        Err(error) => {
            return super::fail(Exit::Failed, format_args!("the current directory cannot be read: {error}"));
        }
    };
    let executor = match Executor::builder(root).build() {
        Ok(executor) => executor,
        Err(error) => return super::fail(Exit::Failed, error),
    };
    let report = match super::run::runtime() {
        Ok(runtime) => runtime.block_on(executor.probe()),
        Err(exit) => return exit,
    };
    let text = if args.json {
        match serde_json::to_string(&wire::Health::new(&report)) {
            Ok(text) => text + "\n",
            Err(error) => return super::fail(Exit::Failed, error),
        }
    } else {
        text_of(&report)
    };
    if io::stdout().lock().write_all(text.as_bytes()).is_err() {
        return Exit::Failed;
    }
    if report.checks.iter().any(|check| check.status == CheckStatus::Failed) {
        Exit::Unwell
    } else {
        Exit::Success
    }
}

fn text_of(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let _ = writeln!(text, "{:8} {:24} {}", wire::check_status(check.status), check.name, check.detail);
        if let Some(remedy) = &check.remedy {
            for line in remedy.lines() {
                let _ = writeln!(text, "{:33} {line}", "");
            }
        }
    }
    text
}
