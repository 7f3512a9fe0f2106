//! Compares every table with the installed program's own option list.
//!
//! Two sources speak for the program. Its *list* is what `--help`, the manual page or the completion helper names. A
//! *probe* runs it with one flag of the table and reads its complaint: that there is no such flag, that it needs a
//! value, that it takes none. Only flags that the table calls harmless are probed, in an empty directory.
//!
//! A difference of arity is an error, and so is a harmless row that the program does not have, unless the row is
//! marked as one of another system or version. What the program has beyond the table is listed: the classifier holds
//! it back.

mod list;
mod probe;

use anyhow::{Context as _, Result, bail};
use cmdgate_classifier::commands::ALL;
use cmdgate_classifier::spec::{CommandSpec, Flag, FlagEffect, Stance, Value};
use list::Arity;
use probe::{Complaint, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;

/// `cargo xtask audit flags`
#[derive(Debug, Default, clap::Args)]
pub struct Cli {
    /// Only these programs or subcommands, such as `rg` or `git log` (default: all).
    programs: Vec<String>,
    /// Print only errors and totals.
    #[arg(long, short)]
    quiet: bool,
}

/// Rows that are right although what is seen of the program says otherwise, by table and flag.
const EXCUSED: [(&str, &str); 9] = [
    // At the end of the line the value may be left out and stands for HEAD; any next word is the value.
    ("git tag", "--points-at"),
    // The list does not show the value, and the flag writes, so that it is not run.
    ("hostname", "-F"),
    ("hostname", "--file"),
    // An empty value is admitted, and at the end of the line the value is taken for an empty one.
    ("rg", "--color"),
    ("rg", "--max-columns"),
    ("rg", "--maxdepth"),
    ("rg", "--pre-glob"),
    ("rg", "--replace"),
    ("rg", "--type-add"),
];

/// What was found about one table.
#[derive(Debug, Default)]
pub struct Findings {
    /// The program and its subcommands, as typed.
    pub table: String,
    /// The first line that the installed program says of its version.
    pub version: String,
    /// The version that the rows were checked against.
    pub checked: &'static str,
    /// How many rows the table has.
    pub rows: usize,
    /// How many of them the program's list names or a probe confirms.
    pub confirmed: usize,
    /// Rows that contradict the program.
    pub errors: Vec<String>,
    /// Names of harmless rows that the program refuses.
    unknown: Vec<&'static str>,
    /// The names that are confirmed.
    known: Vec<&'static str>,
    /// Rows about which the program says nothing.
    pub silent: Vec<&'static str>,
    /// Whether the program asks for a value where one is missing.
    asks: bool,
    /// What the program has and the table has not.
    pub beyond: Vec<String>,
}

impl Findings {
    /// Whether the installed program has the version that the rows were checked against: one of the words of
    /// `checked` that hold a digit stands in what the program says.
    pub fn is_checked_version(&self) -> bool {
        let numbers =
            self.checked.split([' ', ',']).filter(|word| word.contains(|c: char| c.is_ascii_digit()));
        numbers.into_iter().any(|number| self.version.contains(number))
    }
}

/// The result over all tables.
#[derive(Debug, Default)]
pub struct Report {
    /// Tables whose program is installed.
    pub tables: Vec<Findings>,
    /// Programs that are not.
    pub absent: Vec<&'static str>,
}

/// Runs the audit and prints it.
///
/// # Errors
///
/// When a program is named that has no table, or no directory for the probes can be made.
pub fn run(cli: &Cli) -> Result<ExitCode> {
    let report = audit(&cli.programs)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut rows, mut confirmed, mut errors) = (0, 0, 0);
    for table in &report.tables {
        rows += table.rows;
        confirmed += table.confirmed;
        errors += table.errors.len();
        if cli.quiet && table.errors.is_empty() {
            continue;
        }
        writeln!(
            out,
            "{} [{}], checked against {}: {} of {} rows confirmed",
            table.table, table.version, table.checked, table.confirmed, table.rows
        )?;
        for error in &table.errors {
            writeln!(out, "  error: {error}")?;
        }
        if cli.quiet {
            continue;
        }
        if !table.silent.is_empty() {
            writeln!(out, "  the program says nothing of: {}", table.silent.join(" "))?;
        }
        if !table.beyond.is_empty() {
            writeln!(out, "  not in the table, so held back: {}", table.beyond.join(" "))?;
        }
    }
    if !report.absent.is_empty() {
        writeln!(out, "not installed: {}", report.absent.join(" "))?;
    }
    writeln!(
        out,
        "{} tables, {rows} rows, {confirmed} confirmed, {errors} errors; {} programs not installed",
        report.tables.len(),
        report.absent.len()
    )?;
    out.flush()?;
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares the tables of `programs`, each a program or a subcommand such as `git log`; of all when it is empty.
///
/// # Errors
///
/// When a program is named that has no table, or no directory for the probes can be made.
pub fn audit(programs: &[String]) -> Result<Report> {
    let first = |words: &str| words.split(' ').next().unwrap_or_default().to_owned();
    for name in programs {
        if cmdgate_classifier::commands::lookup(&first(name)).is_none() {
            bail!("`{name}` has no table");
        }
    }
    let asked = |spec: &CommandSpec| {
        programs.is_empty() || programs.iter().any(|asked| spec.names.contains(&first(asked).as_str()))
    };
    let mut report = Report::default();
    let mut work: Vec<(Program, &'static CommandSpec, &'static str)> = Vec::new();
    for spec in ALL.iter().copied().filter(|spec| matches!(spec.stance, Stance::Judged) && asked(spec)) {
        match Program::find(spec) {
            Some(program) => subcommands(&program, spec, spec.checked, &mut work),
            None => report.absent.push(spec.name()),
        }
    }
    // A subcommand that was named leaves out the others.
    work.retain(|(program, ..)| {
        let table = program.to_string();
        let named = |asked: &String| !asked.contains(' ') || table == *asked;
        let of_it = |asked: &&String| first(asked) == first(&table);
        programs.iter().filter(of_it).count() == 0 || programs.iter().filter(of_it).any(named)
    });
    let place = probe::Place::new().context("making a directory for the probes")?;
    let next = Mutex::new(work.iter());
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let item = next.lock().map_or(None, |mut items| items.next());
                    let Some((program, spec, checked)) = item else {
                        break;
                    };
                    let mut findings = compare(program, spec, &place);
                    findings.checked = checked;
                    if let Ok(mut done) = done.lock() {
                        done.push(findings);
                    }
                }
            });
        }
    });
    report.tables = done.into_inner().unwrap_or_default();
    report.tables.sort_by(|a, b| a.table.cmp(&b.table));
    let parts =
        |table: &str| programs.iter().any(|asked| asked.contains(' ') && first(asked) == first(table));
    unknown_rows(&mut report.tables, parts);
    Ok(report)
}

