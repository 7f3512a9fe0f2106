//! `harness log`: what was decided, what ran, and whether the trace is as it was written.

use super::out;
use super::progress::Progress;
use crate::exit::Exit;
use crate::present::printable;
use crate::store::{Filter, Retention, Store, Which};
use crate::wire::SCHEMA_VERSION;
use crate::wire::trace::{Exported, Log, LogLine, LoggedStep, StepDetail, WirePruned, WireVerified};
use clap::Subcommand;
use comfy_table::{Cell, ContentArrangement, Table, presets};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Unit, civil, tz::TimeZone};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many steps are shown when nobody says.
const SHOWN: u32 = 50;
/// How often a followed trace is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(300);
/// The longest command in the table, in characters; `log show` has all of it.
const COMMAND_CHARS: usize = 300;

/// Show what was decided and what ran
///
/// Exit status: 0 done, 1 `log verify` found something or no trace, or a step does not exist, 2 usage, 125 the trace cannot
/// be used.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  harness log --refused\n  harness log --ran --since 2h --json\n  harness log show 17\n  \
    harness log tail --follow\n  harness log export --jsonl > trace.jsonl\n  harness log verify\n  harness log prune --older-than 90d --max-size 100M"
)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    command: Option<LogCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// Everything about one step
    Show(ShowArgs),
    /// The newest steps; with -f, go on with those to come
    Tail(TailArgs),
    /// Check that nothing was changed, removed, added or reordered
    Verify(VerifyArgs),
    /// Write every row as a line of JSON to standard output
    Export(ExportArgs),
    /// Remove old runs; the rest can still be checked
    Prune(PruneArgs),
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    place: Place,
    /// Only what was denied, by a decision or by a person
    #[arg(long, group = "which")]
    refused: bool,
    /// Only what was started
    #[arg(long, group = "which")]
    ran: bool,
    /// Only what needed an approval
    #[arg(long, group = "which")]
    asked: bool,
    /// Only the steps of this run
    #[arg(long, value_name = "ID")]
    run: Option<i64>,
    /// Only steps since this time: `2h`, `3d`, a date, or a date with a time and a time zone
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
    /// At most this many, the newest [default: 50]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// The step's number, as `harness log` shows it
    #[arg(value_name = "N")]
    step: i64,
}

#[derive(Debug, clap::Args)]
struct TailArgs {
    #[command(flatten)]
    place: Place,
    /// Go on with the steps to come; with --json, one line each
    #[arg(short, long)]
    follow: bool,
    /// How many of the newest to begin with
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: u32,
}

#[derive(Debug, clap::Args)]
struct VerifyArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct ExportArgs {
    /// The trace database [default: trace.db in the state directory]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// One line of JSON for each row; the only form there is
    #[arg(long)]
    jsonl: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("retention").required(true).multiple(true))]
struct PruneArgs {
    #[command(flatten)]
    place: Place,
    /// Remove runs that began longer ago: `90d`, `12h`
    #[arg(long, value_name = "AGE", value_parser = since, group = "retention")]
    older_than: Option<Timestamp>,
    /// Remove the oldest runs until the trace uses at most this: bytes, or with K, M, G
    #[arg(long, value_name = "SIZE", value_parser = size, group = "retention")]
    max_size: Option<u64>,
}

pub(crate) fn log(args: &LogArgs) -> Exit {
    let done = match &args.command {
        None => list(&args.list),
        Some(LogCommand::Show(args)) => show(args),
        Some(LogCommand::Tail(args)) => tail(args),
        Some(LogCommand::Verify(args)) => verify(args),
        Some(LogCommand::Export(args)) => export(args),
        Some(LogCommand::Prune(args)) => prune(args),
    };
    done.unwrap_or_else(|exit| exit)
}

fn list(args: &ListArgs) -> Result<Exit, Exit> {
    let which = if args.refused {
        Some(Which::Refused)
    } else if args.ran {
        Some(Which::Ran)
    } else if args.asked {
        Some(Which::Asked)
    } else {
        None
    };
    let filter = Filter {
        which,
        run: args.run,
        since: args.since,
        after: None,
        limit: Some(args.limit.unwrap_or(SHOWN)),
    };
    let store = store(&args.place)?;
    let found = steps(&store, &filter)?;
    if args.place.json {
        return print_json(&Log::new(&found));
    }
    if found.is_empty() {
        let any = Filter { limit: Some(1), ..Filter::default() };
        let none = if steps(&store, &any)?.is_empty() {
            "nothing recorded\n"
        } else {
            "no recorded step is like that\n"
        };
        return print(none);
    }
    let mut table = new_table(["#", "time (UTC)", "run", "what became of it", "command", "why"]);
    for step in &found {
        table.add_row([
            Cell::new(step.id),
            Cell::new(short_time(&step.at)),
            Cell::new(format!("{} ({})", step.run, step.kind)),
            Cell::new(became(step)),
            Cell::new(shortened(&printable(&step.command))),
            Cell::new(printable(&why(step))),
        ]);
    }
    print(&format!("{table}\n"))
}

