//! `tr`

use crate::spec::{CommandSpec, Operands, Rule, Syntax, Tweak, inert};

/// It never opens a file: all operands are sets of characters.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["tr"],
    about: "translates or deletes characters",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::STOPS,
    flags: &[
        inert(&["-c", "-C", "--complement"]),
        inert(&["-d", "--delete"]),
        inert(&["-s", "--squeeze-repeats"]),
        inert(&["-t", "--truncate-set1"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        inert(&["-u"]).elsewhere(),
    ],
    operands: Operands::TEXTS,
    rules: &[Rule::Unless(&[], Tweak::AlwaysStdin)],
    ..CommandSpec::JUDGED
};
