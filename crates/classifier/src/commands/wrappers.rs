//! Programs that run the rest of their words as a command, which is judged

use crate::spec::{CommandSpec, Operands, Role, Syntax, inert, writes};

pub(super) static TIMEOUT: CommandSpec = CommandSpec {
    names: &["timeout"],
    about: "runs a command for a time at the most",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::STOPS,
    flags: &[
        inert(&["--preserve-status"]),
        inert(&["--foreground"]),
        inert(&["-f"]).elsewhere(),
        inert(&["-p"]).elsewhere(),
        inert(&["-k", "--kill-after"]).takes_number(),
        inert(&["-s", "--signal"]).takes_text(),
        inert(&["-v", "--verbose"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::then(&[Role::Number], Role::Command),
    ..CommandSpec::JUDGED
};

pub(super) static NICE: CommandSpec = CommandSpec {
    names: &["nice"],
    about: "runs a command with lower priority",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::STOPS.numeric(),
    flags: &[
        inert(&["-n", "--adjustment"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::COMMAND,
    ..CommandSpec::JUDGED
};

/// The program, not the shell's keyword: `command time …`.
pub(super) static TIME: CommandSpec = CommandSpec {
    names: &["time"],
    about: "runs a command and shows what it used",
    checked: "GNU time 1.9",
    syntax: Syntax::STOPS,
    flags: &[
        writes(&["-a", "--append"], "appends to the file"),
        inert(&["-f", "--format"]).takes_text(),
        writes(&["-o", "--output"], "writes what was used into the file").takes(Role::WritePath),
        inert(&["-p", "--portability"]),
        inert(&["-q", "--quiet"]),
        inert(&["-v", "--verbose"]),
        inert(&["--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
        inert(&["-l"]).elsewhere(),
    ],
    operands: Operands::COMMAND,
    ..CommandSpec::JUDGED
};

/// It loads its own library into the command, which changes only how its streams are buffered.
pub(super) static STDBUF: CommandSpec = CommandSpec {
    names: &["stdbuf"],
    about: "runs a command with other buffers",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::STOPS,
    flags: &[
        inert(&["-i", "--input"]).takes_text(),
        inert(&["-o", "--output"]).takes_text(),
        inert(&["-e", "--error"]).takes_text(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::COMMAND,
    ..CommandSpec::JUDGED
};
