//! `git blame` and `git annotate`

use super::shared::{BASE, DIFF, HELP, REVISION, REVISIONS_AND_PATHS, WALK, rows};
use crate::spec::{CommandSpec, Role, inert, reads};

pub(super) const SPEC: CommandSpec = CommandSpec {
    names: &["blame", "annotate", "pickaxe"],
    about: "shows which commit changed each line last",
    // Of two words behind `--` git puts the second before it: an old way to name a revision.
    syntax: WALK.resorts(),
    flags: rows!(
        &[
            inert(&["--incremental", "--no-incremental"]),
            inert(&["-b"]),
            inert(&["--root", "--no-root"]),
            inert(&["--show-stats", "--no-show-stats"]),
            inert(&["--progress", "--no-progress"]),
            inert(&["--score-debug", "--no-score-debug"]),
            inert(&["-f", "--show-name", "--no-show-name"]),
            inert(&["-n", "--show-number", "--no-show-number"]),
            inert(&["-p", "--porcelain", "--no-porcelain"]),
            inert(&["--line-porcelain", "--no-line-porcelain"]),
            inert(&["-c"]),
            inert(&["-t"]),
            inert(&["-l"]),
            inert(&["-s"]),
            inert(&["-e", "--show-email", "--no-show-email"]),
            inert(&["-w"]),
            inert(&["--ignore-rev"]).takes_text(),
            inert(&["--no-ignore-rev"]),
            reads(&["--ignore-revs-file"], "reads revisions from the file"),
            inert(&["--no-ignore-revs-file"]),
            inert(&["--color-lines", "--no-color-lines"]),
            inert(&["--color-by-age", "--no-color-by-age"]),
            inert(&["--minimal", "--no-minimal"]),
            reads(&["-S"], "reads revisions from the file"),
            reads(&["--contents"], "annotates the text of this file"),
            inert(&["--no-contents"]),
            inert(&["-C"]).may_take(Role::Number),
            inert(&["-M"]).may_take(Role::Number),
            inert(&["-L"]).takes_text(),
            inert(&["--abbrev"]).may_take(Role::Number),
            inert(&["--no-abbrev"]),
        ],
        // The words that are left go through the shared parsers, `--output` included.
        REVISION,
        DIFF,
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    ..BASE
};
