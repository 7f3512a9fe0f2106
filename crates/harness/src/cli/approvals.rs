//! `harness approvals`: questions that wait for an answer.

use super::decide::DecideArgs;
use super::log::{must_be_there, new_table, print, print_json, short_time};
use super::out::say;
use crate::approve::pending::{Pending, PendingError};
use crate::exit::Exit;
use crate::present::printable;
use crate::wire::rules::{Approval, Approvals};
use clap::{Subcommand, ValueEnum};
use comfy_table::Cell;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Answer questions that nobody could answer when they were asked, and resume what was approved
///
/// Exit status: 0 done, 1 the approval does not exist or was used before, 126 refused; of `resume`, as `harness run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness approvals list\n  harness approvals show 3\n  \
    harness approvals approve 3 && harness approvals resume 3\n  harness approvals deny 3 5 --message 'use a branch'")]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    command: ApprovalsCommand,
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE", global = true)]
    trace: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// The questions that wait, or that are approved and not resumed yet
    List {
        /// Also those that are done with
        #[arg(long)]
        all: bool,
    },
    /// What was asked, and what changed since
    Show {
        /// The approval's number
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Say yes; `resume` then runs it
    Approve {
        /// The approval's number
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Say no to one or several
    Deny {
        /// The approvals' numbers
        #[arg(value_name = "ID", required = true, value_parser = number)]
        ids: Vec<i64>,
        /// A message to whoever asked
        #[arg(long, short, default_value = "")]
        message: String,
    },
    /// Decide again, and run what was approved
    Resume {
        /// The approval's number
        #[arg(value_parser = number)]
        id: i64,
        /// Although files or the directory changed since it was asked
        #[arg(long)]
        force: bool,
    },
}

/// The number of an approval.
fn number(text: &str) -> Result<i64, String> {
    let wrong = || "write the number of an approval; `harness approvals list` shows them".to_owned();
    text.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)
}

pub(crate) fn approvals(args: &ApprovalsArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &ApprovalsArgs) -> Result<Exit, Exit> {
    must_be_there(args.trace.as_ref())?;
    let store = super::run::open_store(args.trace.as_ref())?;
    let failed = |error| super::fail(Exit::Unwell, error);
    match &args.command {
        ApprovalsCommand::List { all } => {
            let list = store.pendings(*all).map_err(failed)?;
            if args.json {
                return print_json(&Approvals::new(&list));
            }
            if list.is_empty() {
                return print("nothing waits for an answer\n");
            }
            let mut table = new_table(["#", "time (UTC)", "state", "command", "sandbox", "project"]);
            for pending in &list {
                table.add_row([
                    Cell::new(pending.id),
                    Cell::new(short_time(&pending.at)),
                    Cell::new(&pending.state),
                    Cell::new(printable(&pending.line())),
                    Cell::new(printable(pending.sandbox())),
                    Cell::new(printable(&pending.root.to_string_lossy())),
                ]);
            }
            print(&format!("{table}\n"))
        }
        ApprovalsCommand::Show { id } => {
            let pending = find(&store, *id)?;
            let changes =
                if pending.is_open() { changes_of(&pending, args.trace.as_ref()) } else { Vec::new() };
            if args.json {
                return print_json(&Approval::new(&pending, Some(&changes)));
            }
            let mut text = text_of(&pending);
            for change in &changes {
                let _ = writeln!(text, "changed since it was asked: {}", printable(change));
            }
            print(&text)
        }
        ApprovalsCommand::Approve { id } => {
            let pending = store.answer(*id, true, "").map_err(failed)?;
            let changes = changes_of(&pending, args.trace.as_ref());
            if args.json {
                return print_json(&Approval::new(&pending, Some(&changes)));
            }
            for change in &changes {
                say!("changed since it was asked: {}", printable(change));
            }
            print(&format!(
                "approved: {}\nsandbox  {}\nrun it with: harness approvals resume {id}\n",
                printable(&pending.line()),
                printable(pending.sandbox()),
            ))
        }
        ApprovalsCommand::Deny { ids, message } => {
            let mut exit = Exit::Success;
            for id in ids {
                match store.answer(*id, false, message) {
                    Ok(pending) => {
                        let command = pending.line();
                        if args.json {
                            print_json(&Approval::new(&pending, None))?;
                        } else {
                            print(&format!("denied: {}\n", printable(&command)))?;
                        }
                    }
                    // The others are answered all the same.
                    Err(error) => exit = failed(error),
                }
            }
            Ok(exit)
        }
        ApprovalsCommand::Resume { id, force } => {
            let pending = find(&store, *id)?;
            if pending.state == "pending" {
                return Err(failed(PendingError::Unanswered(*id)));
            }
            if !pending.root.is_dir() {
                return Err(super::fail(
                    Exit::Refused,
                    format_args!(
                        "the project {} is gone, so approval {id} cannot be resumed",
                        pending.root.display()
                    ),
                ));
            }
            let session = options_of(&pending, args.trace.as_ref())?.session(None)?;
            // One that was used or denied is refused for that, further down.
            let changes = if pending.state == "approved" { pending.changes(&session) } else { Vec::new() };
            for change in &changes {
                say!("changed since it was asked: {}", printable(change));
            }
            if let Some(around) = pending.changed_around().filter(|_| pending.state == "approved") {
                say!("changed since it was asked: {}", printable(&around));
            }
            if !pending.same_policy(&session) {
                say!("the policy changed since it was asked; it is decided again under the present one");
            }
            if !changes.is_empty() && !force {
                return Err(super::fail(
                    Exit::Refused,
                    "not resumed: look at the changes, then pass --force, or ask again",
                ));
            }
            store.take_approved(*id).map_err(failed)?;
            Ok(super::run::resume(&store, &session, &pending, args.json))
        }
    }
}

