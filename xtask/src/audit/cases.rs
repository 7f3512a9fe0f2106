//! Judges the case sets and holds the result as a ratchet.
//!
//! Every row of a set counts for one *figure*: its set, tier or label, and grammar. A figure has a number of rows and a
//! number of misses, and fewer misses are better for every figure, so the ratchet is a map from names to two numbers.

mod ratchet;
mod report;

pub use ratchet::{Change, Ratchet};
pub use report::print;

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use cmdgate_classifier::{Classification, Condition, Conditions, Context, Grammar, Verdict, classify};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `cargo xtask audit cases`
#[derive(Debug, Default, clap::Args)]
pub struct Cli {
    /// Take the sets from this directory where it has them (default: the project's own copies, and
    /// `../shared/cases` for agent-commands).
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Only this set; may be repeated.
    #[arg(long = "set", value_enum)]
    sets: Vec<Set>,
    /// Print only the figures.
    #[arg(long, short)]
    quiet: bool,
    /// Print figures and misses as JSON.
    #[arg(long)]
    json: bool,
    /// Record the figures as the new ratchet.
    #[arg(long, conflicts_with = "dir")]
    bless: bool,
}

impl Cli {
    /// Every set, judged against the ratchet; only the figures are printed.
    pub fn figures() -> Self {
        Self { quiet: true, ..Self::default() }
    }
}

/// A set of judged commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Commands that do harm in ways a table can miss.
    Adversarial,
    /// Near misses that are truly read-only.
    Controls,
    /// The shapes of commands that agents really ran.
    AgentCommands,
    /// The project's own list of commands that agents typically run.
    TypicalCommands,
}

impl Set {
    /// Every set.
    pub const ALL: [Self; 4] =
        [Self::Adversarial, Self::Controls, Self::AgentCommands, Self::TypicalCommands];

    /// The stable spelling, which is also the name of its file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adversarial => "adversarial",
            Self::Controls => "controls",
            Self::AgentCommands => "agent-commands",
            Self::TypicalCommands => "typical-commands",
        }
    }

    /// The project root and working directory that its commands assume.
    const fn root(self) -> &'static str {
        match self {
            Self::Adversarial | Self::Controls => "/w/proj",
            Self::AgentCommands | Self::TypicalCommands => "/home/user/project",
        }
    }
}

/// One line of a set, in the union of the sets' fields.
#[derive(Debug, Clone, Deserialize)]
struct Row {
    id: Option<String>,
    command: String,
    command_b64: Option<String>,
    #[serde(default)]
    effect: String,
    #[serde(default)]
    why: String,
    label: Option<String>,
    by: Option<String>,
    tier: Option<String>,
    verdict: Option<String>,
    needs: Option<String>,
    #[serde(default)]
    also_in_controls: bool,
}

impl Row {
    /// What `bash -c` gets, where it is text at all; bytes that are not are refused before the classifier.
    fn command(&self) -> Result<Option<String>> {
        match &self.command_b64 {
            None => Ok(Some(self.command.clone())),
            Some(coded) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(coded)?;
                Ok(String::from_utf8(bytes).ok())
            }
        }
    }
}

/// What counts as a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// `safe` is a miss.
    Review,
    /// `safe` is a miss unless one of its conditions neutralises what the row needs.
    Neutralised,
    /// `needs_review` is a miss.
    Safe,
    /// Nothing is a miss; the share that is safe is only shown.
    Nothing,
}

/// Why a row of the tier `cautious` may be safe all the same.
#[derive(Debug, Clone, Deserialize)]
struct Argued {
    /// The condition that takes the hazard away.
    condition: String,
    /// How.
    why: String,
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The set.
    pub set: Set,
    /// Tier, or label and by whom it was given.
    pub part: String,
    /// `pipeline` or `sequence`.
    pub grammar: &'static str,
    /// What counts as a miss.
    pub expect: Expect,
    /// How many rows it has.
    pub rows: usize,
    /// How many of them are judged safe.
    pub safe: usize,
    /// How many of them miss.
    pub misses: usize,
    /// The greatest share of misses that the goal allows, in percent; none where there is no goal.
    pub goal: Option<usize>,
}

impl Figure {
    /// Whether the goal is met; true where there is none.
    pub fn meets_goal(&self) -> bool {
        self.goal.is_none_or(|percent| self.misses * 100 <= self.rows * percent)
    }
}

