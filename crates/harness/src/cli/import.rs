//! `harness import`: the permission rules of other agents as a policy layer.

use super::log::{new_table, print, print_json};
use super::out::say;
use super::progress::Progress;
use crate::exit::Exit;
use crate::import::{self, Carried, Entry, Imported, LARGEST_FILE, Source, SourceFile};
use crate::present::printable;
use crate::read;
use crate::wire::rules::ImportReport;
use clap::ValueEnum;
use cmdgate_policy::PolicyFile;
use comfy_table::Cell;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Read the permission rules of another agent into a policy layer
///
/// What the other agent denies or asks about, the layer never allows; where a rule cannot be carried over exactly, it is
/// carried over stricter or left out, and the report says so with file and line.
///
/// Exit status: 0 done, 2 usage, 3 a file is wrong and nothing was imported, 125 the output cannot be written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness import claude ~/.claude/settings.json .claude/settings.json --report\n  \
    harness import claude .claude/settings.json --out imported.toml\n  \
    harness check --policy imported.toml -- 'npm run build'"
)]
pub(crate) struct ImportArgs {
    /// Whose rules they are
    #[arg(value_enum)]
    source: SourceName,
    /// The files, all into one layer
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print what became of each rule instead of the policy
    #[arg(long)]
    report: bool,
    /// With --report: print JSON
    #[arg(long, requires = "report")]
    json: bool,
    /// Write the policy to this file, which must not exist yet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// With --out: replace the file if it exists; only a regular file is replaced
    #[arg(long, requires = "out")]
    force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SourceName {
    /// Claude Code: settings.json
    Claude,
    /// Codex: rules/*.rules
    Codex,
    /// Gemini CLI: policies/*.toml
    Gemini,
    /// Cursor: permissions.json, cli-config.json, cli.json
    Cursor,
    /// opencode: opencode.json
    Opencode,
    /// Copilot CLI: a script with --allow-tool and --deny-tool, or JSON with lists of the same
    Copilot,
}

impl From<SourceName> for Source {
    fn from(name: SourceName) -> Self {
        match name {
            SourceName::Claude => Self::Claude,
            SourceName::Codex => Self::Codex,
            SourceName::Gemini => Self::Gemini,
            SourceName::Cursor => Self::Cursor,
            SourceName::Opencode => Self::Opencode,
            SourceName::Copilot => Self::Copilot,
        }
    }
}

pub(crate) fn import(args: &ImportArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &ImportArgs) -> Result<Exit, Exit> {
    let wrong = |error: &dyn std::fmt::Display| super::fail(Exit::Policy, error);
    let progress = Progress::begin("reading the rules");
    let mut files = Vec::with_capacity(args.files.len());
    for path in &args.files {
        files.push(source_file(path).map_err(|error| wrong(&error))?);
    }
    let imported = import::import(args.source.into(), &files)
        .map_err(|error| super::fail(Exit::Policy, printable(&error.to_string())))?;
    let toml = imported.to_toml().map_err(|error| super::fail(Exit::Failed, error))?;
    // What is given out is read back first.
    PolicyFile::parse("the imported policy", &toml).map_err(|error| super::fail(Exit::Failed, error))?;
    drop(progress);
    if let Some(out) = &args.out {
        write_new(out, toml.as_bytes(), args.force).map_err(|error| {
            super::fail(if error.exists { Exit::Usage } else { Exit::Failed }, error.what)
        })?;
    }
    let summary = summary(&imported);
    match (args.report, &args.out) {
        (true, _) if args.json => {
            print_json(&ImportReport::new(&imported))?;
        }
        (true, _) => {
            print(&format!("{}{summary}\n", report(&imported)))?;
        }
        (false, Some(out)) => {
            print(&format!("{summary}\nwritten to {}\n", printable(&out.to_string_lossy())))?;
        }
        (false, None) => {
            print(&toml)?;
            say!("{summary}; see --report");
        }
    }
    Ok(Exit::Success)
}

fn source_file(path: &Path) -> Result<SourceFile, String> {
    let name = path.to_string_lossy().into_owned();
    let failed = |what: String| format!("{}: {what}; nothing was imported", printable(&name));
    let bytes = read::bytes(path, LARGEST_FILE).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = read::line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        format!("{}:{line}: it is not UTF-8; nothing was imported", printable(&name))
    })?;
    Ok(SourceFile { name, text })
}

/// Why a file was not written.
struct NotWritten {
    what: String,
    exists: bool,
}

/// Writes a whole file at once; over one that exists only when that was asked for.
fn write_new(path: &Path, bytes: &[u8], replace: bool) -> Result<(), NotWritten> {
    let shown = printable(&path.to_string_lossy()).clone();
    let failed = |error: io::Error| {
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let what = if exists {
            format!("{shown} exists; pass --force to replace it, or another name")
        } else {
            format!("cannot write {shown}: {error}")
        };
        NotWritten { what, exists }
    };
    let refused = |what: String, exists| Err(NotWritten { what, exists });
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return refused(format!("cannot look at {shown}: {error}"), false),
        Ok(meta) if !meta.is_file() => {
            let what =
                format!("{shown} is not a regular file, and is not replaced; name another file, or none");
            return refused(what, true);
        }
        Ok(_) => {}
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    new.write_all(bytes).map_err(failed)?;
    if replace {
        new.persist(path).map_err(|error| failed(error.error))?;
    } else {
        new.persist_noclobber(path).map_err(|error| failed(error.error))?;
    }
    Ok(())
}

fn summary(imported: &Imported) -> String {
    format!(
        "{} rules of {}: {} carried over exactly, {} stricter, {} not",
        imported.entries.len(),
        imported.source,
        imported.count(Carried::Exactly),
        imported.count(Carried::Stricter),
        imported.count(Carried::Not),
    )
}

fn report(imported: &Imported) -> String {
    let mut text =
        format!("{} combines its rules like this: {}\n", imported.source, imported.source.combines());
    for (carried, title) in [
        (Carried::Exactly, "carried over exactly"),
        (Carried::Stricter, "carried over stricter"),
        (Carried::Not, "not carried over"),
    ] {
        let entries: Vec<&Entry> = imported.entries.iter().filter(|entry| entry.carried == carried).collect();
        if entries.is_empty() {
            continue;
        }
        let mut table = new_table(["where", "rule", "became", "why"]);
        for entry in entries {
            table.add_row([
                Cell::new(printable(&format!("{}:{}", entry.file, entry.line))),
                Cell::new(printable(&entry.source)),
                Cell::new(printable(&entry.became.join("\u{b6}")).replace('\u{b6}', "\n")),
                Cell::new(printable(&entry.why)),
            ]);
        }
        let _ = write!(text, "\n{title}\n{table}\n");
    }
    text.push('\n');
    for remark in &imported.remarks {
        let _ = writeln!(text, "- {remark}");
    }
    text
}