fn find(store: &crate::store::Store, id: i64) -> Result<Pending, Exit> {
    match store.pending(id) {
        Ok(Some(pending)) => Ok(pending),
        Ok(None) => Err(super::fail(Exit::Unwell, PendingError::Unknown(id))),
        Err(error) => Err(super::fail(Exit::Unwell, error)),
    }
}

/// What differs now from when it was asked, for whoever looks at a question that is still open.
fn changes_of(pending: &Pending, trace: Option<&PathBuf>) -> Vec<String> {
    if !pending.root.is_dir() {
        return vec![format!("the project {} is gone", pending.root.display())];
    }
    let Ok(session) = options_of(pending, trace).and_then(|options| options.session(None)) else {
        return vec!["the policy, which cannot be read now".to_owned()];
    };
    let mut changes = pending.changes(&session);
    if !pending.same_policy(&session) {
        changes.push("the policy; it is decided again under the present one".to_owned());
    }
    changes.extend(pending.changed_around());
    changes
}

/// What the command line set when it was asked, as it is stored.
pub(super) fn options(decide: &DecideArgs, timeout: Option<std::time::Duration>) -> Value {
    let name = |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
    let policy: Vec<String> = decide
        .policy
        .iter()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()).to_string_lossy().into_owned())
        .collect();
    json!({
        "sandbox": name(decide.sandbox.and_then(|value| value.to_possible_value())),
        "approval": name(decide.approval.and_then(|value| value.to_possible_value())),
        "grammar": name(decide.grammar.and_then(|value| value.to_possible_value())),
        "profile": name(decide.profile.and_then(|value| value.to_possible_value())),
        "policy": policy,
        "timeout_ms": timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok()),
    })
}

/// The stored options again. One that is not understood ends it, because without it the run would be another one.
fn options_of(pending: &Pending, trace: Option<&PathBuf>) -> Result<DecideArgs, Exit> {
    fn one<T: ValueEnum>(options: &Value, name: &str) -> Result<Option<T>, Exit> {
        match options.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                T::from_str(value.as_str().unwrap_or_default(), false).map(Some).map_err(|error| {
                    crate::cli::fail(Exit::Failed, format_args!("the stored option {name}: {error}"))
                })
            }
        }
    }
    let options = &pending.options;
    let policy = options.get("policy").and_then(Value::as_array);
    Ok(DecideArgs {
        root: Some(pending.root.clone()),
        workdir: Some(pending.workdir.clone()),
        sandbox: one(options, "sandbox")?,
        approval: one(options, "approval")?,
        grammar: one(options, "grammar")?,
        profile: one(options, "profile")?,
        policy: policy.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect(),
        trace: trace.cloned(),
    })
}

fn text_of(pending: &Pending) -> String {
    let shown = pending.shown.get("text").and_then(Value::as_str).unwrap_or_default();
    let files = pending
        .files
        .iter()
        .filter(|file| file.sha256.is_some())
        .map(|file| printable(&file.path.to_string_lossy()))
        .collect::<Vec<_>>()
        .join("\n  ");
    let written = pending.shown.get("written").and_then(Value::as_str);
    let written = written.map_or_else(String::new, |written| format!("what it changes:\n{written}\n"));
    format!(
        "approval {} is {}\ncommand  {}\nworkdir  {}\nsandbox  {}\n{}\n{written}{shown}\nfiles whose contents were noted:\n  {}\n",
        pending.id,
        pending.state,
        printable(&pending.line()),
        printable(&pending.workdir.to_string_lossy()),
        printable(pending.sandbox()),
        crate::approve::terminal::touches(&pending.request.action),
        if files.is_empty() { "none" } else { files.as_str() },
    )
}
