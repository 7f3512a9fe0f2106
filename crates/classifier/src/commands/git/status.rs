//! `git status`

use super::shared::{BASE, COLUMN, HELP, rows};
use crate::spec::{CommandSpec, Operands, Role, inert};

pub(super) const SPEC: CommandSpec = CommandSpec {
    names: &["status"],
    about: "shows what changed since the last commit",
    flags: rows!(
        &[
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["-s", "--short", "--no-short"]),
            inert(&["-b", "--branch", "--no-branch"]),
            inert(&["--show-stash", "--no-show-stash"]),
            inert(&["--ahead-behind", "--no-ahead-behind"]),
            inert(&["--porcelain"]).may_take(Role::OneOf(&["v1", "v2", "1", "2"])),
            inert(&["--no-porcelain"]),
            inert(&["--long", "--no-long"]),
            inert(&["-z", "--null", "--no-null"]),
            inert(&["-u", "--untracked-files"])
                .may_take(Role::OneOf(&["no", "normal", "all", "true", "false"])),
            inert(&["--no-untracked-files"]),
            inert(&["--ignored"]).may_take(Role::OneOf(&["traditional", "matching", "no"])),
            inert(&["--no-ignored"]),
            // `none` and `untracked` look into the submodules, whose own configuration then counts.
            inert(&["--ignore-submodules"]).may_take(Role::OneOf(&["all", "dirty"])),
            crate::spec::runs(
                &["--no-ignore-submodules"],
                "looks into submodules, whose own configuration then counts"
            ),
            COLUMN,
            inert(&["--no-column"]),
            inert(&["--renames", "--no-renames"]),
            inert(&["-M", "--find-renames"]).may_take(Role::Number),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    ..BASE
};