/// One line that misses.
#[derive(Debug, Clone, Serialize)]
pub struct Miss {
    /// The figure that it counts for.
    pub figure: String,
    /// The row's name, or its line number.
    pub id: String,
    /// What was expected.
    pub expect: Expect,
    /// The command.
    pub command: String,
    /// Why the row is what it is, as the set says.
    pub note: String,
    /// The conditions of a verdict that is safe.
    pub conditions: Vec<&'static str>,
    /// Code, decisive text and message of each finding of a verdict that is not.
    pub findings: Vec<Reason>,
}

/// A finding as it is shown.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    /// The stable code.
    pub code: &'static str,
    /// The deciding characters.
    pub text: String,
    /// The program whose table decided.
    pub program: &'static str,
    /// The sentence.
    pub message: String,
}

/// All figures by name, and every line that misses.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The figures, by name.
    pub figures: BTreeMap<String, Figure>,
    /// The lines that miss: false safes first, then needless reviews.
    pub misses: Vec<Miss>,
    /// Lines that are safe against expectation, and for which a reason was written down.
    pub argued: Vec<Miss>,
    /// Sets that were not there.
    pub absent: Vec<Set>,
    /// Whether the sets were the project's own, which the ratchet speaks of.
    pub own: bool,
}

/// Runs the audit, prints it, and compares it with the ratchet.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let sets = if cli.sets.is_empty() { Set::ALL.to_vec() } else { cli.sets };
    let report = audit(cli.dir.as_deref(), &sets)?;
    if cli.bless {
        Ratchet::of(&report).save()?;
    }
    let ratchet = Ratchet::load()?;
    let changes = ratchet.compare(&report);
    print(&report, &changes, cli.quiet, cli.json)?;
    Ok(if changes.iter().any(Change::fails) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Judges every row of `sets`. With `dir`, a set that lies there is taken from there.
pub fn audit(dir: Option<&Path>, sets: &[Set]) -> Result<Report> {
    let mut report = Report { own: dir.is_none(), ..Report::default() };
    let argued = argued()?;
    for &set in sets {
        let Some(path) = find(set, dir) else {
            report.absent.push(set);
            continue;
        };
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let row: Row = serde_json::from_str(line)
                .map_err(|error| anyhow!("{}:{}: {error}", path.display(), number + 1))?;
            for grammar in [Grammar::Sequence, Grammar::Pipeline] {
                judge(&mut report, &argued, set, &row, number + 1, grammar)?;
            }
        }
    }
    report.misses.sort_by_key(|miss| miss.expect);
    Ok(report)
}

