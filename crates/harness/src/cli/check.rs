//! `harness check` and `harness explain`: the decision, for a program and for a person.

use super::decide::DecideArgs;
use super::out::{self, say};
use crate::exit::Exit;
use crate::gate::{Decision, Request};
use crate::session::Session;
use crate::{advice, diagnose, wire};
use cmdgate_policy::Effect;

/// Say what would be decided about a command under the effective policy, without running it
///
/// Exit status: 0 allow, 10 ask, 20 deny, 2 usage, 3 a policy file is wrong, 125 nothing could be decided or said.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness check -- 'git log --oneline'\n  \
    harness check --sandbox workspace_write --approval never --json -- 'npm test'")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    decide: DecideArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command, as one argument
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: String,
}

/// Show a person why a command is allowed, asked about or denied, and what would make it pass
///
/// Exit status: 0 allow, 10 ask, 20 deny, 2 usage, 3 a policy file is wrong, 125 nothing could be decided or said.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness explain -- 'sort -ro out.txt a.txt'\n  \
    harness explain --grammar sequence -- 'cd src && find . -name x -delete'")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    decide: DecideArgs,
    /// The command, as one argument
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: String,
}

pub(crate) fn check(args: &CheckArgs) -> Exit {
    let (session, request, decision) = match decide(&args.decide, &args.command) {
        Ok(decided) => decided,
        Err(exit) => return exit,
    };
    let text = if args.json {
        match serde_json::to_string(&wire::Decided::new(&request, &decision)) {
            Ok(text) => text,
            Err(error) => return super::fail(Exit::Failed, error),
        }
    } else {
        let code = decision.code.map_or(String::new(), |code| format!(" {}", code.as_str()));
        format!(
            "{}{code}: {}\n  source {}, layer {}",
            decision.effect,
            decision.reason,
            decision.source.as_str(),
            decision.layer()
        )
    };
    if let Some(line) = advice::untrusted(&session).filter(|_| decision.effect != Effect::Allow) {
        say!("harness: {line}");
    }
    print(&text, decision.effect)
}

pub(crate) fn explain(args: &ExplainArgs) -> Exit {
    match decide(&args.decide, &args.command) {
        Ok((session, request, decision)) => {
            print(&diagnose::decision_with_advice(&session, &request, &decision), decision.effect)
        }
        Err(exit) => exit,
    }
}

fn decide(args: &DecideArgs, command: &str) -> Result<(Session, Request, Decision), Exit> {
    let session = args.deciding(None)?;
    let mut request = Request::shell(command);
    request.workdir = args.workdir(&session);
    let decision = session.gate().decide(&request);
    Ok((session, request, decision))
}

fn print(text: &str, effect: Effect) -> Exit {
    if let Err(exit) = out::write(format_args!("{text}\n")) {
        return exit;
    }
    match effect {
        Effect::Allow => Exit::Success,
        Effect::Ask => Exit::Ask,
        Effect::Deny => Exit::Deny,
    }
}
