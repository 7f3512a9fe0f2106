//! `gofmt`

use crate::condition::{Condition, Conditions};
use crate::spec::{CommandSpec, Operands, Role, Syntax, inert, runs, writes};

/// It does not go into directories by symlinks, but opens Go files that are symlinks. From Go 1.23 on it counts its runs in
/// a file below the home directory, which must not be visible (trace of go 1.27.3).
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["gofmt"],
    about: "shows how Go files would be formatted",
    checked: "go 1.19.8",
    syntax: Syntax::SINGLE_DASH,
    flags: &[
        writes(&["-cpuprofile", "--cpuprofile"], "writes a profile").takes(Role::WritePath),
        runs(&["-d", "--d"], "older versions run `diff`"),
        inert(&["-e", "--e"]),
        inert(&["-l", "--l"]),
        inert(&["-r", "--r"]).takes_text(),
        inert(&["-s", "--s"]),
        writes(&["-w", "--w"], "writes the files"),
        inert(&["-h", "--h", "-help", "--help"]).ends(),
    ],
    operands: Operands::FILES,
    conditions: Conditions::NONE.with(Condition::ReadsConfined),
    ..CommandSpec::JUDGED
};
