//! The command line: one file a subcommand.

mod agent;
mod approvals;
mod check;
mod classify;
mod decide;
mod doctor;
mod hook;
mod import;
mod init;
mod install;
mod log;
mod mcp;
mod place;
mod policy;
mod rules;
mod run;
mod trust;

use crate::exit::Exit;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Judge, decide, confine and record the commands of a coding agent.
#[derive(Debug, Parser)]
#[command(name = "harness", version, about, long_about = None, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Classify(classify::Args),
    Check(check::CheckArgs),
    Explain(check::ExplainArgs),
    Run(run::RunArgs),
    Exec(run::ExecArgs),
    Agent(agent::AgentArgs),
    Doctor(doctor::DoctorArgs),
    Hook(hook::HookArgs),
    AllowOnce(hook::AllowOnceArgs),
    Init(init::InitArgs),
    Install(install::InstallArgs),
    Uninstall(install::UninstallArgs),
    Mcp(mcp::McpArgs),
    Log(log::LogArgs),
    Approvals(approvals::ApprovalsArgs),
    Rules(rules::RulesArgs),
    Import(import::ImportArgs),
    Trust(trust::TrustArgs),
    Policy(policy::PolicyArgs),
    Config(policy::ConfigArgs),
}

/// Runs the program with the process's own arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit = match cli.command {
        Command::Classify(args) => classify::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Explain(args) => check::explain(&args),
        Command::Run(args) => run::run(args),
        Command::Exec(args) => run::exec(args),
        Command::Agent(args) => agent::agent(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        // Its exit codes are the agent's.
        Command::Hook(args) => return hook::hook(&args),
        Command::AllowOnce(args) => hook::allow_once(&args),
        Command::Init(args) => init::init(&args),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Mcp(args) => mcp::mcp(&args),
        Command::Log(args) => log::log(&args),
        Command::Approvals(args) => approvals::approvals(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Import(args) => import::import(&args),
        Command::Trust(args) => trust::trust(&args),
        Command::Policy(args) => policy::policy(&args),
        Command::Config(args) => policy::config(&args),
    };
    exit.into()
}

/// Prints an error with what to do about it, and gives back the exit.
fn fail(exit: Exit, message: impl std::fmt::Display) -> Exit {
    anstream::eprintln!("harness: {message}");
    exit
}
