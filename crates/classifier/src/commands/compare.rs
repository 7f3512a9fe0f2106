//! Programs that put two files side by side: `cmp`, `comm`, `join`

use crate::spec::{CommandSpec, Operands, Role, inert};

const TWO_FILES: Operands =
    Operands::at_most(&[Role::ReadPath, Role::ReadPath], "takes two files").stdin_below(2);

pub(super) static CMP: CommandSpec = CommandSpec {
    names: &["cmp"],
    about: "says where two files differ first",
    checked: "GNU diffutils 3.8",
    flags: &[
        inert(&["-b", "-c", "--print-bytes", "--print-chars"]),
        inert(&["-i", "--ignore-initial"]).takes_number(),
        inert(&["-l", "--verbose"]),
        inert(&["-n", "--bytes"]).takes_number(),
        inert(&["-s", "--quiet", "--silent"]),
        inert(&["--help"]).ends(),
        inert(&["-v", "--version"]).ends(),
    ],
    operands: Operands::at_most(
        &[Role::ReadPath, Role::ReadPath, Role::Number, Role::Number],
        "takes two files and two offsets",
    )
    .stdin_below(2),
    ..CommandSpec::JUDGED
};

pub(super) static COMM: CommandSpec = CommandSpec {
    names: &["comm"],
    about: "shows which lines two sorted files share",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-1"]),
        inert(&["-2"]),
        inert(&["-3"]),
        inert(&["--check-order"]),
        inert(&["--nocheck-order"]),
        inert(&["--output-delimiter"]).takes_text(),
        inert(&["--total"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // BSD: compares without regard to case.
        inert(&["-i"]).elsewhere(),
    ],
    operands: TWO_FILES,
    ..CommandSpec::JUDGED
};

pub(super) static JOIN: CommandSpec = CommandSpec {
    names: &["join"],
    about: "joins lines of two files on a field",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-a"]).takes_number(),
        inert(&["-e"]).takes_text(),
        inert(&["-i", "--ignore-case"]),
        inert(&["-j"]).takes_number(),
        inert(&["-o"]).takes_text(),
        inert(&["-t"]).takes_text(),
        inert(&["-v"]).takes_number(),
        inert(&["-1"]).takes_number(),
        inert(&["-2"]).takes_number(),
        inert(&["--check-order"]),
        inert(&["--nocheck-order"]),
        inert(&["--header"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: TWO_FILES,
    ..CommandSpec::JUDGED
};
