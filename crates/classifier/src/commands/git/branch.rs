//! `git branch` and `git tag`: read-only only where they list.

use super::shared::{ABBREV, BASE, COLUMN, HELP, REF_LIST, rows};
use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, inert, reads, runs, writes};

pub(super) const BRANCH: CommandSpec = CommandSpec {
    names: &["branch"],
    about: "lists branches",
    flags: rows!(
        &[
            inert(&["-l", "--list"]),
            writes(&["--no-list"], "takes back that branches are listed, so that a name creates one"),
            writes(&["--no-points-at"], "takes back that branches are listed, so that a name creates one"),
            inert(&["-a", "--all"]),
            inert(&["-r", "--remotes"]),
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["-q", "--quiet", "--no-quiet"]),
            inert(&["--show-current", "--no-show-current"]),
            ABBREV,
            inert(&["--no-abbrev"]),
            COLUMN,
            inert(&["--no-column"]),
            writes(&["-t", "--track", "--no-track"], "configures what a new branch follows")
                .may_take(Role::Text),
            writes(&["--set-upstream", "--no-set-upstream"], "configures what a branch follows"),
            writes(&["-u", "--set-upstream-to"], "configures what a branch follows").takes_text(),
            writes(&["--no-set-upstream-to"], "configures what a branch follows"),
            writes(&["--unset-upstream", "--no-unset-upstream"], "configures what a branch follows"),
            writes(&["-d", "--delete", "-D", "--no-delete"], "deletes branches"),
            writes(&["-m", "--move", "-M", "--no-move"], "renames a branch"),
            writes(&["-c", "--copy", "-C", "--no-copy"], "copies a branch"),
            writes(&["--create-reflog", "--no-create-reflog"], "creates a branch"),
            runs(&["--edit-description", "--no-edit-description"], "opens an editor"),
            writes(&["-f", "--force", "--no-force"], "resets a branch"),
            writes(&["--recurse-submodules", "--no-recurse-submodules"], "creates branches in submodules"),
        ],
        REF_LIST,
        HELP
    ),
    operands: Operands::at_most(&[], "a name creates a branch, unless `--list` makes it a pattern"),
    rules: &[Rule::When(
        &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"],
        Tweak::Layout(Operands::TEXTS),
    )],
    ..BASE
};

pub(super) const TAG: CommandSpec = CommandSpec {
    names: &["tag"],
    about: "lists tags",
    flags: rows!(
        &[
            inert(&["-l", "--list"]),
            inert(&["-n"]).may_take(Role::Number),
            // Here it may be the last word.
            inert(&["--points-at"]).may_take(Role::Text),
            COLUMN,
            inert(&["--no-column"]),
            writes(&["--no-points-at"], "takes back that tags are listed, so that a name creates one"),
            writes(&["-d", "--delete"], "deletes tags"),
            runs(&["-v", "--verify"], "runs gpg, or the program that the configuration names for it"),
            writes(&["-a", "--annotate", "--no-annotate"], "creates a tag"),
            writes(&["-m", "--message"], "creates a tag").takes_text(),
            writes(&["--trailer"], "creates a tag").takes_text(),
            reads(&["-F", "--file"], "reads the message of a new tag from the file"),
            writes(&["--no-file"], "creates a tag"),
            runs(&["-e", "--edit", "--no-edit"], "opens an editor"),
            runs(
                &["-s", "--sign", "--no-sign"],
                "runs gpg, or the program that the configuration names for it"
            ),
            writes(&["--cleanup"], "creates a tag").takes_text(),
            writes(&["--no-cleanup"], "creates a tag"),
            runs(&["-u", "--local-user"], "runs gpg, or the program that the configuration names for it")
                .takes_text(),
            writes(&["--no-local-user"], "creates a tag"),
            writes(&["-f", "--force", "--no-force"], "replaces a tag"),
            writes(&["--create-reflog", "--no-create-reflog"], "creates a tag"),
        ],
        REF_LIST,
        HELP
    ),
    operands: Operands::at_most(&[], "a name creates a tag, unless `--list` makes it a pattern"),
    rules: &[Rule::When(
        &["--list", "-n", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"],
        Tweak::Layout(Operands::TEXTS),
    )],
    ..BASE
};
