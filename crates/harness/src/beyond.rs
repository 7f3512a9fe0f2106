//! What a command line does besides running programs. A rule that allows a program says nothing about it: `PATH=. ls`
//! runs another `ls`, and `ls >> ~/.bashrc` writes what no argument of `ls` names.

use cmdgate_classifier::{Classification, Code, Condition, PathUse, Run};
use std::path::Path;

/// Variables that programs take for a setting, never for a program, a file, or a place to fetch from.
const SETTINGS: &[&str] = &[
    "APP_ENV",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CGO_ENABLED",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DO_NOT_TRACK",
    "FLASK_ENV",
    "FORCE_COLOR",
    "GOARCH",
    "GOMAXPROCS",
    "GOOS",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "LOG_LEVEL",
    "NEXT_TELEMETRY_DISABLED",
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "NO_COLOR",
    "PORT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    "RACK_ENV",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "TERM",
    "VERBOSE",
];

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// A variable that may change which program runs, or what it does.
    pub(crate) sets: Option<String>,
    /// A file outside the project, a protected one, or one that is not exactly known, into which output is redirected.
    pub(crate) writes: Option<String>,
}

impl Beyond {
    /// Of a whole command line. `may_write` says whether a path, relative to a directory of the effects, lies where the
    /// sandbox would let it be written, or is allowed by a rule.
    pub(crate) fn of(
        command: &str,
        found: &Classification<'_>,
        may_write: impl Fn(&str, &Path) -> bool,
    ) -> Self {
        let mut beyond = Self::default();
        for finding in &found.findings {
            let text = command.get(finding.span.range()).unwrap_or_default();
            if finding.code == Code::Assignment {
                let name = text.split(['=', '+']).next().unwrap_or_default();
                if !SETTINGS.contains(&name) || text.contains(['/', '$', '`']) {
                    beyond.sets.get_or_insert_with(|| name.to_owned());
                }
            }
            if matches!(finding.code, Code::RedirectWrites | Code::Redirect) {
                let mut targets = found
                    .effects
                    .writes
                    .iter()
                    .filter(|used| finding.span.start <= used.span.start && used.span.end <= finding.span.end)
                    .peekable();
                let known = finding.code == Code::RedirectWrites && targets.peek().is_some();
                let inside = |used: &PathUse<'_>| {
                    let directory = Path::new(found.effects.directory(used.directory));
                    used.exact && !used.path.starts_with('~') && may_write(&used.path, directory)
                };
                if !known || !targets.all(inside) {
                    beyond.writes.get_or_insert_with(|| text.to_owned());
                }
            }
        }
        beyond
    }
}

/// Commands that change what the rest of the line means. A rule that allows one of them covers itself alone.
const CHANGES_THE_SHELL: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "cd",
    "command",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
];

/// More findings than this are taken for a list that was cut short.
const FINDINGS: usize = 32;

/// Whether everything in a line that is not known to be harmless lies in commands that rules allow (`npm test | tail -5`,
/// where a rule allows `npm test`). `allowed` is asked about a command's words.
pub(crate) fn rest_is_harmless(found: &Classification<'_>, allowed: impl Fn(&[String]) -> bool) -> bool {
    let runs = &found.effects.runs;
    let covered: Vec<bool> = runs.iter().map(|run| covers(run, &allowed)).collect();
    let only_by_rule =
        runs.iter().zip(&covered).filter(|(_, covered)| **covered).map(|(run, _)| program_of(run));
    if found.findings.len() > FINDINGS
        || !covered.contains(&true)
        || only_by_rule.into_iter().any(|program| CHANGES_THE_SHELL.contains(&program))
    {
        return false;
    }
    let provided = |condition: Condition| match condition {
        Condition::CleanEnvironment
        | Condition::PathsResolveInside
        | Condition::NullStdin
        | Condition::NoRipgrepConfig
        | Condition::OutputNotTerminal => true,
        // What provides these would change what the allowed command does.
        Condition::ReadsConfined | Condition::GitHardened | Condition::ToolchainFixed => false,
    };
    found.conditions.iter().all(provided)
        && found.findings.iter().all(|finding| {
            let around =
                |run: &Run<'_>| run.span.start <= finding.span.start && finding.span.end <= run.span.end;
            let width = |run: &Run<'_>| run.span.end - run.span.start;
            let innermost = runs.iter().filter(|run| around(run)).map(width).min();
            innermost.is_some_and(|innermost| {
                runs.iter()
                    .zip(&covered)
                    .filter(|(run, _)| around(run) && width(run) == innermost)
                    .all(|(_, covered)| *covered)
            })
        })
}

fn program_of<'r>(run: &'r Run<'_>) -> &'r str {
    run.argv.first().map_or("", |program| program.as_ref())
}

fn covers(run: &Run<'_>, allowed: impl Fn(&[String]) -> bool) -> bool {
    let mut argv: Vec<String> = run.argv.iter().map(ToString::to_string).collect();
    if !allowed(&argv) {
        return false;
    }
    // Words that are not known may be more than stand here.
    run.exact || {
        argv.push("\u{7f}".to_owned());
        allowed(&argv)
    }
}
