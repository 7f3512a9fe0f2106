//! `jq`, and the programs called `yq`

use crate::arg::Arg;
use crate::argv::{OptionWord, Reader, Tail};
use crate::finding::Code;
use crate::spec::{
    CommandSpec, Flag, Role, ScriptIssue, Syntax, discloses, inert, reads, runs, unread, writes,
};
use crate::value::jq::{self, Filter};

macro_rules! flags {
    ($($more:expr),* $(,)?) => {
        &[
            inert(&["-n", "--null-input"]),
            inert(&["-r", "--raw-output"]),
            inert(&["-j", "--join-output"]),
            inert(&["--raw-output0"]).elsewhere(),
            inert(&["-a", "--ascii-output"]),
            inert(&["-c", "--compact-output"]),
            inert(&["-C", "--color-output"]),
            inert(&["-M", "--monochrome-output"]),
            inert(&["-S", "--sort-keys"]),
            inert(&["-e", "--exit-status"]),
            inert(&["-R", "--raw-input"]),
            inert(&["--tab"]),
            inert(&["--indent"]).takes_number(),
            inert(&["--unbuffered"]),
            inert(&["--stream"]),
            inert(&["--stream-errors"]),
            inert(&["--seq"]),
            inert(&["--arg"]).takes_words(2, Role::Text),
            inert(&["--argjson"]).takes_words(2, Role::Text),
            reads(&["--slurpfile"], "reads the file into a variable").takes_words(2, Role::ReadPath),
            reads(&["--rawfile"], "reads the file into a variable").takes_words(2, Role::ReadPath),
            inert(&["--args"]),
            inert(&["--jsonargs"]),
            inert(&["-h", "--help"]).ends(),
            $($more),*
        ]
    };
}

const JQ: &[Flag] = flags![
    inert(&["-s", "--slurp"]),
    inert(&["-b", "--binary"]).elsewhere(),
    reads(&["--argfile"], "reads the file into a variable").takes_words(2, Role::ReadPath),
    discloses(&["-f", "--from-file"], "reads a filter from a file, and filters can show the environment"),
    reads(&["-L"], "looks for modules in the directory"),
    reads(&["--library-path"], "looks for modules in the directory").elsewhere(),
    inert(&["--debug-dump-disasm"]),
    inert(&["--debug-trace"]).may_take(Role::OneOf(&["all"])),
    inert(&["--build-configuration"]).ends().elsewhere(),
    unread(&["--run-tests"], "runs the filters in a file").may_take(Role::ReadPath),
    inert(&["-V", "--version"]).ends(),
];

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["jq"],
    about: "filters JSON",
    checked: "jq 1.6, and the options of 1.8",
    syntax: Syntax { own: Some(read), ..Syntax::GNU },
    flags: JQ,
    ..CommandSpec::JUDGED
};

/// Two programs have this name: a wrapper in Python that starts `jq` on what it translates, and one in Go with a
/// language of its own. Only what is harmless in both is admitted.
pub(super) static YQ: CommandSpec = CommandSpec {
    names: &["yq"],
    about: "filters YAML",
    checked: "yq 3.1.0 (Python), and the options of yq 4.44 (Go)",
    syntax: Syntax { own: Some(read_common), ..Syntax::GNU },
    flags: YQ_FLAGS,
    ..CommandSpec::JUDGED
};

const YQ_FLAGS: &[Flag] = flags![
    inert(&["-P", "--prettyPrint"]).elsewhere(),
    inert(&["-N", "--no-doc"]).elsewhere(),
    inert(&["-y", "--yaml-output"]),
    inert(&["-Y", "--yaml-roundtrip"]),
    inert(&["-o", "--output-format"]).takes_text().elsewhere(),
    inert(&["-p", "--input-format"]).takes_text().elsewhere(),
    inert(&["-I"]).takes_number().elsewhere(),
    writes(&["-i", "--in-place", "--inplace"], "writes the result back into the files"),
    writes(&["-s", "--split-exp", "--slurp"], "Go: writes each document into a file of its own"),
    writes(&["--split-exp-file"], "Go: writes each document into a file of its own")
        .takes(Role::ReadPath)
        .elsewhere(),
    discloses(
        &["-f", "--from-file", "--front-matter"],
        "reads a filter from a file, and filters can show the environment"
    ),
    runs(&["--security-enable-system-operator"], "Go: lets filters run programs").elsewhere(),
    inert(&["-w", "--width"]).takes_number(),
    inert(&["--version"]).ends(),
];

fn read(reader: &mut Reader<'_, '_>) {
    words(reader, false);
}

fn read_common(reader: &mut Reader<'_, '_>) {
    words(reader, true);
}

/// Flags and operands in any order; the first operand is the filter, the others are files, or values after `--args`.
fn words(reader: &mut Reader<'_, '_>, common: bool) {
    let args = reader.args;
    let mut filter: Option<Filter> = None;
    let (mut files, mut values, mut open, mut subcommand) = (false, false, true, false);
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if open && arg.may_begin_with('-') {
            match reader.option_word(at) {
                Some(OptionWord::EndOfOptions) => {
                    open = false;
                    at += 1;
                    continue;
                }
                Some(OptionWord::Taken(words)) => {
                    values |= matches!(arg.literal(), Some("--args" | "--jsonargs"));
                    at += words;
                    continue;
                }
                None => {}
            }
        }
        at += 1;
        if common
            && !subcommand
            && filter.is_none()
            && matches!(arg.literal(), Some("eval" | "e" | "eval-all" | "ea"))
        {
            // A subcommand of the Go program; to the other one a filter that is an error.
            subcommand = true;
            continue;
        }
        if filter.is_none() {
            filter = Some(check(reader, arg, common));
            if common {
                // The Go program takes the first operand for a file if there is one of that name.
                reader.value(Role::ReadPath, arg, None);
            }
        } else if values {
            reader.value(Role::Text, arg, None);
        } else {
            files = true;
            reader.value(Role::ReadPath, arg, None);
        }
    }
    if reader.around.tail != Tail::None {
        let why = "words are appended that might become flags that are not harmless";
        reader.report(Code::MayBeFlag, reader.name, None, why);
    }
    if reader.saw(&["-h", "-V", "--version", "--build-configuration"]) {
        return;
    }
    let takes_inputs = filter.is_some_and(|filter| filter.takes_inputs);
    if !files && !reader.around.input_ends && (takes_inputs || !reader.saw(&["-n"])) {
        let why = "without a file it waits for standard input, which nothing feeds";
        reader.report(Code::WaitsOnStdin, reader.name, None, why);
    }
}

fn check<'a>(reader: &mut Reader<'_, 'a>, arg: &Arg<'a>, common: bool) -> Filter {
    let checked = match arg.literal() {
        None => Err(ScriptIssue::new(0, arg.text.len(), "the filter's text is not exactly known")),
        Some(text) if common => jq::check_common(text),
        Some(text) => jq::check(text),
    };
    checked.unwrap_or_else(|issue| {
        reader.report_script(arg, &issue, None);
        Filter::default()
    })
}
