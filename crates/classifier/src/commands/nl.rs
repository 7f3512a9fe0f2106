//! `nl`

use crate::spec::{CommandSpec, Operands, inert};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["nl"],
    about: "numbers lines",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-b", "--body-numbering"]).takes_text(),
        inert(&["-d", "--section-delimiter"]).takes_text(),
        inert(&["-f", "--footer-numbering"]).takes_text(),
        inert(&["-h", "--header-numbering"]).takes_text(),
        inert(&["-i", "--line-increment"]).takes_number(),
        inert(&["-l", "--join-blank-lines"]).takes_number(),
        inert(&["-n", "--number-format"]).takes_text(),
        inert(&["-p", "--no-renumber"]),
        inert(&["-s", "--number-separator"]).takes_text(),
        inert(&["-v", "--starting-line-number"]).takes_number(),
        inert(&["-w", "--number-width"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
