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

#[cfg(test)]
mod tests {
    use super::{format, time};
    use proptest::prelude::*;

    #[test]
    fn only_formats_and_dates_without_a_zone_file() {
        // contract: S12
        for harmless in ["+%s", "+", "+%F %T"] {
            assert!(format(harmless).is_ok(), "{harmless}");
        }
        for clock in ["", "0101", "010100002030.00", "%s", " +%s", "now"] {
            assert!(format(clock).is_err(), "{clock}");
        }
        for harmless in ["yesterday", "@1700000000", "2024-01-01 12:00 UTC", ""] {
            assert!(time(harmless).is_ok(), "{harmless}");
        }
        for zone in ["TZ=\":/etc/passwd\" now", "  TZ=\"Europe/Paris\" 9:00"] {
            assert!(time(zone).is_err(), "{zone}");
        }
    }

    proptest! {
        #[test]
        fn a_zone_is_seen_wherever_it_stands(before in "[ a-z0-9\u{e9}]{0,8}", after in "\\PC{0,8}") {
            let text = alloc::format!("{before}TZ={after}");
            let issue = time(&text).unwrap_err();
            prop_assert_eq!(text.get(issue.start..issue.end), Some("TZ"));
        }
    }
}
