//! `xxd`

use crate::spec::{CommandSpec, Operands, Role, Syntax, inert};

/// The first operand ends its flags, so `xxd a.txt -r` writes a file named `-r`.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["xxd"],
    about: "dumps a file, or turns a dump back",
    checked: "xxd 2022-01-14",
    syntax: Syntax { permutes: false, ..Syntax::SINGLE_DASH },
    flags: &[
        inert(&["-a", "-autoskip"]),
        inert(&["-b", "-bits"]),
        inert(&["-C", "-capitalize"]),
        inert(&["-c", "-cols"]).takes_number(),
        inert(&["-d"]),
        inert(&["-E", "-EBCDIC"]),
        inert(&["-e"]),
        inert(&["-g", "-groupsize"]).takes_number(),
        inert(&["-h", "-help"]).ends(),
        inert(&["-i", "-include"]),
        inert(&["-l", "-len"]).takes_number(),
        inert(&["-n", "-name"]).takes_text(),
        inert(&["-o", "-offset"]).takes_number(),
        inert(&["-p", "-ps", "-postscript", "-plain"]),
        inert(&["-r", "-revert"]),
        inert(&["-R"]).takes(Role::OneOf(&["always", "auto", "never"])).elsewhere(),
        inert(&["-s", "-seek", "-skip"]).takes_number(),
        inert(&["-u", "-uppercase"]),
        inert(&["-v", "-version"]).ends(),
    ],
    operands: Operands::at_most(
        &[Role::ReadPath],
        "a second operand is the output file, which is overwritten",
    )
    .stdin_below(1),
    ..CommandSpec::JUDGED
};
