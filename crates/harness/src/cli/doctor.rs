//! `harness doctor`: what this machine can enforce, and whether the agents are behind it.

use super::progress::Progress;
use crate::exit::Exit;
use crate::install::health::{self, AgentHealth, Places, Status};
use crate::install::home::Home;
use crate::present::printable;
use crate::wire;
use cmdgate_executor::Executor;
use cmdgate_executor::probe::{CheckStatus, Report};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Say what this machine can enforce, with a live canary, and how to mend what is missing
///
/// Exit status: 0 all well, 1 not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness doctor\n  harness doctor --agents\n  harness doctor --agents --json"
)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Instead, look at the agents that are here: whether each one's hook is registered, would be run, and refuses a
    /// dangerous command
    #[arg(long)]
    agents: bool,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Exit {
    if args.agents {
        return agents(args.json);
    }
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
    let progress = Progress::begin("trying the sandbox");
    let report = match super::run::runtime() {
        Ok(runtime) => runtime.block_on(executor.probe()),
        Err(exit) => return exit,
    };
    drop(progress);
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

fn agents(json: bool) -> Exit {
    let (Some(home), Ok(current)) = (Home::from_environment(), std::env::current_dir()) else {
        return super::fail(
            Exit::Failed,
            "the home directory or the current directory is not known: set HOME",
        );
    };
    let project = super::place::enclosing_repository(&current);
    let places = Places::of(home, project, &std::env::var_os("PATH").unwrap_or_default());
    let progress = Progress::begin("looking for agents");
    let all = health::agents(&places, |what| progress.now(&printable(what)));
    drop(progress);
    let text = if json {
        match serde_json::to_string(&wire::agents::AgentsHealth::new(&all)) {
            Ok(text) => text + "\n",
            Err(error) => return super::fail(Exit::Failed, error),
        }
    } else if all.is_empty() {
        "no agent is here: neither settings nor a program on PATH\n".to_owned()
    } else {
        all.iter().map(text_of_agent).collect()
    };
    if io::stdout().lock().write_all(text.as_bytes()).is_err() {
        return Exit::Failed;
    }
    let failed = all.iter().flat_map(|agent| &agent.checks).any(|check| check.status == Status::Failed);
    if failed { Exit::Unwell } else { Exit::Success }
}

fn text_of_agent(health: &AgentHealth) -> String {
    let seen: Vec<_> = health.seen.iter().map(|path| path.to_string_lossy()).collect();
    let mut text = format!("{} ({})\n", health.agent.name(), printable(&seen.join(", ")));
    for check in &health.checks {
        let _ =
            writeln!(text, "  {:8} {:12} {}", check.status.as_str(), check.name, printable(&check.detail));
        if let Some(remedy) = &check.remedy {
            let _ = writeln!(text, "  {:21} {}", "", printable(remedy));
        }
    }
    text
}
