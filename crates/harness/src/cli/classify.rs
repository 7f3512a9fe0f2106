//! `harness classify`: the verdict alone.

use super::out;
use super::place::{GrammarName, absolute, current, enclosing_repository};
use super::progress::Progress;
use crate::exit::Exit;
use crate::present::printable;
use crate::wire::{BadLine, BadLineError, Classified, SCHEMA_VERSION};
use cmdgate_classifier::{Context, Verdict, classify};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// A line longer than this, in bytes, is an error object.
const LONGEST_LINE: u64 = 32 * 1024 * 1024;

/// Say whether a command is provably read-only inside the project, without running or opening anything
///
/// Exit status: 0 safe, 10 needs review, 2 usage, 125 nothing could be said. With `--batch`: 0, also where lines are wrong,
/// which are answered one by one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness classify -- 'git log --oneline | head -5'\n  \
    harness classify --grammar sequence --json -- 'cd src && grep -n main *.rs 2>/dev/null'\n  \
    harness classify --batch commands.jsonl")]
pub(crate) struct Args {
    /// Project root [default: the enclosing git repository, or the current directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Directory in which the command would run [default: the current directory inside the root, else the root]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A further directory whose files may be read; can be repeated
    #[arg(long, value_name = "DIR")]
    read_root: Vec<PathBuf>,
    /// Which shell constructs are understood
    #[arg(long, value_enum, default_value = "pipeline")]
    grammar: GrammarName,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Judge JSON Lines from FILE (`-` is standard input): one object with `command`, and optionally `root`, `cwd`, a
    /// line; one object a line comes out, in the same order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "command"])]
    batch: Option<PathBuf>,
    /// The command, as one argument
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "batch")]
    command: Option<String>,
}

/// A line of a batch. Other keys are left alone, so that a line can carry its own notes.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct Line {
    command: String,
    root: Option<String>,
    cwd: Option<String>,
}

pub(crate) fn run(args: &Args) -> Exit {
    let current = match current() {
        Ok(current) => current,
        Err(exit) => return exit,
    };
    let root =
        args.root.as_ref().map_or_else(|| enclosing_repository(&current), |root| absolute(&current, root));
    let cwd = args.cwd.as_ref().map_or_else(
        || if args.root.is_none() || current.starts_with(&root) { current.clone() } else { root.clone() },
        |cwd| absolute(&current, cwd),
    );
    let read_roots: Vec<PathBuf> = args.read_root.iter().map(|root| absolute(&current, root)).collect();
    let mut texts = Vec::with_capacity(read_roots.len());
    for path in [&root, &cwd].into_iter().chain(&read_roots) {
        let Some(text) = path.to_str() else {
            return super::fail(Exit::Usage, format_args!("{} is not valid UTF-8", path.display()));
        };
        texts.push(text);
    }
    let (Some(root), Some(cwd), Some(read_roots)) = (texts.first(), texts.get(1), texts.get(2..)) else {
        return Exit::Failed;
    };
    let context = Context::new(args.grammar.into()).with_root(root).with_cwd(cwd).with_read_roots(read_roots);
    match (&args.batch, &args.command) {
        (Some(file), _) => batch(file, &context, args.root.is_some(), args.cwd.is_some()),
        (None, Some(command)) => one(command, &context, args.json),
        (None, None) => Exit::Usage,
    }
}

