//! `git diff`, its three plumbing forms, and `git stash show`.

use super::log::PRINTS_NAMES;
use super::shared::{BASE, DIFF, HELP, REVISION, REVISIONS_AND_PATHS, WALK, rows};
use crate::finding::Code;
use crate::spec::{CommandSpec, Flag, Operands, Prints, Role, Rule, Tweak, Value, inert, waits};

/// Names of changed files alone, without anything before them.
const NAMES: &[Rule] = &[
    Rule::When(&["--name-only"], PRINTS_NAMES),
    Rule::When(&["--line-prefix", "--relative", "-p", "--stat"], Tweak::Prints(Prints::Anything)),
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
        ],
        DIFF,
        REVISION,
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    rules: &[
        Rule::When(&["--no-index"], Tweak::Layout(Operands::all(Role::ReadPath))),
        Rule::When(&["--name-only"], PRINTS_NAMES),
        Rule::When(
            &["--line-prefix", "--relative", "-p", "--stat", "--no-index"],
            Tweak::Prints(Prints::Anything),
        ),
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
    rules: NAMES,
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
        Rule::When(&["--line-prefix", "--relative", "-p", "--stat"], Tweak::Prints(Prints::Anything)),
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
        Rule::When(&["--line-prefix", "--relative", "-p", "--stat"], Tweak::Prints(Prints::Anything)),
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
