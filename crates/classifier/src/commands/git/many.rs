//! `git stash`, `git notes`, `git worktree`, `git submodule`, `git bisect`, `git bundle`, `git sparse-checkout`: programs
//! of many subcommands, few of which only read.

use super::log::{NO_SUBCOMMAND, STASH_LIST};
use super::shared::{BASE, HELP, rows};
use crate::spec::{CommandSpec, Operands, Role, Rule, inert};

const fn writing(names: &'static [&'static str], why: &'static str) -> CommandSpec {
    CommandSpec::refused(names, why)
}

pub(super) const STASH: CommandSpec = CommandSpec {
    names: &["stash"],
    about: "lists and shows what was stashed",
    flags: HELP,
    subcommands: &[
        STASH_LIST,
        super::diff::STASH_SHOW,
        writing(&["push", "save"], "stashes changes away"),
        writing(&["pop", "apply"], "changes files"),
        writing(&["drop", "clear"], "removes what was stashed"),
        writing(&["branch"], "creates a branch"),
        writing(&["create", "store"], "writes objects and refs"),
        writing(&["export", "import"], "writes objects and refs"),
    ],
    rules: &[Rule::Unless(&[], NO_SUBCOMMAND)],
    ..BASE
};

pub(super) const NOTES: CommandSpec = CommandSpec {
    names: &["notes"],
    about: "lists and shows notes on commits",
    flags: rows!(&[inert(&["--ref"]).takes_text(), inert(&["--no-ref"])], HELP),
    subcommands: &[
        CommandSpec {
            names: &["list"],
            about: "lists notes",
            flags: HELP,
            operands: Operands::TEXTS,
            ..BASE
        },
        CommandSpec {
            names: &["show"],
            about: "shows the notes on a commit",
            flags: HELP,
            operands: Operands::TEXTS,
            ..BASE
        },
        CommandSpec {
            names: &["get-ref"],
            about: "prints the ref that holds the notes",
            flags: HELP,
            ..BASE
        },
        writing(&["add", "append", "edit", "copy"], "writes a note"),
        writing(&["merge", "remove", "prune"], "changes the notes"),
    ],
    ..BASE
};

pub(super) const WORKTREE: CommandSpec = CommandSpec {
    names: &["worktree"],
    about: "lists working trees",
    flags: HELP,
    subcommands: &[
        CommandSpec {
            names: &["list"],
            about: "lists working trees",
            flags: rows!(
                &[
                    inert(&["--porcelain", "--no-porcelain"]),
                    inert(&["-v", "--verbose", "--no-verbose"]),
                    inert(&["--expire"]).takes_text(),
                    inert(&["--no-expire"]),
                    inert(&["-z"]),
                ],
                HELP
            ),
            ..BASE
        },
        writing(&["add", "move"], "creates a working tree"),
        writing(&["remove", "prune"], "removes a working tree"),
        writing(&["lock", "unlock", "repair"], "changes what is known of a working tree"),
    ],
    rules: &[Rule::Unless(&[], NO_SUBCOMMAND)],
    ..BASE
};

const SUBMODULE_STATUS: CommandSpec = CommandSpec {
    names: &["status"],
    about: "shows which commit each submodule is at",
    flags: rows!(
        &[
            inert(&["-q", "--quiet"]),
            inert(&["--cached"]),
            crate::spec::runs(
                &["--recursive"],
                "starts git inside each submodule, whose own configuration then counts"
            ),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    ..BASE
};

pub(super) const SUBMODULE: CommandSpec = CommandSpec {
    names: &["submodule"],
    about: "shows which commit each submodule is at",
    flags: rows!(&[inert(&["-q", "--quiet"]), inert(&["--cached"])], HELP),
    subcommands: &[
        SUBMODULE_STATUS,
        writing(&["add", "init", "deinit", "update"], "changes submodules"),
        writing(&["set-branch", "set-url", "sync", "absorbgitdirs"], "configures submodules"),
        writing(&["foreach"], "runs a command in each submodule"),
        writing(&["summary"], "starts git inside each submodule, whose own configuration then counts"),
    ],
    ..BASE
};

pub(super) const BISECT: CommandSpec = CommandSpec {
    names: &["bisect"],
    about: "shows how a search for a commit went",
    flags: HELP,
    subcommands: &[
        CommandSpec { names: &["log"], about: "shows the steps of the search", flags: HELP, ..BASE },
        CommandSpec {
            names: &["terms"],
            about: "shows the words for good and bad",
            flags: rows!(&[inert(&["--term-good", "--term-old", "--term-bad", "--term-new"])], HELP),
            ..BASE
        },
        writing(
            &["start", "good", "bad", "old", "new", "skip", "next", "reset", "replay"],
            "moves the working tree",
        ),
        writing(&["run"], "runs a program"),
        writing(&["view", "visualize"], "starts a viewer"),
        writing(&["help"], "opens the manual page in a viewer"),
    ],
    rules: &[Rule::Unless(&[], NO_SUBCOMMAND)],
    ..BASE
};

pub(super) const BUNDLE: CommandSpec = CommandSpec {
    names: &["bundle"],
    about: "looks into a bundle of objects",
    flags: HELP,
    subcommands: &[
        CommandSpec {
            names: &["verify"],
            about: "checks that a bundle fits this repository",
            flags: rows!(&[inert(&["-q", "--quiet", "--no-quiet"])], HELP),
            operands: Operands::FILES,
            ..BASE
        },
        CommandSpec {
            names: &["list-heads"],
            about: "lists the refs in a bundle",
            flags: HELP,
            operands: Operands::then(&[Role::ReadPath], Role::Text).stdin_below(1),
            ..BASE
        },
        writing(&["create"], "writes a bundle"),
        writing(&["unbundle"], "writes objects"),
    ],
    rules: &[Rule::Unless(&[], NO_SUBCOMMAND)],
    ..BASE
};

pub(super) const SPARSE_CHECKOUT: CommandSpec = CommandSpec {
    names: &["sparse-checkout"],
    about: "lists what a sparse checkout holds",
    flags: HELP,
    subcommands: &[
        CommandSpec { names: &["list"], about: "lists the patterns", flags: HELP, ..BASE },
        writing(&["init", "set", "add", "reapply", "disable", "clean"], "changes the working tree"),
        writing(&["check-rules"], "reads paths from standard input"),
    ],
    rules: &[Rule::Unless(&[], NO_SUBCOMMAND)],
    ..BASE
};
