//! `echo`

use crate::spec::{CommandSpec, Operands, Syntax};

/// The builtin prints every word that is not one of its three flags, so all words are text.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["echo"],
    about: "prints its arguments",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::OPERANDS_ONLY,
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};
