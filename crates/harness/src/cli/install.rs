//! `harness install` and `harness uninstall`.

use super::out;
use crate::exit::Exit;
use crate::hook::Agent;
use crate::install::home::Home;
use crate::install::{Change, InstallError, Plan, Scope};
use std::fmt::Write as _;

/// Put this program in front of an agent's shell
///
/// Foreign entries and comments stay; a changed file is kept beside itself as `<name>.before-cmdgate`; doing it twice is doing
/// it once.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness install claude-code --dry-run\n  harness install codex --scope project --contain"
)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    target: Target,
    /// Put every command that no rule denies into the sandbox, and ask only where a rule does; for agents that let a hook
    /// change the command
    #[arg(long)]
    contain: bool,
}

/// Take this program away from an agent's shell again
///
/// When nothing else has changed the agent's file meanwhile, it is as it was before, to the byte.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness uninstall claude-code --dry-run\n  harness uninstall codex --scope project"
)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The agent
    #[arg(value_enum)]
    agent: Agent,
    /// Whose files are changed
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn install(args: &InstallArgs) -> Exit {
    if args.contain && !args.target.agent.rewrites() {
        return super::fail(
            Exit::Usage,
            format_args!(
                "--contain: {} does not let a hook change a command, so nothing could be put into the sandbox; install it \
                 without, and what is not known to be harmless is asked about",
                args.target.agent.name()
            ),
        );
    }
    apply(&args.target, args.contain, Plan::install, "installed")
}

pub(crate) fn uninstall(args: &UninstallArgs) -> Exit {
    apply(&args.target, false, Plan::uninstall, "uninstalled")
}

fn apply(
    target: &Target,
    contain: bool,
    changes: impl Fn(&Plan) -> Result<Vec<Change>, InstallError>,
    done: &str,
) -> Exit {
    let (Some(home), Ok(current), Ok(program)) =
        (Home::from_environment(), std::env::current_dir(), std::env::current_exe())
    else {
        return super::fail(
            Exit::Failed,
            "the home directory, current directory or this program's path is not known",
        );
    };
    let project = super::place::enclosing_repository(&current);
    let plan = Plan::new(target.agent, target.scope, &home, &project, &program, contain);
    let changes = match changes(&plan) {
        Ok(changes) => changes,
        Err(error) => return super::fail(Exit::Failed, error),
    };
    let needed: Vec<&Change> = changes.iter().filter(|change| change.is_needed()).collect();
    if needed.is_empty() {
        return printed(&format!("{}: nothing to change\n", plan.file.display()));
    }
    // Everything is done before it is told, so that a reader who cannot take it does not end the work halfway.
    let mut text = String::new();
    for change in needed {
        let shown = change.file.display();
        if target.dry_run {
            let _ = match &change.after {
                Some(after) => writeln!(text, "{shown} would be:\n{after}"),
                None => writeln!(text, "{shown} would be removed"),
            };
            continue;
        }
        if let Err(error) = change.apply() {
            let _ = out::write(&text);
            return super::fail(Exit::Failed, error);
        }
        // Installing takes away what stood in another place.
        let what = if change.after.is_none() && done == "installed" { "removed" } else { done };
        let _ = writeln!(text, "{what}: {shown}");
        if let Some(kept) = change.kept() {
            let _ = writeln!(text, "as it was: {}", kept.display());
        }
    }
    if !target.dry_run && done == "installed" {
        if target.agent == Agent::Codex {
            text.push_str("Codex runs it once you have approved it: type /hooks in Codex.\n");
            if contain {
                text.push_str(
                    "In Codex's own sandbox no other can be set up, so every command is refused there: set \
                     sandbox_mode = \"danger-full-access\" in its config.toml.\n",
                );
            }
        }
        let name = target.agent.name();
        let _ = writeln!(text, "Next: restart {name}, then see with `harness doctor --agents` that it asks.");
    }
    printed(&text)
}

fn printed(text: &str) -> Exit {
    out::write(text).err().unwrap_or(Exit::Success)
}
