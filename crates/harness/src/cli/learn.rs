//! `harness learn`: rules that would have saved questions, from what ran before.

use super::decide::DecideArgs;
use super::log::{new_table, print, print_json};
use super::out::say;
use super::progress::Progress;
use crate::exit::Exit;
use crate::gate::Gate;
use crate::learn::{self, History, Proposal};
use crate::present::printable;
use crate::read;
use crate::store::{Filter, Store, Which};
use crate::wire::rules::Learned;
use cmdgate_policy::{ApprovalPolicy, Defaults, Policy, SandboxMode};
use comfy_table::Cell;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// How deep folders of sessions are searched.
const DEEPEST: usize = 8;
/// How many sessions are read.
const MOST_FILES: usize = 20_000;
/// A session larger than this, in bytes, is not read.
const LARGEST_SESSION: u64 = 1024 * 1024 * 1024;
/// How many commands of one rule the table shows.
const SHOWN: usize = 3;

/// Propose rules from the commands that ran before: in this program's trace, or in sessions of Claude Code and Codex
///
/// Sessions are only counted. No rule is proposed for what runs what it is told to, fetches, publishes, removes or changes
/// the system, and nothing is written anywhere: look at each rule, and add what you want to your policy.
///
/// Exit status: 0 done, 2 usage, 3 a file is wrong, 125 something cannot be read.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness learn --from trace\n  harness learn --from ~/.claude/projects --from ~/.codex/sessions\n  \
    harness learn --from trace --min 5 --toml > learned.toml"
)]
pub(crate) struct LearnArgs {
    /// `trace`, a trace file, a session file (.jsonl), or a folder of them; can be repeated
    #[arg(long, required = true, value_name = "FILE|DIR|trace")]
    from: Vec<PathBuf>,
    /// Only rules that are needed in at least this many lines
    #[arg(long, default_value_t = 2, value_name = "N")]
    min: usize,
    /// Also read files inside the project, which whoever wrote to it may have made
    #[arg(long)]
    inside_project: bool,
    /// Print the rules as a policy file
    #[arg(long, conflicts_with = "json")]
    toml: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    decide: DecideArgs,
}

pub(crate) fn learn(args: &LearnArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &LearnArgs) -> Result<Exit, Exit> {
    let root = args.decide.root()?;
    let loaded = args.decide.load(&root, None)?;
    let mut settings = loaded.settings;
    // Asked about is what a run that may write would ask about.
    settings.approval = Some(ApprovalPolicy::OnRequest);
    if settings.sandbox != Some(SandboxMode::DangerFullAccess) {
        settings.sandbox = Some(SandboxMode::WorkspaceWrite);
    }
    let gate = Gate::new(&root, loaded.policy, settings).map_err(|error| super::fail(Exit::Failed, error))?;
    let progress = Progress::begin("counting what ran");
    let mut history = History::default();
    let mut missing = Vec::new();
    for from in &args.from {
        if from.as_os_str() == "trace" {
            trace(&super::run::open_store(None)?, &mut history)?;
            continue;
        }
        let real = match std::fs::canonicalize(from) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.push((from, error));
                continue;
            }
            Err(error) => return Err(super::fail(Exit::Policy, format_args!("{}: {error}", shown(from)))),
        };
        if real.starts_with(gate.root()) && !args.inside_project {
            let what = format!(
                "{} lies in the project, where anyone who writes to the project can write it; \
                 pass --inside-project if it is yours",
                shown(from)
            );
            return Err(super::fail(Exit::Usage, what));
        }
        let mut left = MOST_FILES;
        let project = (!args.inside_project).then(|| gate.root());
        session(&real, project, DEEPEST, &mut left, &mut history)?;
    }
    // Whoever names the folders of several agents need not have them all.
    for (from, error) in &missing {
        say!("harness: {}: {error}", shown(from));
    }
    if missing.len() == args.from.len() {
        return Err(Exit::Policy);
    }
    progress.now("judging what ran");
    let proposals = learn::propose(&history, &gate, args.min);
    drop(progress);
    if args.json {
        return print_json(&Learned::new(&history, &proposals));
    }
    if args.toml {
        let policy = Policy::with_defaults(Defaults::default()).with_layer(learn::layer(&proposals));
        let text = policy.to_toml().map_err(|error| super::fail(Exit::Failed, error))?;
        return print(&format!(
            "# Proposed by `harness learn`. Look at each rule before you use it.\n\n{text}"
        ));
    }
    print(&table(&history, &proposals))
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// What ran after a person approved it, or was allowed.
fn trace(store: &Store, history: &mut History) -> Result<(), Exit> {
    let filter = Filter { which: Some(Which::Ran), ..Filter::default() };
    let steps = store.steps(&filter).map_err(|error| super::fail(Exit::Failed, error))?;
    for step in steps {
        if step.call.get("command").or_else(|| step.call.get("argv")).is_some() {
            history.add(&step.command);
        }
    }
    Ok(())
}