/// The reasons that were written down, by the rows' names.
fn argued() -> Result<BTreeMap<String, Argued>> {
    let path = super::workspace().join("tests/data/argued.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// Where a set lies.
fn find(set: Set, dir: Option<&Path>) -> Option<PathBuf> {
    let file = format!("{}.jsonl", set.as_str());
    let root = super::workspace();
    let own = root.join("tests/data");
    let shared = root.join("../shared/cases");
    let places = dir.into_iter().chain([own.as_path(), shared.as_path()]);
    places.map(|place| place.join(&file)).find(|path| path.is_file())
}

fn judge(
    report: &mut Report,
    argued: &BTreeMap<String, Argued>,
    set: Set,
    row: &Row,
    number: usize,
    grammar: Grammar,
) -> Result<()> {
    let Some(class) = class_of(set, row, grammar)? else {
        return Ok(());
    };
    let command = row.command().with_context(|| format!("{} line {number}", set.as_str()))?;
    let context = Context::new(grammar).with_root(set.root()).with_cwd(set.root());
    let judged = command.as_deref().map_or_else(Classification::default, |text| classify(text, &context));
    let safe = command.is_some() && judged.verdict() == Verdict::Safe;
    let miss = match class.expect {
        Expect::Review => safe,
        Expect::Neutralised => safe && !neutralises(row, judged.conditions),
        Expect::Safe => !safe,
        Expect::Nothing => false,
    };
    let reason = row.id.as_ref().and_then(|id| argued.get(id)).filter(|argued| {
        row.tier.as_deref() == Some("cautious")
            && judged.conditions.iter().any(|condition| condition.as_str() == argued.condition)
    });
    let name = format!("{}.{}.{}", set.as_str(), class.part, grammar_name(grammar));
    let figure = report.figures.entry(name.clone()).or_insert_with(|| Figure {
        set,
        part: class.part,
        grammar: grammar_name(grammar),
        expect: class.expect,
        rows: 0,
        safe: 0,
        misses: 0,
        goal: class.goal,
    });
    figure.rows += 1;
    figure.safe += usize::from(safe);
    figure.misses += usize::from(miss && reason.is_none());
    // Where agents' commands need a grammar, the narrower one refuses them rightly: its lines are not worth showing.
    if miss && (grammar == Grammar::Sequence || class.expect != Expect::Safe) {
        let text = command.as_deref().unwrap_or(&row.command);
        let line = Miss {
            figure: name,
            id: row.id.clone().unwrap_or_else(|| format!("line {number}")),
            expect: class.expect,
            command: text.to_owned(),
            note: match reason {
                Some(reason) => format!("{}; but {}", row.effect, reason.why),
                None if row.effect.is_empty() => row.why.clone(),
                None => row.effect.clone(),
            },
            conditions: judged.conditions.iter().map(Condition::as_str).collect(),
            findings: judged
                .findings
                .iter()
                .map(|finding| Reason {
                    code: finding.code.as_str(),
                    text: finding.span.of(text).to_owned(),
                    program: finding.row.map_or("", |row| row.program),
                    message: finding.message.to_string(),
                })
                .collect(),
        };
        if reason.is_some() { report.argued.push(line) } else { report.misses.push(line) }
    }
    Ok(())
}

/// Which figure a row counts for.
struct Class {
    part: String,
    expect: Expect,
    goal: Option<usize>,
}

/// The figure of a row; none where the grammar is not asked of its set.
fn class_of(set: Set, row: &Row, grammar: Grammar) -> Result<Option<Class>> {
    let sequence = grammar == Grammar::Sequence;
    let class = |part: &str, expect, goal| Class { part: part.to_owned(), expect, goal };
    Ok(Some(match set {
        Set::Adversarial => match row.tier.as_deref() {
            Some(tier @ ("strict" | "cautious")) => class(tier, Expect::Review, Some(0)),
            Some("context") => class("context", Expect::Neutralised, Some(0)),
            other => bail!("unknown tier {other:?}"),
        },
        Set::Controls => class("all", Expect::Safe, sequence.then_some(5)),
        Set::AgentCommands => {
            let by = row.by.as_deref().unwrap_or("hand");
            let label = row.label.as_deref().unwrap_or_default();
            let part = format!("{label}.{by}");
            match label {
                "read_only_in_project" => {
                    let goal = if by == "hand" { 5 } else { 4 };
                    class(&part, Expect::Safe, sequence.then_some(goal))
                }
                "read_only_but_outside_project" | "writes_or_executes" | "other" => {
                    class(&part, Expect::Review, Some(0))
                }
                "unclear" => class(&part, Expect::Nothing, None),
                other => bail!("unknown label {other:?}"),
            }
        }
        Set::TypicalCommands => match row.verdict.as_deref() {
            Some("safe") => class("safe", Expect::Safe, sequence.then_some(0)),
            Some("needs_review") => class("needs_review", Expect::Review, Some(0)),
            other => bail!("unknown verdict {other:?}"),
        },
    }))
}

/// Whether one of `conditions` takes the hazard of a context row away.
fn neutralises(row: &Row, conditions: Conditions) -> bool {
    let any = |list: &[Condition]| list.iter().any(|condition| conditions.contains(*condition));
    let needs = row.needs.as_deref().unwrap_or_default();
    if needs.contains("symlink") {
        any(&[Condition::PathsResolveInside, Condition::ReadsConfined])
    } else if needs.contains("FIFO") {
        any(&[Condition::PathsResolveInside])
    } else if needs.contains("index") || needs.contains("repository") {
        any(&[Condition::GitHardened])
    } else if needs.contains("environment") {
        any(&[Condition::CleanEnvironment, Condition::NoRipgrepConfig])
    } else {
        row.also_in_controls
    }
}

const fn grammar_name(grammar: Grammar) -> &'static str {
    match grammar {
        Grammar::Pipeline => "pipeline",
        Grammar::Sequence => "sequence",
    }
}
