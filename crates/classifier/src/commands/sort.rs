//! `sort`

use crate::spec::{
    CommandSpec, Operands, Prints, Role, Rule, Syntax, Tweak, inert, reads, reads_listed, runs, writes,
};

/// An input larger than its buffer is spilled into `$TMPDIR`, which is private to the run; `-T` names another place.
/// The obsolete keys `+1 -2` are held back.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["sort"],
    about: "sorts lines",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.plus(),
    flags: &[
        inert(&["-b", "--ignore-leading-blanks"]),
        inert(&["-d", "--dictionary-order"]),
        inert(&["-f", "--ignore-case"]),
        inert(&["-g", "--general-numeric-sort"]),
        inert(&["-i", "--ignore-nonprinting"]),
        inert(&["-M", "--month-sort"]),
        inert(&["-h", "--human-numeric-sort"]),
        inert(&["-n", "--numeric-sort"]),
        inert(&["-R", "--random-sort"]),
        reads(&["--random-source"], "takes random bytes from the file"),
        inert(&["-r", "--reverse"]),
        inert(&["--sort"]).takes(Role::OneOf(&[
            "general-numeric",
            "human-numeric",
            "month",
            "numeric",
            "random",
            "version",
        ])),
        inert(&["-V", "--version-sort"]),
        inert(&["--batch-size"]).takes_number(),
        inert(&["-c"]),
        inert(&["--check"]).may_take(Role::OneOf(&["diagnose-first", "quiet", "silent"])),
        inert(&["-C"]),
        runs(&["--compress-program"], "runs the program on its temporary files").takes(Role::Program),
        inert(&["--debug"]),
        reads_listed(&["--files0-from"], "reads the files that the list names"),
        inert(&["-k", "--key"]).takes_text(),
        inert(&["-m", "--merge"]),
        writes(&["-o", "--output"], "writes the result into the file").takes(Role::WritePath),
        inert(&["-s", "--stable"]),
        inert(&["-S", "--buffer-size"]).takes_number(),
        inert(&["-t", "--field-separator"]).takes_text(),
        writes(&["-T", "--temporary-directory"], "writes temporary files into the directory")
            .takes(Role::WritePath),
        inert(&["--parallel"]).takes_number(),
        inert(&["-u", "--unique"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    rules: &[
        Rule::When(&["--files0-from"], Tweak::NeverStdin),
        Rule::When(&["--debug", "-c", "--check"], Tweak::Prints(Prints::Anything)),
    ],
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};
