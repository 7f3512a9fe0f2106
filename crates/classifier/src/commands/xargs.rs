//! `xargs`

use crate::arg::{Arg, Shape};
use crate::argv::{Reader, Surroundings, Tail};
use crate::condition::Condition;
use crate::finding::Code;
use crate::spec::{CommandSpec, Prints, Role, Syntax, inert, reads, waits};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["xargs"],
    about: "runs a command with words from its input",
    checked: "GNU findutils 4.9.0",
    syntax: Syntax { own: Some(read), ..Syntax::STOPS },
    flags: &[
        inert(&["-0", "--null"]),
        reads(&["-a", "--arg-file"], "reads the words from the file"),
        inert(&["-d", "--delimiter"]).takes_text(),
        inert(&["-E"]).takes_text(),
        inert(&["-e", "--eof"]).may_take(Role::Text),
        inert(&["-I"]).takes_text(),
        inert(&["-i", "--replace"]).may_take(Role::Text),
        inert(&["-L"]).takes_number(),
        inert(&["-l", "--max-lines"]).may_take(Role::Number),
        inert(&["-n", "--max-args"]).takes_number(),
        waits(&["-o", "--open-tty"], "opens the terminal as standard input"),
        inert(&["-P", "--max-procs"]).takes_number(),
        waits(&["-p", "--interactive"], "asks on the terminal"),
        inert(&["--process-slot-var"]).takes_text(),
        inert(&["-r", "--no-run-if-empty"]),
        inert(&["-s", "--max-chars"]).takes_number(),
        inert(&["--show-limits"]),
        inert(&["-t", "--verbose"]),
        inert(&["-x", "--exit"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

/// `xargs` appends words of its input to a command, or puts each line in the place of a mark. What those words are is
/// not known: only that they are names of files inside the project, when the stage before prints such names.
fn read(reader: &mut Reader<'_, '_>) {
    let at = reader.flags_before_operand();
    if reader.around.tail != Tail::None {
        let why = "words are appended that may become this program's flags or the command that it runs";
        reader.report(Code::OperandRuns, reader.name, None, why);
        return;
    }
    if reader.saw(&["--help", "--version"]) {
        return;
    }
    if !reader.around.input_ends {
        reader.report(Code::WaitsOnStdin, reader.name, None, "waits for standard input, which nothing feeds");
    }
    if reader.saw(&["-a", "--process-slot-var"]) {
        let why = "words from a file, or a variable in the environment, are not followed";
        reader.report(Code::PathUnknown, reader.name, None, why);
        return;
    }
    let paths_inside = reader.around.upstream == Prints::PathsInside;
    let args = reader.args;
    let command = args.get(at..).unwrap_or(&[]);
    if command.is_empty() {
        // `echo` is the command then: it prints its input.
        return;
    }
    let mut around = Surroundings {
        input_ends: true,
        upstream: Prints::Anything,
        tail: Tail::Unknown { paths_inside },
        depth: reader.around.depth + 1,
    };
    let mark = match reader.last(&["-I", "-i"]) {
        None => {
            let prints = reader.judge.command(command, around);
            reader.prints = if paths_inside { prints } else { Prints::Anything };
            return;
        }
        // `-L`, `-l` and `-n` make it forget the mark, depending on their order.
        Some(_) if reader.saw(&["-L", "-l", "-n"]) => None,
        Some((flag, None)) if flag.name() == "-i" => Some("{}".into()),
        Some((_, value)) => value.filter(|mark| !mark.is_empty()).map(String::from),
    };
    let Some(mark) = mark else {
        let why = "which words of the command are replaced is not certain";
        reader.report(Code::PathUnknown, reader.name, None, why);
        return;
    };
    around.tail = Tail::None;
    let replaced: Vec<Arg<'_>> = command.iter().map(|arg| replace(arg, &mark, paths_inside)).collect();
    reader.judge.need_one(Condition::ReadsConfined);
    reader.judge.command(&replaced, around);
}

/// A word of the command in which each `mark` is replaced by a line of the input.
fn replace<'a>(arg: &Arg<'a>, mark: &str, paths_inside: bool) -> Arg<'a> {
    if arg.literal().is_none() {
        // Names that the shell puts there may hold the mark too.
        return Arg {
            text: Cow::Borrowed(""),
            span: arg.span,
            shape: Shape::Opaque { splits: arg.is_many() },
        };
    }
    let Some(at) = arg.text.find(mark) else {
        return arg.clone();
    };
    if arg.literal() == Some(mark) && paths_inside {
        // A name inside the project, which may still look like a flag.
        return Arg {
            text: Cow::Borrowed("*"),
            span: arg.span,
            shape: Shape::Pattern { prefix: 0, many: false },
        };
    }
    Arg {
        text: Cow::Owned(arg.text.get(..at).unwrap_or("").into()),
        span: arg.span,
        shape: Shape::Opaque { splits: false },
    }
}
