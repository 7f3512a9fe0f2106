//! `cut`

use crate::spec::{CommandSpec, Operands, inert};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["cut"],
    about: "prints chosen parts of lines",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-b", "--bytes"]).takes_text(),
        inert(&["-c", "--characters"]).takes_text(),
        inert(&["-d", "--delimiter"]).takes_text(),
        inert(&["-f", "--fields"]).takes_text(),
        inert(&["-n"]),
        inert(&["--complement"]),
        inert(&["-s", "--only-delimited"]),
        inert(&["--output-delimiter"]).takes_text(),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // BSD: fields are parted by any white space.
        inert(&["-w"]).elsewhere(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
