//! `cat`

use crate::spec::{CommandSpec, Operands, inert};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["cat"],
    about: "prints files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-A", "--show-all"]),
        inert(&["-b", "--number-nonblank"]),
        inert(&["-e"]),
        inert(&["-E", "--show-ends"]),
        inert(&["-n", "--number"]),
        inert(&["-s", "--squeeze-blank"]),
        inert(&["-t"]),
        inert(&["-T", "--show-tabs"]),
        inert(&["-u"]),
        inert(&["-v", "--show-nonprinting"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
