//! `date`

use crate::spec::{CommandSpec, Operands, Role, ScriptIssue, inert, reads, reads_listed, writes};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["date"],
    about: "prints the time",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-d", "--date"]).takes(Role::Script(time)),
        inert(&["--debug"]),
        reads_listed(&["-f", "--file"], "reads dates from the file, each of which may name a time zone file"),
        inert(&["-I", "--iso-8601"]).may_take(Role::OneOf(&["date", "hours", "minutes", "seconds", "ns"])),
        inert(&["--resolution"]),
        inert(&["-R", "--rfc-email", "--rfc-822", "--rfc-2822"]),
        inert(&["--rfc-3339"]).takes(Role::OneOf(&["date", "seconds", "ns"])),
        reads(&["-r", "--reference"], "shows the time of the file"),
        writes(&["-s", "--set"], "sets the clock").takes_text(),
        inert(&["-u", "--utc", "--universal", "--uct"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // BSD: adjusts the time that is shown.
        inert(&["-v"]).takes(Role::Script(time)).elsewhere(),
    ],
    operands: Operands::at_most(&[Role::Script(format)], "takes one format"),
    ..CommandSpec::JUDGED
};

/// A date in words. `TZ="…"` in it names a time zone file by its path, which is opened.
fn time(text: &str) -> Result<(), ScriptIssue> {
    match text.find("TZ") {
        Some(at) => Err(ScriptIssue::new(at, at + 2, "opens the time zone file that it names")),
        None => Ok(()),
    }
}

/// The operand: a format after `+`. Any other operand sets the clock.
fn format(text: &str) -> Result<(), ScriptIssue> {
    if text.starts_with('+') {
        return Ok(());
    }
    Err(ScriptIssue::new(0, text.len(), "is no format, which begins with `+`, so it would set the clock"))
}
