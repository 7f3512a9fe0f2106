//! `awk`, in its several kinds

use crate::argv::{Reader, Tail};
use crate::finding::Code;
use crate::spec::{CommandSpec, Role, ScriptIssue, Syntax, inert, runs, unread, waits, writes};
use crate::value::awk;

/// `awk` may be any of gawk, mawk, the one of Kernighan ("one true awk") or busybox, whatever the system installs: the
/// rows are those of all of them, each with its worst meaning.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
    about: "runs a program over fields and lines",
    checked: "gawk 5.2.1, mawk 1.3.4, one true awk 20220912, busybox 1.35.0",
    syntax: Syntax { own: Some(read), ..Syntax::STOPS },
    flags: &[
        inert(&["-F", "--field-separator"]).takes_text(),
        inert(&["-v", "--assign"]).takes(Role::Script(awk::assignment)),
        runs(&["-f", "--file"], "reads a program from a file, and awk programs can run commands")
            .takes(Role::ReadPath),
        runs(&["-E", "--exec"], "reads a program from a file, and awk programs can run commands")
            .takes(Role::ReadPath),
        runs(&["-i", "--include"], "loads a source file, such as `inplace`, which overwrites its input")
            .takes_text(),
        runs(&["-l", "--load"], "loads a shared library").takes_text(),
        unread(&["-e", "--source"], "gives the program in pieces, which only some awks know").takes_text(),
        writes(&["-d", "--dump-variables"], "writes the variables into a file").may_take(Role::WritePath),
        writes(&["-o", "--pretty-print"], "writes the program into a file").may_take(Role::WritePath),
        writes(&["-p", "--profile"], "writes a profile into a file").may_take(Role::WritePath),
        waits(&["-D", "--debug"], "starts the debugger").may_take(Role::ReadPath),
        unread(&["-W"], "is another way to write any long option").takes_text(),
        inert(&["-b", "--characters-as-bytes"]),
        inert(&["-c", "--traditional"]),
        inert(&["-C", "--copyright"]).ends(),
        inert(&["-g", "--gen-pot"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-I", "--trace"]),
        inert(&["-k", "--csv"]).elsewhere(),
        inert(&["-L", "--lint"]).may_take(Role::OneOf(&["fatal", "invalid", "no-ext"])),
        inert(&["-M", "--bignum"]),
        inert(&["-n", "--non-decimal-data"]),
        inert(&["-N", "--use-lc-numeric"]),
        inert(&["-O", "--optimize"]),
        inert(&["-P", "--posix"]),
        inert(&["-r", "--re-interval"]),
        inert(&["-s", "--no-optimize"]),
        inert(&["-S", "--sandbox"]),
        inert(&["-t", "--lint-old"]),
        inert(&["-V", "--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

/// Flags, then the program, then files; an operand `name=value` sets a variable instead of being read.
fn read(reader: &mut Reader<'_, '_>) {
    let at = reader.flags_before_operand();
    let args = reader.args;
    // With a program the flags that end one awk do not count: another warns of them and goes on.
    let Some(program) = args.get(at) else {
        if reader.around.tail != Tail::None {
            let why = "words of unknown origin are appended where the program stands";
            reader.report(Code::Script, reader.name, None, why);
        }
        return;
    };
    let checked = match program.literal() {
        Some(text) => awk::check(text),
        None => Err(ScriptIssue::new(0, program.text.len(), "the program's text is not exactly known")),
    };
    let reads_input = match checked {
        Ok(found) => found.reads_input,
        Err(issue) => {
            reader.report_script(program, &issue, None);
            true
        }
    };
    let mut files = false;
    for operand in args.get(at + 1..).unwrap_or(&[]) {
        if operand.may_begin_with('-') {
            // busybox reads flags after operands too.
            let why = "looks like a flag, which some awks take after the program as well";
            reader.report(Code::MayBeFlag, operand.span, None, why);
        }
        match operand.literal() {
            Some(text) if awk::is_assignment(text) => {
                if let Err(issue) = awk::assignment(text) {
                    reader.report_script(operand, &issue, None);
                }
            }
            Some("") => {}
            Some(_) | None => files = true,
        }
        reader.value(Role::ReadPath, operand, None);
    }
    if reader.around.tail != Tail::None {
        let why = "words are appended that some awks take for flags";
        reader.report(Code::MayBeFlag, reader.name, None, why);
    }
    if reads_input && !files && !reader.around.input_ends {
        let why = "without a file it waits for standard input, which nothing feeds";
        reader.report(Code::WaitsOnStdin, reader.name, None, why);
    }
}