fn show(args: &ShowArgs) -> Result<Exit, Exit> {
    let store = store(&args.place)?;
    let detail = store.step(args.step).map_err(|error| super::fail(Exit::Failed, error))?;
    let Some(detail) = detail else {
        return Err(super::fail(
            Exit::Unwell,
            format_args!("there is no step {}; `harness log` lists them", args.step),
        ));
    };
    if args.place.json { print_json(&detail) } else { print(&text_of(&detail)) }
}

fn tail(args: &TailArgs) -> Result<Exit, Exit> {
    let store = store(&args.place)?;
    let mut filter = Filter { limit: Some(args.limit), ..Filter::default() };
    loop {
        for step in steps(&store, &filter)? {
            filter.after = Some(step.id);
            let line = if args.place.json {
                let line = LogLine { schema_version: SCHEMA_VERSION, step: &step };
                serde_json::to_string(&line).map_err(|error| super::fail(Exit::Failed, error))?
            } else {
                format!(
                    "{:>6}  {}  {:<22}  {}",
                    step.id,
                    short_time(&step.at),
                    became(&step),
                    shortened(&printable(&step.command))
                )
            };
            let mut out = io::stdout().lock();
            let written = writeln!(out, "{line}").and_then(|()| out.flush());
            if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                // Nobody reads what is still to come.
                return Ok(Exit::Success);
            }
            out::taken(written)?;
        }
        if !args.follow {
            return Ok(Exit::Success);
        }
        filter.limit = None;
        std::thread::sleep(FOLLOW_EVERY);
        store.bring_in().map_err(|error| super::fail(Exit::Failed, error))?;
    }
}

fn verify(args: &VerifyArgs) -> Result<Exit, Exit> {
    let trace = super::run::trace_at(args.place.trace.as_ref())?;
    if is_absent(&trace) {
        // An empty trace would be intact; of one that is gone nobody can say that.
        return Err(super::fail(
            Exit::Unwell,
            format_args!(
                "there is no trace {}: nothing was recorded there yet, or it was taken away",
                trace.display()
            ),
        ));
    }
    let store = store(&args.place)?;
    let progress = Progress::begin("checking the trace");
    let verified = store.verify();
    drop(progress);
    let verified = verified.map_err(|error| super::fail(Exit::Failed, error))?;
    if args.place.json {
        print_json(&WireVerified::new(&verified))?;
    } else {
        let mut text = format!("{} links checked; the last hash is {}\n", verified.links, verified.head);
        for fault in &verified.faults {
            let _ = writeln!(text, "{fault}");
        }
        let verdict = if verified.faults.is_empty() { "intact" } else { "NOT as it was written" };
        let _ = writeln!(text, "{verdict}");
        print(&text)?;
    }
    Ok(if verified.faults.is_empty() { Exit::Success } else { Exit::Unwell })
}

fn export(args: &ExportArgs) -> Result<Exit, Exit> {
    must_be_there(args.trace.as_ref())?;
    let store = super::run::open_store_to_read(args.trace.as_ref())?;
    // At a terminal the lines themselves are the sign of life.
    let progress =
        if io::stdout().is_terminal() { Progress::default() } else { Progress::begin("writing the trace") };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let exported = store.export(|table, row| {
        let line = Exported { schema_version: SCHEMA_VERSION, table, row };
        written = serde_json::to_writer(&mut out, &line)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"));
        written.is_ok()
    });
    let written = written.and_then(|()| out.flush());
    // What cannot be written now is not tried again when this ends.
    let _ = out.into_parts();
    drop(progress);
    exported.map_err(|error| super::fail(Exit::Failed, error))?;
    out::taken(written).map(|()| Exit::Success)
}

fn prune(args: &PruneArgs) -> Result<Exit, Exit> {
    must_be_there(args.place.trace.as_ref())?;
    let store = super::run::open_store(args.place.trace.as_ref())?;
    let retention = Retention { not_before: args.older_than, max_bytes: args.max_size, in_order: false };
    let progress = Progress::begin("removing old runs");
    let pruned = store.prune(&retention);
    drop(progress);
    let pruned = pruned.map_err(|error| super::fail(Exit::Failed, error))?;
    if args.place.json {
        return print_json(&WirePruned::new(&pruned));
    }
    print(&format!(
        "removed {} runs ({} rows); {} bytes were in use, {} are\n",
        pruned.runs, pruned.rows, pruned.bytes_before, pruned.bytes_after
    ))
}

// ---- shared ----------------------------------------------------------------------------------------------------------

fn store(place: &Place) -> Result<Store, Exit> {
    must_be_there(place.trace.as_ref())?;
    super::run::open_store_to_read(place.trace.as_ref())
}

/// A trace that somebody names to look at must be there: one that was misspelled is not made, and is not an empty one.
pub(super) fn must_be_there(named: Option<&PathBuf>) -> Result<(), Exit> {
    match named {
        Some(path) if is_absent(path) => Err(super::fail(
            Exit::Failed,
            format_args!("there is no trace {}; without --trace it is the user's own", path.display()),
        )),
        Some(_) | None => Ok(()),
    }
}

