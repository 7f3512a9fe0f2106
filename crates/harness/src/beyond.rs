//! What a command line does besides running programs. A rule that allows a program says nothing about it: `PATH=. ls`
//! runs another `ls`, and `ls >> ~/.bashrc` writes what no argument of `ls` names.

use cmdgate_classifier::{Classification, Code, PathUse};
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
