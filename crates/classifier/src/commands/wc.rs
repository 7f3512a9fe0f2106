//! `wc`

use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, inert, reads_listed};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["wc"],
    about: "counts lines, words and bytes",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-c", "--bytes"]),
        inert(&["-m", "--chars"]),
        inert(&["-l", "--lines"]),
        reads_listed(&["--files0-from"], "reads the files that the list names"),
        inert(&["-L", "--max-line-length"]),
        inert(&["-w", "--words"]),
        inert(&["--total"]).takes(Role::OneOf(&["auto", "always", "only", "never"])).elsewhere(),
        inert(&["--debug"]).elsewhere(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    rules: &[Rule::When(&["--files0-from"], Tweak::NeverStdin)],
    ..CommandSpec::JUDGED
};
