//! `tail`

use crate::spec::{CommandSpec, Operands, Prints, Role, Rule, Syntax, Tweak, inert, waits};

/// The obsolete forms `-2f` and `+1f` are not numbers, so they are held back.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["tail"],
    about: "prints the last part of files",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric().plus(),
    flags: &[
        inert(&["-c", "--bytes"]).takes_number(),
        waits(&["-f"], "waits for the file to grow, for ever"),
        waits(&["--follow"], "waits for the file to grow, for ever")
            .may_take(Role::OneOf(&["name", "descriptor"])),
        waits(&["-F"], "waits for the file to grow or appear, for ever"),
        inert(&["-n", "--lines"]).takes_number(),
        inert(&["--max-unchanged-stats"]).takes_number(),
        inert(&["--pid"]).takes_number(),
        inert(&["-q", "--quiet", "--silent"]),
        waits(&["--retry"], "keeps trying to open a file that is not there"),
        inert(&["-s", "--sleep-interval"]).takes_number(),
        inert(&["-v", "--verbose"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // BSD: prints the lines in reverse order.
        inert(&["-r"]).elsewhere(),
    ],
    operands: Operands::FILES,
    rules: &[Rule::When(&["-c", "-v"], Tweak::Prints(Prints::Anything))],
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};
