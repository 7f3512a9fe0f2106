//! `hexdump` and `hd`

use crate::spec::{CommandSpec, Operands, Role, inert, reads};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["hexdump", "hd"],
    about: "dumps files",
    checked: "util-linux 2.38.1",
    flags: &[
        inert(&["-b", "--one-byte-octal"]),
        inert(&["-c", "--one-byte-char"]),
        inert(&["-C", "--canonical"]),
        inert(&["-d", "--two-bytes-decimal"]),
        inert(&["-o", "--two-bytes-octal"]),
        inert(&["-x", "--two-bytes-hex"]),
        inert(&["-L", "--color"]).may_take(Role::OneOf(&["auto", "always", "never"])),
        inert(&["-e", "--format"]).takes_text(),
        reads(&["-f", "--format-file"], "reads formats from the file"),
        inert(&["-n", "--length"]).takes_number(),
        inert(&["-s", "--skip"]).takes_number(),
        inert(&["-v", "--no-squeezing"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
