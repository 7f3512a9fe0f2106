//! `git log` and its like: `show`, `whatchanged`, `reflog`, `stash list`, `shortlog`, `rev-list`.

use super::format;
use super::shared::{BASE, DIFF, HELP, REVISION, REVISIONS_AND_PATHS, WALK, rows};
use crate::finding::Code;
use crate::spec::{CommandSpec, Flag, Operands, Prints, Role, Rule, Tweak, inert};

/// What `log`, `show` and `whatchanged` have beside the shared options.
const OWN: &[Flag] = &[
    inert(&["-q", "--quiet", "--no-quiet"]),
    inert(&["--source", "--no-source"]),
    inert(&["--use-mailmap", "--mailmap", "--no-use-mailmap", "--no-mailmap"]),
    inert(&["--clear-decorations"]),
    inert(&["--decorate-refs", "--decorate-refs-exclude"]).takes(Role::Pattern),
    inert(&["--no-decorate-refs", "--no-decorate-refs-exclude"]),
    inert(&["--decorate"]).may_take(Role::OneOf(&["short", "full", "auto", "no", "true", "false"])),
    inert(&["--no-decorate"]),
    inert(&["-L"]).takes(Role::Script(format::line_range)),
];

/// Every option of `git log`.
pub(super) const FLAGS: &[Flag] = rows!(OWN, REVISION, DIFF, HELP);

pub(super) const LOG: CommandSpec = CommandSpec {
    names: &["log"],
    about: "shows commits",
    syntax: WALK,
    flags: FLAGS,
    operands: REVISIONS_AND_PATHS,
    ..BASE
};

pub(super) const SHOW: CommandSpec =
    CommandSpec { names: &["show"], about: "shows objects: commits, files of a commit, tags, trees", ..LOG };

pub(super) const WHATCHANGED: CommandSpec =
    CommandSpec { names: &["whatchanged"], about: "shows commits with the files they change", ..LOG };

const REFLOG_SHOW: CommandSpec = CommandSpec { names: &["show"], about: "shows where a ref has been", ..LOG };

pub(super) const REFLOG: CommandSpec = CommandSpec {
    names: &["reflog"],
    about: "shows where a ref has been",
    syntax: WALK,
    flags: FLAGS,
    operands: REVISIONS_AND_PATHS,
    subcommands: &[
        REFLOG_SHOW,
        CommandSpec {
            names: &["exists"],
            about: "tells whether a ref has a log",
            flags: HELP,
            operands: Operands::TEXTS,
            ..BASE
        },
        CommandSpec { names: &["list"], about: "lists refs that have a log", flags: HELP, ..BASE },
        CommandSpec::refused(&["expire"], "removes old entries of the logs"),
        CommandSpec::refused(&["delete"], "removes entries of the logs"),
        CommandSpec::refused(&["drop"], "removes logs"),
        CommandSpec::refused(&["write"], "writes an entry of a log"),
    ],
    ..BASE
};

/// `git stash list` takes a `--` away and hands the words behind it to `git log`, where they are flags again.
pub(super) const STASH_LIST: CommandSpec =
    CommandSpec { names: &["list"], about: "lists what was stashed", syntax: WALK.resorts(), ..LOG };

pub(super) const SHORTLOG: CommandSpec = CommandSpec {
    names: &["shortlog"],
    about: "counts or lists commits by author",
    syntax: WALK,
    flags: rows!(
        &[
            inert(&["-c", "--committer", "--no-committer"]),
            inert(&["-n", "--numbered", "--no-numbered"]),
            inert(&["-s", "--summary", "--no-summary"]),
            inert(&["-e", "--email", "--no-email"]),
            inert(&["-w"]).may_take(Role::Number),
            inert(&["--group"]).takes_text(),
            inert(&["--no-group"]),
        ],
        REVISION,
        DIFF,
        HELP
    ),
    operands: REVISIONS_AND_PATHS.stdin_below(1),
    rules: &[Rule::When(
        &["--all", "--branches", "--glob", "--reflog", "--bisect", "--indexed-objects"],
        Tweak::NeverStdin,
    )],
    ..BASE
};

