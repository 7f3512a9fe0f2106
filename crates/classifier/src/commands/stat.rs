//! `stat`

use crate::spec::{CommandSpec, Operands, Role, follows_links, inert};

/// GNU and BSD agree on little but `-L`: BSD's `-f` and `-t` take a format, which here counts as an operand, a path
/// inside the project like any other.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["stat"],
    about: "shows a file's state",
    checked: "GNU coreutils 9.1",
    flags: &[
        follows_links(&["-L", "--dereference"], "follows symlinks among its operands"),
        inert(&["-f", "--file-system"]),
        inert(&["--cached"]).takes(Role::OneOf(&["always", "never", "default"])),
        inert(&["-c", "--format"]).takes_text(),
        inert(&["--printf"]).takes_text(),
        inert(&["-t", "--terse"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        inert(&["-F"]).elsewhere(),
        inert(&["-l"]).elsewhere(),
        inert(&["-n"]).elsewhere(),
        inert(&["-q"]).elsewhere(),
        inert(&["-r"]).elsewhere(),
        inert(&["-s"]).elsewhere(),
        inert(&["-x"]).elsewhere(),
    ],
    operands: Operands::FILES_OR_HERE,
    ..CommandSpec::JUDGED
};