fn one(command: &str, context: &Context<'_>, json: bool) -> Exit {
    let classification = classify(command, context);
    let mut text = String::new();
    if json {
        match serde_json::to_string(&Classified::new(command, &classification)) {
            Ok(json) => text = json,
            Err(error) => return super::fail(Exit::Failed, error),
        }
    } else {
        text.push_str(classification.verdict().as_str());
        for finding in &classification.findings {
            text.push_str("\n  ");
            text.push_str(finding.code.as_str());
            text.push_str(": `");
            text.push_str(&printable(finding.span.of(command)));
            text.push_str("` ");
            text.push_str(&printable(&finding.message));
        }
        if classification.findings.is_empty() && !classification.conditions.is_empty() {
            text.push_str("\n  under: ");
            let names: Vec<&str> =
                classification.conditions.iter().map(cmdgate_classifier::Condition::as_str).collect();
            text.push_str(&names.join(", "));
        }
    }
    text.push('\n');
    if let Err(exit) = out::write_raw(text.as_bytes()) {
        return exit;
    }
    match classification.verdict() {
        Verdict::Safe => Exit::Success,
        Verdict::NeedsReview => Exit::Ask,
    }
}

fn batch(file: &Path, context: &Context<'_>, fixed_root: bool, fixed_cwd: bool) -> Exit {
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        match open(file) {
            Ok(file) => Box::new(file),
            Err(error) => {
                return super::fail(Exit::Usage, format_args!("cannot read {}: {error}", file.display()));
            }
        }
    };
    // At a terminal the answers themselves are the sign of life.
    let _progress = if io::stdout().is_terminal() { Progress::default() } else { Progress::begin("judging") };
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(io::stdout().lock());
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        number += 1;
        let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        let answer = match read {
            Ok(0) => break,
            Ok(_) if bytes.last() != Some(&b'\n') && bytes.len() as u64 >= LONGEST_LINE => {
                if let Err(error) = skip_line(&mut input) {
                    return super::fail(Exit::Failed, format_args!("reading line {number}: {error}"));
                }
                bad_line(number, format!("is longer than {LONGEST_LINE} bytes"))
            }
            Ok(_) => judge_line(&bytes, number, context, fixed_root, fixed_cwd),
            Err(error) => return super::fail(Exit::Failed, format_args!("reading line {number}: {error}")),
        };
        if let Err(error) = writeln!(output, "{answer}") {
            // What could not be written is not tried again.
            let _ = output.into_parts();
            return ended(Err(error));
        }
    }
    let written = output.flush();
    let _ = output.into_parts();
    ended(written)
}

fn ended(written: io::Result<()>) -> Exit {
    out::taken(written).map_or_else(|exit| exit, |()| Exit::Success)
}

/// A file to read lines from; a FIFO will do.
fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
}

/// Drops the rest of a line that was too long.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (used, done) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        input.consume(used);
        if done {
            return Ok(());
        }
    }
}

fn judge_line(bytes: &[u8], number: u64, context: &Context<'_>, fixed_root: bool, fixed_cwd: bool) -> String {
    let line: Line = match serde_json::from_slice(bytes) {
        Ok(line) => line,
        Err(error) => return bad_line(number, error.to_string()),
    };
    // A root of the line's own does not go with the working directory of this process.
    let mut context = *context;
    if let Some(root) = &line.root {
        context.root = Some(root);
        if !fixed_cwd {
            context.cwd = None;
        }
    }
    if let Some(cwd) = &line.cwd {
        context.cwd = Some(cwd);
        if line.root.is_none() && !fixed_root {
            context.root = Some(cwd);
        }
    }
    for (key, value) in [("root", context.root), ("cwd", context.cwd)] {
        if value.is_some_and(|path| !path.starts_with('/')) {
            return bad_line(number, format!("`{key}` must be an absolute path"));
        }
    }
    let classification = classify(&line.command, &context);
    serde_json::to_string(&Classified::new(&line.command, &classification))
        .unwrap_or_else(|error| bad_line(number, error.to_string()))
}

fn bad_line(number: u64, what: impl std::fmt::Display) -> String {
    let message = format!("{what}; a line must be a JSON object with a text `command`");
    let bad = BadLine {
        schema_version: SCHEMA_VERSION,
        error: BadLineError { code: "bad_line", line: number, message },
    };
    serde_json::to_string(&bad)
        .unwrap_or_else(|_| r#"{"schema_version":1,"error":{"code":"bad_line"}}"#.to_owned())
}
