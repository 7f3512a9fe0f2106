//! `harness rules`: rules that a person asked to be remembered.

use super::log::{new_table, print, print_json};
use crate::approve::remember::{self, RememberedFile};
use crate::config::UserDirs;
use crate::exit::Exit;
use crate::present::printable;
use crate::wire::rules::Rules;
use clap::Subcommand;
use cmdgate_policy::Timestamp;
use comfy_table::Cell;
use std::time::SystemTime;

/// List and remove the rules that approvals left behind
///
/// Exit status: 0 done, 1 there is no such rule, 3 the file is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness rules list\n  harness rules remove 2")]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    /// All remembered rules with their numbers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a rule
    Remove {
        /// Its number in the list
        #[arg(value_parser = number)]
        number: usize,
    },
}

/// The number of a rule.
fn number(text: &str) -> Result<usize, String> {
    let wrong = || "write the number of a rule; `harness rules list` shows them".to_owned();
    text.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)
}

pub(crate) fn rules(args: &RulesArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &RulesArgs) -> Result<Exit, Exit> {
    let Some(config) = UserDirs::from_environment().config else {
        return Err(super::fail(Exit::Failed, remember::RememberError::NoDirectory));
    };
    let file = RememberedFile::new(config.join(remember::FILE));
    let failed = |error| super::fail(Exit::Policy, error);
    match &args.command {
        RulesCommand::List { json } => {
            let rules = file.list().map_err(failed)?;
            if *json {
                return print_json(&Rules::new(file.path(), &rules));
            }
            if rules.is_empty() {
                return print("no rules are remembered\n");
            }
            let now = Timestamp::from(SystemTime::now());
            let mut table = new_table(["#", "rule", "where", "holds", "why"]);
            for found in &rules {
                let whole = if found.rule.whole { " (whole)" } else { "" };
                let rule = &found.rule;
                table.add_row([
                    Cell::new(found.number),
                    Cell::new(format!(
                        "{} {} {}{whole}",
                        rule.effect,
                        rule.act,
                        printable(rule.pattern.as_str())
                    )),
                    Cell::new(found.project.as_deref().map_or_else(|| "everywhere".to_owned(), printable)),
                    Cell::new(match rule.expires {
                        None => "until removed".to_owned(),
                        Some(expires) if expires <= now => format!("no more, since {expires}"),
                        Some(expires) => format!("until {expires}"),
                    }),
                    Cell::new(printable(rule.reason.as_deref().unwrap_or_default())),
                ]);
            }
            print(&format!("{table}\n(from {})\n", file.path().display()))
        }
        RulesCommand::Remove { number } => match file.remove(*number).map_err(failed)? {
            Some(removed) => print(&format!("forgot `{}`\n", printable(removed.rule.pattern.as_str()))),
            None => Err(super::fail(
                Exit::Unwell,
                format_args!("there is no rule {number}; `harness rules list`"),
            )),
        },
    }
}
