//! Builtins of the shell that neither set variables nor change what later words mean

use crate::argv::{Reader, Surroundings, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Operands, Role, Syntax, inert, writes};

/// They ignore their operands.
pub(super) static STATUS: CommandSpec = CommandSpec {
    names: &["true", "false", ":"],
    about: "succeeds or fails",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::OPERANDS_ONLY,
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};

pub(super) static PWD: CommandSpec = CommandSpec {
    names: &["pwd"],
    about: "prints the working directory",
    checked: "GNU bash 5.2.15",
    flags: &[
        inert(&["-L", "--logical"]),
        inert(&["-P", "--physical"]),
        inert(&["-W"]).elsewhere(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

/// Names are looked up, not run.
pub(super) static TYPE: CommandSpec = CommandSpec {
    names: &["type"],
    about: "says what names mean to the shell",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::STOPS,
    flags: &[
        inert(&["-a"]),
        inert(&["-f"]),
        inert(&["-t"]),
        inert(&["-p"]),
        inert(&["-P"]),
        inert(&["--help"]).ends(),
    ],
    operands: Operands::all(Role::ProgramName),
    ..CommandSpec::JUDGED
};

/// Names are looked up, not run.
pub(super) static WHICH: CommandSpec = CommandSpec {
    names: &["which"],
    about: "says where programs are",
    checked: "debianutils 5.7",
    syntax: Syntax::STOPS,
    flags: &[inert(&["-a"]), inert(&["-s"]).elsewhere(), inert(&["--version"]).ends().elsewhere()],
    operands: Operands::all(Role::ProgramName),
    ..CommandSpec::JUDGED
};

/// With `-v` and `-V` names are looked up; without, the words are a command, which is judged.
pub(super) static COMMAND: CommandSpec = CommandSpec {
    names: &["command"],
    about: "looks up names, or runs a command past functions",
    checked: "GNU bash 5.2.15",
    syntax: Syntax { own: Some(command), ..Syntax::STOPS },
    flags: &[inert(&["-p"]), inert(&["-v"]), inert(&["-V"]), inert(&["--help"]).ends()],
    operands: Operands::COMMAND,
    ..CommandSpec::JUDGED
};

fn command(reader: &mut Reader<'_, '_>) {
    let at = reader.flags_before_operand();
    let args = reader.args;
    let rest = args.get(at..).unwrap_or(&[]);
    if reader.saw(&["--help"]) {
        return;
    }
    if !reader.saw(&["-v", "-V"]) {
        if rest.is_empty() && reader.around.tail != Tail::None {
            reader.report(Code::OperandRuns, reader.name, None, "words of unknown origin would be run");
            return;
        }
        let around = Surroundings { depth: reader.around.depth + 1, ..reader.around };
        reader.prints = reader.judge.command(rest, around);
        return;
    }
    for arg in rest {
        reader.value(Role::ProgramName, arg, None);
    }
    if reader.around.tail != Tail::None {
        reader.report(Code::PathUnknown, reader.name, None, "words of unknown origin are looked up");
    }
}

/// Only the settings that end a script sooner. `set` alone prints every variable; `-x` prints every command with the
/// values in it; `-a`, `-k`, `-f` and words without a dash change what later words mean.
pub(super) static SET: CommandSpec = CommandSpec {
    names: &["set"],
    about: "changes how the shell handles failures",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::own(set),
    ..CommandSpec::JUDGED
};

fn set(reader: &mut Reader<'_, '_>) {
    let mut option_name = false;
    let mut any = false;
    for arg in reader.args {
        let known = match arg.literal() {
            Some(text) if option_name => {
                option_name = false;
                matches!(text, "errexit" | "nounset" | "pipefail" | "errtrace" | "functrace")
            }
            Some(text) => match text.strip_prefix(['-', '+']) {
                Some(letters) => {
                    option_name = letters.ends_with('o');
                    !letters.is_empty()
                        && letters.chars().all(|letter| matches!(letter, 'e' | 'u' | 'E' | 'T' | 'o'))
                        && letters.matches('o').count() == usize::from(option_name)
                }
                None => false,
            },
            None => false,
        };
        any = true;
        if !known {
            let why =
                "only -e, -u, -E, -T and `-o pipefail` and their kind change nothing but when a script ends";
            reader.report(Code::UnknownFlag, arg.span, None, why);
        }
    }
    if !any || option_name || reader.around.tail != Tail::None {
        reader.report(Code::FlagDiscloses, reader.name, None, "prints the shell's variables or settings");
    }
}

/// What comes after it is judged all the same.
pub(super) static EXIT: CommandSpec = CommandSpec {
    names: &["exit"],
    about: "ends the script",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::OPERANDS_ONLY,
    operands: Operands::at_most(&[Role::Number], "takes one number"),
    ..CommandSpec::JUDGED
};

/// There is nothing to wait for, because no command is put in the background.
pub(super) static WAIT: CommandSpec = CommandSpec {
    names: &["wait"],
    about: "waits for jobs",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::POSIX,
    flags: &[
        inert(&["-f"]),
        inert(&["-n"]),
        writes(&["-p"], "sets a variable, and evaluates its subscript").takes_text(),
    ],
    ..CommandSpec::JUDGED
};

pub(super) static TIMES: CommandSpec = CommandSpec {
    names: &["times"],
    about: "prints the time that the shell has used",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::OPERANDS_ONLY,
    ..CommandSpec::JUDGED
};

pub(super) static HELP: CommandSpec = CommandSpec {
    names: &["help"],
    about: "describes builtins",
    checked: "GNU bash 5.2.15",
    syntax: Syntax::POSIX,
    flags: &[inert(&["-d"]), inert(&["-m"]), inert(&["-s"])],
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};
