//! `strings`

use crate::spec::{CommandSpec, Operands, Role, Syntax, inert};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["strings"],
    about: "prints the texts in binary files",
    checked: "GNU binutils 2.40",
    syntax: Syntax::GNU.numeric().at_files(),
    flags: &[
        inert(&["-a", "--all"]),
        inert(&["-d", "--data"]),
        inert(&["-f", "--print-file-name"]),
        inert(&["-n", "--bytes"]).takes_number(),
        inert(&["-t", "--radix"]).takes(Role::OneOf(&["o", "d", "x"])),
        inert(&["-w", "--include-all-whitespace"]),
        inert(&["-o"]),
        inert(&["-T", "--target"]).takes_text(),
        inert(&["-e", "--encoding"]).takes(Role::OneOf(&["s", "S", "b", "l", "B", "L"])),
        inert(&["-U", "--unicode"]).takes_text(),
        inert(&["-s", "--output-separator"]).takes_text(),
        inert(&["-h", "--help"]).ends(),
        inert(&["-v", "-V", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
