//! `git diff`, its three plumbing forms, and `git stash show`.

use super::log::PRINTS_NAMES;
use super::shared::{BASE, DIFF, HELP, REVISION, REVISIONS_AND_PATHS, WALK, rows};
use crate::finding::Code;
use crate::spec::{CommandSpec, Flag, Operands, Prints, Role, Rule, Tweak, Value, inert, unread, waits};

/// With these there is more beside the names that `--name-only` prints, in one version or another: patches, and what
/// commits say.
const PRINTS_MORE: &[&str] = &[
    "--line-prefix",
    "--relative",
    "-p",
    "-U",
    "--binary",
    "--patch-with-raw",
    "--patch-with-stat",
    "--stat",
    "--check",
    "--no-index",
    "--pretty",
    "--oneline",
    "--notes",
    "--standard-notes",
    "--show-notes-by-default",
    "-v",
];

pub(super) const DIFF_PORCELAIN: CommandSpec = CommandSpec {
    names: &["diff"],
    about: "shows changes between commits, index and files",
    syntax: WALK,
    flags: rows!(
        &[
            inert(&["--cached", "--staged"]),
            inert(&["--merge-base"]),
            inert(&["--base", "--ours", "--theirs"]),
            inert(&["-q"]),
            inert(&["--no-index"]),
            // Beside a file outside git compares two files, and then reads `--default` as `--default-prefix`.
            unread(&["--default"], "may be read as `--default-prefix`, and its value as a file").takes_text(),
        ],
        DIFF,
        REVISION,
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    rules: &[
        Rule::When(&["--no-index"], Tweak::Layout(Operands::all(Role::ReadPath))),
        Rule::When(&["--name-only"], PRINTS_NAMES),
        Rule::When(PRINTS_MORE, Tweak::Prints(Prints::Anything)),
    ],
    ..BASE
};

pub(super) const DIFF_TREE: CommandSpec = CommandSpec {
    names: &["diff-tree"],
    about: "compares trees",
    syntax: WALK,
    flags: rows!(
        &[waits(&["--stdin"], "reads objects from standard input"), inert(&["--merge-base"])],
        DIFF,
        REVISION,
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    rules: &[
        Rule::When(&["--name-only"], PRINTS_NAMES),
        Rule::When(PRINTS_MORE, Tweak::Prints(Prints::Anything)),
    ],
    ..BASE
};

/// The plumbing ignores `diff.ignoreSubmodules`, and looks into submodules unless it is told not to.
const INTO_SUBMODULES: Tweak = Tweak::Refuse(
    Code::FlagRuns,
    "looks into submodules, whose own configuration then counts; give `--ignore-submodules` or `--cached`",
);

pub(super) const DIFF_INDEX: CommandSpec = CommandSpec {
    names: &["diff-index"],
    about: "compares a tree with index or files",
    syntax: WALK,
    flags: rows!(&[inert(&["--cached"]), inert(&["--merge-base"])], DIFF, REVISION, HELP),
    operands: REVISIONS_AND_PATHS,
    rules: &[
        Rule::Unless(&["--cached", "--ignore-submodules"], INTO_SUBMODULES),
        Rule::When(&["--name-only"], PRINTS_NAMES),
        Rule::When(PRINTS_MORE, Tweak::Prints(Prints::Anything)),
    ],
    ..BASE
};

pub(super) const DIFF_FILES: CommandSpec = CommandSpec {
    names: &["diff-files"],
    about: "compares index and files",
    syntax: WALK,
    flags: rows!(&[inert(&["--base", "--ours", "--theirs"]), inert(&["-q"])], DIFF, REVISION, HELP),
    operands: REVISIONS_AND_PATHS,
    rules: &[
        Rule::Unless(&["--ignore-submodules"], INTO_SUBMODULES),
        Rule::When(&["--name-only"], PRINTS_NAMES),
        Rule::When(PRINTS_MORE, Tweak::Prints(Prints::Anything)),
    ],
    ..BASE
};

const STASH_SHOW_FLAGS: &[Flag] = rows!(
    &[inert(&["-u", "--include-untracked", "--no-include-untracked"]), inert(&["--only-untracked"])],
    DIFF,
    REVISION,
    HELP
);

/// Git first sorts the words by their dash and then reads each heap, so that here no flag takes the next word for its
/// value: `git stash show -S a -S --output=b` writes `b`.
const STASH_SHOW_ATTACHED: [Flag; STASH_SHOW_FLAGS.len()] = attached_only(STASH_SHOW_FLAGS);

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn attached_only<const N: usize>(flags: &[Flag]) -> [Flag; N] {
    let mut all = [inert(&[]); N];
    let mut at = 0;
    while at < N {
        all[at] = flags[at];
        if let Value::Required(role) = flags[at].value {
            all[at].value = Value::Optional(role);
        }
        at += 1;
    }
    all
}

pub(super) const STASH_SHOW: CommandSpec = CommandSpec {
    names: &["show"],
    about: "shows what was stashed",
    syntax: WALK,
    flags: &STASH_SHOW_ATTACHED,
    operands: Operands::TEXTS,
    ..BASE
};
