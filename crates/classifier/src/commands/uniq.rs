//! `uniq`

use crate::spec::{CommandSpec, Operands, Prints, Role, Syntax, inert};

/// On BSD the first operand ends the flags, so that `uniq a.txt -c` overwrites a file named `-c`.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["uniq"],
    about: "drops repeated lines",
    checked: "GNU coreutils 9.1",
    syntax: Syntax { permutes: false, ..Syntax::GNU.numeric().plus() },
    flags: &[
        inert(&["-c", "--count"]),
        inert(&["-d", "--repeated"]),
        inert(&["-D"]),
        inert(&["--all-repeated"]).may_take(Role::OneOf(&["none", "prepend", "separate"])),
        inert(&["-f", "--skip-fields"]).takes_number(),
        inert(&["--group"]).may_take(Role::OneOf(&["separate", "prepend", "append", "both"])),
        inert(&["-i", "--ignore-case"]),
        inert(&["-s", "--skip-chars"]).takes_number(),
        inert(&["-u", "--unique"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["-w", "--check-chars"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::at_most(
        &[Role::ReadPath],
        "a second operand is the output file, which is overwritten",
    )
    .stdin_below(1),
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};
