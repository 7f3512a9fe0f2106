//! `xargs`

use crate::arg::{Arg, Shape};
use crate::argv::{Reader, Surroundings, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Prints, Role, Syntax, inert, reads, waits};
use alloc::borrow::Cow;
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
    let replaces = reader.saw(&["-I", "-i", "--replace"]);
    let around = Surroundings {
        input_ends: true,
        upstream: Prints::Anything,
        tail: if replaces { Tail::None } else { Tail::Unknown { paths_inside } },
        depth: reader.around.depth + 1,
    };
    if !replaces {
        reader.judge.command(command, around);
        return;
    }
    // Without knowing the mark, every word that is not the program may hold it. The usual mark is known exactly.
    let mark = args.get(..at).unwrap_or(&[]).iter().any(|arg| {
        matches!(arg.literal(), Some("{}" | "-I{}" | "-i" | "--replace" | "-i{}" | "--replace={}"))
    });
    if !mark {
        reader.report(
            Code::PathUnknown,
            reader.name,
            None,
            "only `{}` is followed as the mark that is replaced",
        );
        return;
    }
    let replaced: Vec<Arg<'_>> = command
        .iter()
        .map(|arg| match (arg.literal(), arg.text.find("{}")) {
            (Some(text), Some(0)) if text == "{}" && paths_inside => {
                // A name inside the project, which may still look like a flag.
                Arg {
                    text: Cow::Borrowed("*"),
                    span: arg.span,
                    shape: Shape::Pattern { prefix: 0, many: false },
                }
            }
            (Some(text), Some(at)) => Arg {
                text: Cow::Owned(text.get(..at).unwrap_or("").into()),
                span: arg.span,
                shape: Shape::Opaque { splits: false },
            },
            (Some(_) | None, _) => arg.clone(),
        })
        .collect();
    reader.judge.need_one(crate::Condition::ReadsConfined);
    reader.judge.command(&replaced, around);
}
