//! `sed`

use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, follows_links, inert, runs, writes};
use crate::value::sed;

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["sed"],
    about: "prints and edits a stream of lines",
    checked: "GNU sed 4.9",
    flags: &[
        inert(&["-n", "--quiet", "--silent"]),
        inert(&["--debug"]),
        inert(&["-e", "--expression"]).takes(Role::ScriptPart(sed::check)),
        runs(&["-f", "--file"], "reads commands from a file, and sed commands can run programs")
            .takes(Role::ReadPath),
        follows_links(&["--follow-symlinks"], "follows symlinks that are operands"),
        writes(&["-i", "--in-place"], "writes the result back into the files").may_take(Role::Text),
        writes(&["-I"], "writes the result back into the files").may_take(Role::Text).elsewhere(),
        inert(&["-l", "--line-length"]).takes(Role::Script(sed::number)),
        inert(&["--posix"]),
        inert(&["-E", "-r", "--regexp-extended"]),
        inert(&["-s", "--separate"]),
        inert(&["--sandbox"]),
        inert(&["-u", "--unbuffered"]),
        inert(&["-z", "--null-data", "--zero-terminated"]),
        inert(&["-b", "--binary"]),
        inert(&["-a"]).elsewhere(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::then(&[Role::ScriptPart(sed::check)], Role::ReadPath).stdin_below(2),
    rules: &[Rule::When(&["-e", "-f"], Tweak::DropLeading)],
    ..CommandSpec::JUDGED
};