/// Counts a session, or those of a folder; not what of it lies in `project`.
fn session(
    path: &Path,
    project: Option<&Path>,
    depth: usize,
    left: &mut usize,
    history: &mut History,
) -> Result<(), Exit> {
    if project.is_some_and(|project| path.starts_with(project)) {
        let what = "the project is left out: anyone who writes to it can write sessions there; pass --inside-project if they are yours";
        say!("harness: {}: {what}", shown(path));
        return Ok(());
    }
    let failed = |error: std::io::Error| super::fail(Exit::Failed, format_args!("{}: {error}", shown(path)));
    let meta = std::fs::symlink_metadata(path).map_err(failed)?;
    if meta.is_dir() {
        if depth == 0 {
            return Ok(());
        }
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
            .map_err(failed)?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for entry in entries {
            let is_session = entry.extension().is_some_and(|extension| extension == "jsonl");
            let kind = std::fs::symlink_metadata(&entry).map_err(failed)?;
            if kind.is_dir() || kind.is_file() && is_session {
                session(&entry, project, depth - 1, left, history)?;
            }
        }
        return Ok(());
    }
    let Some(remaining) = left.checked_sub(1) else {
        return Err(super::fail(Exit::Policy, format_args!("there are more than {MOST_FILES} sessions")));
    };
    *left = remaining;
    let mut file = read::open(path)
        .map_err(|error| super::fail(Exit::Policy, format_args!("{}: {error}", shown(path))))?;
    let mut begin = [0_u8; 16];
    let read = file.read(&mut begin).map_err(failed)?;
    let begin = begin.get(..read).unwrap_or_default();
    if begin == b"SQLite format 3\0" {
        let store = Store::open(path).map_err(|error| super::fail(Exit::Failed, error))?;
        return trace(&store, history);
    }
    if meta.len() > LARGEST_SESSION {
        let what =
            format!("{} is too large: at most {LARGEST_SESSION} bytes of a session are read", shown(path));
        return Err(super::fail(Exit::Policy, what));
    }
    history.read_session(BufReader::new(begin.chain(file.take(LARGEST_SESSION)))).map_err(failed)
}

fn examples(proposal: &Proposal) -> Vec<String> {
    proposal.matches.iter().take(SHOWN).map(|command| printable(command)).collect()
}

fn table(history: &History, proposals: &[Proposal]) -> String {
    let total: usize = history.commands.values().sum();
    let counted = format!(
        "{total} {} that ran, {} different; {} {} could not be used\n",
        if total == 1 { "command" } else { "commands" },
        history.commands.len(),
        history.skipped,
        if history.skipped == 1 { "entry" } else { "entries" },
    );
    if proposals.is_empty() {
        return format!("{counted}no rule would have saved questions often enough\n");
    }
    let mut table = new_table(["saves", "needed", "rule", "matched before", "would also match"]);
    for proposal in proposals {
        let more = proposal.matches.len().saturating_sub(SHOWN);
        let mut matched = examples(proposal);
        if more > 0 {
            matched.push(format!("and {more} more"));
        }
        let whole = if proposal.rule.whole { " (whole)" } else { "" };
        table.add_row([
            Cell::new(proposal.saves),
            Cell::new(proposal.needed),
            Cell::new(format!("allow exec {}{whole}", printable(proposal.rule.pattern.as_str()))),
            Cell::new(matched.join("\n")),
            Cell::new(proposal.also.iter().map(|also| printable(also)).collect::<Vec<_>>().join("\n")),
        ]);
    }
    format!("{counted}{table}\nas a policy file: --toml\n")
}