pub(super) const REV_LIST: CommandSpec = CommandSpec {
    names: &["rev-list"],
    about: "lists commits and objects",
    syntax: WALK,
    flags: rows!(
        &[
            inert(&["--header"]),
            inert(&["--timestamp"]),
            inert(&["--bisect-vars"]),
            inert(&["--bisect-all"]),
            inert(&["--use-bitmap-index"]),
            inert(&["--test-bitmap"]),
            inert(&["--progress"]).may_take(Role::Text),
            inert(&["--disk-usage"]).may_take(Role::OneOf(&["human"])),
            inert(&["--filter-provided-objects"]),
            inert(&["--filter-print-omitted"]),
            inert(&["--missing"]).may_take(Role::OneOf(&["error", "allow-any", "allow-promisor", "print"])),
            inert(&["--object-names", "--no-object-names"]),
            inert(&["--commit-header", "--no-commit-header"]),
            inert(&["--quiet"]),
        ],
        REVISION,
        DIFF,
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    ..BASE
};

pub(super) const CHERRY: CommandSpec = CommandSpec {
    names: &["cherry"],
    about: "lists commits that upstream does not have",
    flags: rows!(
        &[
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["--abbrev"]).may_take(Role::Number),
            inert(&["--no-abbrev"])
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    ..BASE
};

pub(super) const RANGE_DIFF: CommandSpec = CommandSpec {
    names: &["range-diff"],
    about: "compares two series of commits",
    syntax: WALK,
    flags: rows!(
        &[
            inert(&["--creation-factor"]).takes_number(),
            inert(&["--no-creation-factor"]),
            inert(&["--dual-color", "--no-dual-color"]),
            inert(&["--notes"]).may_take(Role::Text),
            inert(&["--no-notes"]),
            inert(&["--left-only", "--no-left-only"]),
            inert(&["--right-only", "--no-right-only"]),
        ],
        DIFF,
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    ..BASE
};

pub(super) const DESCRIBE: CommandSpec = CommandSpec {
    names: &["describe"],
    about: "names a commit by the nearest tag",
    flags: rows!(
        &[
            inert(&["--contains", "--no-contains"]),
            inert(&["--debug", "--no-debug"]),
            inert(&["--all", "--no-all"]),
            inert(&["--tags", "--no-tags"]),
            inert(&["--long", "--no-long"]),
            inert(&["--first-parent", "--no-first-parent"]),
            inert(&["--abbrev"]).may_take(Role::Number),
            inert(&["--no-abbrev"]),
            inert(&["--exact-match", "--no-exact-match"]),
            inert(&["--candidates"]).takes_number(),
            inert(&["--no-candidates"]),
            inert(&["--match", "--exclude"]).takes(Role::Pattern),
            inert(&["--no-match", "--no-exclude"]),
            inert(&["--always", "--no-always"]),
            crate::spec::writes(&["--dirty", "--broken"], "refreshes the index and writes it")
                .may_take(Role::Text),
            inert(&["--no-dirty", "--no-broken"]),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    ..BASE
};

pub(super) const NAME_REV: CommandSpec = CommandSpec {
    names: &["name-rev"],
    about: "names commits by the refs that reach them",
    flags: rows!(
        &[
            inert(&["--name-only", "--no-name-only"]),
            inert(&["--tags", "--no-tags"]),
            inert(&["--refs", "--exclude"]).takes(Role::Pattern),
            inert(&["--no-refs", "--no-exclude"]),
            inert(&["--all", "--no-all"]),
            inert(&["--stdin", "--annotate-stdin"]),
            inert(&["--no-stdin", "--no-annotate-stdin"]),
            inert(&["--undefined", "--no-undefined"]),
            inert(&["--always", "--no-always"]),
            inert(&["--peel-tag", "--no-peel-tag"]),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    rules: &[Rule::When(&["--stdin"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const MERGE_BASE: CommandSpec = CommandSpec {
    names: &["merge-base"],
    about: "finds common ancestors",
    flags: rows!(
        &[
            inert(&["-a", "--all", "--no-all"]),
            inert(&["--octopus"]),
            inert(&["--independent"]),
            inert(&["--is-ancestor"]),
            inert(&["--fork-point"]),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    ..BASE
};

pub(super) const SHOW_BRANCH: CommandSpec = CommandSpec {
    names: &["show-branch"],
    about: "shows branches and their commits",
    flags: rows!(
        &[
            inert(&["-a", "--all", "--no-all"]),
            inert(&["-r", "--remotes", "--no-remotes"]),
            super::shared::COLOR,
            inert(&["--no-color"]),
            inert(&["--more"]).may_take(Role::Number),
            inert(&["--no-more"]),
            inert(&["--list", "--no-list"]),
            inert(&["--name", "--no-name"]),
            inert(&["--current", "--no-current"]),
            inert(&["--sha1-name", "--no-sha1-name"]),
            inert(&["--merge-base", "--no-merge-base"]),
            inert(&["--independent", "--no-independent"]),
            inert(&["--topo-order"]),
            inert(&["--topics", "--no-topics"]),
            inert(&["--sparse", "--no-sparse"]),
            inert(&["--date-order"]),
            inert(&["-g", "--reflog"]).may_take(Role::Text),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    ..BASE
};

/// A listing of names, one a line, which `xargs` may be fed with.
pub(super) const PRINTS_NAMES: Tweak = Tweak::Prints(Prints::PathsInside);

/// Why nothing follows where a subcommand would be.
pub(super) const NO_SUBCOMMAND: Tweak =
    Tweak::RefuseOperandsUnder(1, Code::UnknownSubcommand, "without a subcommand it changes something");
