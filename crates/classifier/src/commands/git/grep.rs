//! `git grep`

use super::log::PRINTS_NAMES;
use super::shared::{BASE, COLOR, HELP_LONG, rows};
use crate::spec::{CommandSpec, Operands, Prints, Role, Rule, Syntax, Tweak, inert, reads, runs};

pub(super) const SPEC: CommandSpec = CommandSpec {
    names: &["grep"],
    about: "searches tracked files, commits or the index",
    syntax: Syntax::GNU.numeric(),
    flags: rows!(
        &[
            inert(&["--cached", "--no-cached"]),
            inert(&["--no-index"]),
            inert(&["--index"]),
            inert(&["--untracked", "--no-untracked"]),
            inert(&["--exclude-standard", "--no-exclude-standard"]),
            runs(&["--recurse-submodules"], "searches submodules, whose own configuration then counts"),
            inert(&["--no-recurse-submodules"]),
            inert(&["-v", "--invert-match", "--no-invert-match"]),
            inert(&["-i", "--ignore-case", "--no-ignore-case"]),
            inert(&["-w", "--word-regexp", "--no-word-regexp"]),
            inert(&["-a", "--text", "--no-text"]),
            inert(&["-I"]),
            runs(&["--textconv"], "runs the text converters that the configuration names"),
            inert(&["--no-textconv"]),
            inert(&["-r", "--recursive", "--no-recursive"]),
            inert(&["--max-depth"]).takes_number(),
            inert(&["-E", "--extended-regexp", "--no-extended-regexp"]),
            inert(&["-G", "--basic-regexp", "--no-basic-regexp"]),
            inert(&["-F", "--fixed-strings", "--no-fixed-strings"]),
            inert(&["-P", "--perl-regexp", "--no-perl-regexp"]),
            inert(&["-n", "--line-number", "--no-line-number"]),
            inert(&["--column", "--no-column"]),
            inert(&["-h"]),
            inert(&["-H"]),
            inert(&["--full-name", "--no-full-name"]),
            inert(&["-l", "--files-with-matches", "--name-only"]),
            inert(&["--no-files-with-matches", "--no-name-only"]),
            inert(&["-L", "--files-without-match", "--no-files-without-match"]),
            inert(&["-z", "--null", "--no-null"]),
            inert(&["-o", "--only-matching", "--no-only-matching"]),
            inert(&["-c", "--count", "--no-count"]),
            COLOR,
            inert(&["--no-color"]),
            inert(&["--break", "--no-break"]),
            inert(&["--heading", "--no-heading"]),
            inert(&["-C", "--context"]).takes_number(),
            inert(&["-B", "--before-context"]).takes_number(),
            inert(&["-A", "--after-context"]).takes_number(),
            inert(&["--no-context", "--no-before-context", "--no-after-context"]),
            inert(&["--threads"]).takes_number(),
            inert(&["--no-threads"]),
            inert(&["-p", "--show-function", "--no-show-function"]),
            inert(&["-W", "--function-context", "--no-function-context"]),
            reads(&["-f"], "reads patterns from the file"),
            inert(&["-e"]).takes(Role::Pattern),
            inert(&["--and", "--or", "--not"]),
            inert(&["-q", "--quiet", "--no-quiet"]),
            inert(&["--all-match", "--no-all-match"]),
            runs(&["-O", "--open-files-in-pager"], "opens the files that match in a program")
                .may_take(Role::Program),
            inert(&["--no-open-files-in-pager"]),
            inert(&["--ext-grep", "--no-ext-grep"]),
            inert(&["-m", "--max-count"]).takes_number(),
            inert(&["--no-max-count"]),
        ],
        HELP_LONG
    ),
    operands: Operands::then(&[Role::Pattern], Role::Revision).behind(Role::ReadPath),
    rules: &[
        Rule::When(&["-e", "-f"], Tweak::DropLeading),
        Rule::WhenWithout(&["-l", "-L"], &["-c", "-z"], PRINTS_NAMES),
        // Names are printed as `REVISION:PATH` then, or everything is.
        Rule::When(&["--heading", "-o"], Tweak::Prints(Prints::Anything)),
    ],
    ..BASE
};
