//! `head`

use crate::spec::{CommandSpec, Operands, Prints, Rule, Syntax, Tweak, inert};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["head"],
    about: "prints the first part of files",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric(),
    flags: &[
        inert(&["-c", "--bytes"]).takes_number(),
        inert(&["-n", "--lines"]).takes_number(),
        inert(&["-q", "--quiet", "--silent"]),
        inert(&["-v", "--verbose"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    // Bytes may cut a line, and a part of a name is another name.
    rules: &[Rule::When(&["-c", "-v"], Tweak::Prints(Prints::Anything))],
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};