/// A harmless row that the program refuses is an error, unless a sibling subcommand knows it: the tables of git's
/// subcommands share lists, and a flag that is refused does nothing. Where only parts of a program were compared, its
/// siblings cannot be asked.
fn unknown_rows(tables: &mut [Findings], parts: impl Fn(&str) -> bool) {
    let program = |table: &str| table.split(' ').next().unwrap_or_default().to_owned();
    let known: BTreeSet<(String, &'static str)> = tables
        .iter()
        .flat_map(|table| table.known.iter().map(|name| (program(&table.table), *name)))
        .collect();
    for table in tables {
        let here = program(&table.table);
        if parts(&table.table) {
            continue;
        }
        for name in &table.unknown {
            if table.table == here || !known.contains(&(here.clone(), *name)) {
                table.errors.push(format!("{name} is a row, and the program does not know it"));
            }
        }
    }
}

/// The program's table, and those of its subcommands.
fn subcommands(
    program: &Program,
    spec: &'static CommandSpec,
    checked: &'static str,
    work: &mut Vec<(Program, &'static CommandSpec, &'static str)>,
) {
    if !spec.flags.is_empty() {
        work.push((program.clone(), spec, checked));
    }
    for sub in spec.subcommands.iter().filter(|sub| matches!(sub.stance, Stance::Judged)) {
        let checked = if sub.checked.is_empty() { checked } else { sub.checked };
        subcommands(&program.subcommand(sub.name()), sub, checked, work);
    }
}

/// Compares one table with its program.
fn compare(program: &Program, spec: &'static CommandSpec, place: &probe::Place) -> Findings {
    let listed = program.listed(place);
    let talks = program.talks(place);
    let mut findings = Findings {
        table: program.to_string(),
        version: program.version(place),
        rows: spec.flags.len(),
        ..Findings::default()
    };
    // A name that an earlier row takes is not this row's.
    let names = |at: usize, flag: &'static Flag| {
        flag.names.iter().copied().filter(move |name| spec.flag(name).is_none_or(|(first, _)| first == at))
    };
    let flags: &'static [Flag] = spec.flags;
    // Only what the table calls harmless is run.
    let harmless: Vec<(&'static str, Arity, &[&str])> = flags
        .iter()
        .enumerate()
        .filter(|(_, flag)| matches!(flag.effect, FlagEffect::Inert | FlagEffect::Reads))
        .flat_map(|(at, flag)| names(at, flag).map(|name| (name, arity(flag), flag.names)))
        .collect();
    let answers = if talks { program.probes(place, &harmless) } else { BTreeMap::new() };
    let mut not_asked = Vec::new();
    for (at, flag) in flags.iter().enumerate() {
        let mut known = false;
        for name in names(at, flag) {
            match judge(flag, name, answers.get(name).copied(), &listed) {
                Judged::Asked => {
                    known = true;
                    findings.asks = true;
                    findings.known.push(name);
                }
                Judged::Confirmed => {
                    known = true;
                    findings.known.push(name);
                }
                Judged::Wrong(_) if excused(&findings.table, name) => {}
                Judged::Wrong(error) => findings.errors.push(error),
                Judged::Unknown => findings.unknown.push(name),
                Judged::NotAsked => not_asked.push(name),
                Judged::Silent => findings.silent.push(name),
                Judged::Elsewhere => {}
            }
        }
        findings.confirmed += usize::from(known);
    }
    if findings.asks {
        let errors = not_asked.iter().filter(|name| !excused(&findings.table, name));
        findings
            .errors
            .extend(errors.map(|name| format!("{name}: a run does not ask for the value of the table")));
    } else {
        findings.silent.extend(not_asked);
    }
    findings.beyond = listed
        .iter()
        .filter(|(name, _)| spec.flag(name).is_none() && !(spec.syntax.numeric && is_number(name)))
        .map(|(name, arity)| format!("{name}{}", arity.map_or("", Arity::mark)))
        .collect();
    findings
}

fn excused(table: &str, name: &str) -> bool {
    EXCUSED.contains(&(table, name))
}

fn is_number(name: &str) -> bool {
    let digits = name.trim_start_matches('-');
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What became of one name of a row.
enum Judged {
    Confirmed,
    /// Confirmed by the program's asking for its value.
    Asked,
    Wrong(String),
    /// The row is harmless and the program refuses it.
    Unknown,
    /// The row needs a value, and the program did not ask for one.
    NotAsked,
    Silent,
    Elsewhere,
}

/// What the table says of the flag's value.
const fn arity(flag: &Flag) -> Arity {
    match flag.value {
        Value::None => Arity::None,
        Value::Required(_) | Value::Words(..) => Arity::Required,
        Value::Optional(_) => Arity::Optional,
    }
}

/// Judges one name of a row by what a run of it said, where it was run, and by the program's list.
fn judge(
    flag: &Flag,
    name: &'static str,
    answer: Option<Complaint>,
    listed: &BTreeMap<String, Option<Arity>>,
) -> Judged {
    let table = arity(flag);
    let in_list = listed.get(name);
    let wrong = |says: &str, arity: Arity| {
        Judged::Wrong(format!("{name}: {says} {}, the table {}", arity.phrase(), table.phrase()))
    };
    if let Some(answer) = answer {
        return match (answer, table) {
            // A row of another system may be stricter or looser than this one.
            (Complaint::Unknown | Complaint::NeedsValue | Complaint::TakesNone, _) if flag.elsewhere => {
                Judged::Elsewhere
            }
            (Complaint::Unknown, _) => Judged::Unknown,
            (Complaint::NeedsValue, Arity::Required) => Judged::Asked,
            (Complaint::TakesNone, Arity::None) => Judged::Confirmed,
            (Complaint::NeedsValue, Arity::None | Arity::Optional) => wrong("a run says", Arity::Required),
            (Complaint::TakesNone, Arity::Required | Arity::Optional) => wrong("a run says", Arity::None),
            // It was taken without a value.
            (Complaint::Nothing, Arity::Required) if matches!(in_list, Some(Some(Arity::Required))) => {
                Judged::Confirmed
            }
            (Complaint::Nothing, Arity::Required) => Judged::NotAsked,
            (Complaint::Nothing, Arity::None | Arity::Optional) => match in_list {
                Some(Some(Arity::Required)) if !name.starts_with("--") => Judged::Silent,
                Some(_) | None => Judged::Confirmed,
            },
        };
    }
    match in_list {
        // A list shows an optional value behind the long name, and means only that one.
        Some(Some(Arity::Optional)) if table == Arity::None && !name.starts_with("--") => Judged::Confirmed,
        Some(Some(_)) if flag.elsewhere => Judged::Elsewhere,
        Some(Some(arity)) if *arity != table => wrong("its list says", *arity),
        Some(_) => Judged::Confirmed,
        None if flag.elsewhere => Judged::Elsewhere,
        None => Judged::Silent,
    }
}
