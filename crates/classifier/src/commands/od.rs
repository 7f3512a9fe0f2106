//! `od`

use crate::spec::{CommandSpec, Operands, Role, inert};

/// Offsets of the traditional form (`+10`) count as operands, which are judged as paths.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["od"],
    about: "dumps files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-A", "--address-radix"]).takes(Role::OneOf(&["d", "o", "x", "n"])),
        inert(&["--endian"]).takes(Role::OneOf(&["big", "little"])),
        inert(&["-j", "--skip-bytes"]).takes_number(),
        inert(&["-N", "--read-bytes"]).takes_number(),
        inert(&["-S"]).takes_number(),
        inert(&["--strings"]).may_take(Role::Number),
        inert(&["-t", "--format"]).takes_text(),
        inert(&["-v", "--output-duplicates"]),
        inert(&["-w", "--width"]).may_take(Role::Number),
        inert(&["--traditional"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        inert(&["-a"]),
        inert(&["-b"]),
        inert(&["-c"]),
        inert(&["-d"]),
        inert(&["-f"]),
        inert(&["-i"]),
        inert(&["-l"]),
        inert(&["-o"]),
        inert(&["-s"]),
        inert(&["-x"]),
        inert(&["-B"]),
        inert(&["-D"]),
        inert(&["-e"]),
        inert(&["-F"]),
        inert(&["-h"]),
        inert(&["-H"]),
        inert(&["-I"]),
        inert(&["-L"]),
        inert(&["-O"]),
        inert(&["-X"]),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