fn is_absent(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn steps(store: &Store, filter: &Filter) -> Result<Vec<LoggedStep>, Exit> {
    store.steps(filter).map_err(|error| super::fail(Exit::Failed, error))
}

/// Prints to standard output.
pub(super) fn print(text: &str) -> Result<Exit, Exit> {
    out::write_raw(text.as_bytes()).map(|()| Exit::Success)
}

/// Prints one line of JSON.
pub(super) fn print_json(value: &impl Serialize) -> Result<Exit, Exit> {
    match serde_json::to_string(value) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => Err(super::fail(Exit::Failed, error)),
    }
}

/// A table without frames, as wide as the terminal.
pub(super) fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    if let Some((terminal_size::Width(width), _)) = terminal_size::terminal_size() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table
}

/// A time without its fractions of a second.
pub(super) fn short_time(at: &str) -> String {
    at.parse::<Timestamp>().map_or_else(|_| printable(at), |at| at.strftime("%F %T").to_string())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(COMMAND_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

fn became(step: &LoggedStep) -> String {
    match (step.outcome.as_deref(), step.exit_code) {
        (Some("exited"), Some(code)) => format!("{}, exit {code}", step.status),
        (Some(outcome), _) => format!("{}, {}", step.status, outcome.replace('_', " ")),
        (None, _) => step.status.to_owned(),
    }
}

fn why(step: &LoggedStep) -> String {
    if step.status == "approved" {
        let by = step.answer_reason.as_deref().filter(|reason| !reason.is_empty());
        return by.map_or_else(|| "approved".to_owned(), |by| format!("approved ({by})"));
    }
    if let Some(reason) = step.answer_reason.as_deref().filter(|reason| !reason.is_empty()) {
        return reason.to_owned();
    }
    let rule = match (&step.rule, &step.layer) {
        (Some(rule), Some(layer)) => format!("rule `{rule}` of layer {layer}"),
        (_, _) => step.reason.clone().unwrap_or_default(),
    };
    match &step.code {
        Some(code) => format!("{code}: {rule}"),
        None => rule,
    }
}

fn text_of(detail: &StepDetail) -> String {
    let step = &detail.step;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<10} {}", printable(value));
        }
    };
    let optional = |value: &Option<String>| value.clone().unwrap_or_default();
    line("step", &format!("{} (step {} of run {}, {})", step.id, step.step, step.run, step.kind));
    line("time", &step.at);
    line("project", &step.root);
    line("tool", &step.tool);
    line("command", &step.command);
    line("call", &step.call.to_string());
    line("status", &became(step));
    line("effect", &format!("{} (source {})", step.effect, step.source));
    line("code", &optional(&step.code));
    line("verdict", &optional(&step.verdict));
    line("rule", &optional(&step.rule));
    line("layer", &optional(&step.layer));
    line("reason", &optional(&step.reason));
    line("result", &detail.result.as_ref().map(ToString::to_string).unwrap_or_default());
    line("ended", &optional(&step.ended_at));
    for event in &detail.policy_events {
        line("event", &event.to_string());
    }
    for event in &detail.sandbox_events {
        line("sandbox", &event.to_string());
    }
    text
}

/// A point in time: so long ago, a date (UTC), or a date with a time and a time zone.
fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(date) = text.parse::<civil::Date>() {
        return date.to_zoned(TimeZone::UTC).map(|at| at.timestamp()).map_err(|error| error.to_string());
    }
    let ago = text
        .parse::<Span>()
        .map_err(|_| "write it like 90m, 2h, 3d, 2027-01-31, or 2027-01-31T18:00:00Z".to_owned())?;
    let seconds = ago
        .abs()
        .total((Unit::Second, SpanRelativeTo::days_are_24_hours()))
        .map_err(|error| format!("{error}; use days, hours and minutes"))?;
    #[expect(clippy::cast_possible_truncation, reason = "ages are far below the limit, and a cast saturates")]
    let ago = SignedDuration::from_secs(seconds as i64);
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

/// A number of bytes, or of K, M, G of them (powers of 1024).
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text.get(digits.len()..).unwrap_or_default().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err("write it like 500K, 100M or 1G".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "write it like 500K, 100M or 1G".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(since("2026-01-31").unwrap().to_string(), "2026-01-31T00:00:00Z");
        assert_eq!(since("2026-01-31T02:00:00+02:00").unwrap().to_string(), "2026-01-31T00:00:00Z");
        let soon = Timestamp::now() + SignedDuration::from_secs(60);
        let ago = |text: &str| soon.duration_since(since(text).unwrap()).as_hours();
        assert_eq!((ago("2h"), ago("3d"), ago("1w")), (2, 72, 168));
        for wrong in ["", "soon", "2x", "2 fortnights", "1mo"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!((size("12").unwrap(), size("5k").unwrap(), size("2M").unwrap()), (12, 5120, 2_097_152));
        for wrong in ["", "M", "-1", "1.5G", "3X", "99999999999999999999", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
