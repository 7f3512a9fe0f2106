//! `harness mcp`: the command tools for any client of the Model Context Protocol.

use super::decide::DecideArgs;
use crate::config::UserDirs;
use crate::exit::Exit;
use crate::mcp::{self, Config, OpenError, ServeError};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

/// Serve the command tools to a client of the Model Context Protocol, on standard input and output
///
/// Standard output carries the protocol and nothing else; what goes wrong is on standard error. Exit status: 0 the client
/// is gone, 2 usage, 3 a policy file is wrong, 125 the server failed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness mcp\n  harness mcp --root ~/project --sandbox workspace_write\n  \
    claude mcp add cmdgate -- harness mcp --sandbox workspace_write"
)]
#[command(mut_arg("root", |arg| arg.help(
    "Project root; the client's roots count nothing then [default: the client's first root, or the enclosing git \
     repository, or the current directory]"
)))]
#[command(mut_arg("workdir", |arg| arg.hide(true)))]
pub(crate) struct McpArgs {
    #[command(flatten)]
    decide: DecideArgs,
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Time for a person's answer, in milliseconds. After that the command is refused, and the question is kept for
    /// `harness approvals`
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1000..=86_400_000))]
    answer_timeout_ms: u64,
}

pub(crate) fn mcp(args: &McpArgs) -> Exit {
    if args.decide.workdir.is_some() {
        return super::fail(Exit::Usage, "--workdir: each call names its own directory");
    }
    let store = match super::run::open_store(args.trace.as_ref()) {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let root = match args.decide.root() {
        Ok(root) => root,
        Err(exit) => return exit,
    };
    let config = Config {
        root: args.decide.root.is_some().then(|| root.clone()),
        fallback: root,
        overrides: args.decide.recorded_in(args.trace.as_ref()).overrides(None),
        dirs: UserDirs::from_environment(),
        options: super::approvals::options(&args.decide, None),
        answer_timeout: Duration::from_millis(args.answer_timeout_ms),
    };
    let runtime = match super::run::runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    if io::stdin().is_terminal() {
        super::out::say!("harness: waiting for a client on standard input; register this command in one");
    }
    let served = runtime.block_on(mcp::serve(config, store));
    // Nothing is left but a read of standard input, which cannot be cancelled.
    runtime.shutdown_background();
    match served {
        Ok(()) => Exit::Success,
        Err(ServeError::Open(OpenError::Config(error))) => super::decide::config_failed(&error),
        Err(error) => super::fail(Exit::Failed, error),
    }
}
