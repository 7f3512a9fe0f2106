//! What several subcommands share: conditions, and the options of the revision walk and of the diff machinery.
//!
//! Git reads the options of `log`, `show`, `diff`, `rev-list`, `blame`, `shortlog` and their like with the same two
//! parsers (`handle_revision_opt` in `revision.c`, `add_diff_options` in `diff.c`), so all of them take `--output` and
//! write a file. A row says of a value exactly what these parsers say: what must be attached *may be taken*, what may
//! also be the next word *is taken*.

use super::format;
use crate::condition::{Condition, Conditions};
use crate::spec::{CommandSpec, Flag, Operands, Role, Syntax, inert, reads, runs, unread, waits, writes};

/// Git whose configuration names no program, and no pager.
pub(super) const HARDENED: Conditions =
    Conditions::NONE.with(Condition::GitHardened).with(Condition::OutputNotTerminal);

/// A judged subcommand.
pub(super) const BASE: CommandSpec =
    CommandSpec { checked: "git 2.47.3", conditions: HARDENED, ..CommandSpec::JUDGED };

/// How the words of a revision walk are told apart. `git log` first takes out the flags that it alone has, wherever they
/// stand, and what is left is read anew: `git log --author -q -S --output=x` writes `x`, for `--author` then takes `-S`.
pub(super) const WALK: Syntax = Syntax::GNU.numeric().looks_twice();

/// Revisions and paths in any order, then paths behind `--`.
pub(super) const REVISIONS_AND_PATHS: Operands = Operands::all(Role::Revision).behind(Role::ReadPath);

/// Puts slices of rows together. The first row of a name decides, so a subcommand's own rows come first.
macro_rules! rows {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&[$crate::spec::Flag]] = &[$($part),+];
        const LEN: usize = $crate::commands::git::shared::total(PARTS);
        const ROWS: [$crate::spec::Flag; LEN] = $crate::commands::git::shared::join(PARTS);
        &ROWS
    }};
}
pub(super) use rows;

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
pub(super) const fn total(parts: &[&[Flag]]) -> usize {
    let mut sum = 0;
    let mut part = 0;
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
pub(super) const fn join<const N: usize>(parts: &[&[Flag]]) -> [Flag; N] {
    let mut all = [inert(&[]); N];
    let mut filled = 0;
    let mut part = 0;
    while part < parts.len() {
        let mut row = 0;
        while row < parts[part].len() {
            all[filled] = parts[part][row];
            filled += 1;
            row += 1;
        }
        part += 1;
    }
    all
}

/// Every subcommand.
pub(super) const HELP: &[Flag] =
    &[runs(&["--help"], "opens the manual page in a viewer"), inert(&["-h"]).ends(), END];

/// The same where `-h` means something else.
pub(super) const HELP_LONG: &[Flag] = &[runs(&["--help"], "opens the manual page in a viewer"), END];

/// Every word behind it is an operand.
const END: Flag =
    unread(&["--end-of-options"], "makes operands of what looks like flags, which is not followed");

pub(super) const COLOR: Flag =
    inert(&["--color"]).may_take(Role::OneOf(&["always", "never", "auto", "true", "false"]));
pub(super) const COLUMN: Flag = inert(&["--column"]).may_take(Role::Text);
pub(super) const ABBREV: Flag = inert(&["--abbrev"]).may_take(Role::Number);

/// The diff machinery (`add_diff_options`).
pub(super) const DIFF: &[Flag] = &[
    inert(&["-p", "-u", "--patch"]),
    inert(&["-s", "--no-patch"]),
    inert(&["-U", "--unified"]).may_take(Role::Number),
    inert(&["-W", "--function-context", "--no-function-context"]),
    inert(&["--raw"]),
    inert(&["--patch-with-raw"]),
    inert(&["--patch-with-stat"]),
    inert(&["--numstat"]),
    inert(&["--shortstat"]),
    inert(&["-X", "--dirstat"]).may_take(Role::Text),
    inert(&["--cumulative"]),
    inert(&["--dirstat-by-file"]).may_take(Role::Text),
    inert(&["--check"]),
    inert(&["--summary"]),
    inert(&["--name-only"]),
    inert(&["--name-status"]),
    inert(&["--stat"]).may_take(Role::Number),
    inert(&["--no-stat"]).elsewhere(),
    inert(&["--stat-width"]).takes_number(),
    inert(&["--stat-name-width"]).takes_number(),
    inert(&["--stat-graph-width"]).takes_number(),
    inert(&["--stat-count"]).takes_number(),
    inert(&["--compact-summary", "--no-compact-summary"]),
    inert(&["--binary"]),
    inert(&["--full-index", "--no-full-index"]),
    COLOR,
    inert(&["--no-color"]),
    inert(&["--ws-error-highlight"]).takes_text(),
    inert(&["-z"]),
    ABBREV,
    inert(&["--no-abbrev"]),
    inert(&["--src-prefix"]).takes_text(),
    inert(&["--dst-prefix"]).takes_text(),
    inert(&["--line-prefix"]).takes_text(),
    inert(&["--no-prefix"]),
    inert(&["--default-prefix"]),
    inert(&["--inter-hunk-context"]).takes_number(),
    inert(&["--output-indicator-new"]).takes_text(),
    inert(&["--output-indicator-old"]).takes_text(),
    inert(&["--output-indicator-context"]).takes_text(),
    inert(&["-B", "--break-rewrites"]).may_take(Role::Text),
    inert(&["-M", "--find-renames"]).may_take(Role::Number),
    inert(&["-D", "--irreversible-delete"]),
    inert(&["-C", "--find-copies"]).may_take(Role::Number),
    inert(&["--find-copies-harder", "--no-find-copies-harder"]),
    inert(&["--no-renames"]),
    inert(&["--rename-empty", "--no-rename-empty"]),
    inert(&["--follow", "--no-follow"]),
    inert(&["-l"]).takes_number(),
    inert(&["--minimal"]),
    inert(&["-w", "--ignore-all-space"]),
    inert(&["-b", "--ignore-space-change"]),
    inert(&["--ignore-space-at-eol"]),
    inert(&["--ignore-cr-at-eol"]),
    inert(&["--ignore-blank-lines"]),
    inert(&["-I", "--ignore-matching-lines"]).takes(Role::Pattern),
    inert(&["--no-ignore-matching-lines"]),
    inert(&["--indent-heuristic", "--no-indent-heuristic"]),
    inert(&["--patience"]),
    inert(&["--histogram"]),
    inert(&["--diff-algorithm"]).takes(Role::OneOf(&[
        "default",
        "myers",
        "minimal",
        "patience",
        "histogram",
    ])),
    inert(&["--anchored"]).takes_text(),
    inert(&["--word-diff"]).may_take(Role::OneOf(&["color", "plain", "porcelain", "none"])),
    inert(&["--word-diff-regex"]).takes(Role::Pattern),
    inert(&["--color-words"]).may_take(Role::Pattern),
    inert(&["--color-moved"]).may_take(Role::Text),
    inert(&["--no-color-moved"]),
    inert(&["--color-moved-ws"]).takes_text(),
    inert(&["--no-color-moved-ws"]),
    inert(&["--relative"]).may_take(Role::Text),
    inert(&["--no-relative"]),
    inert(&["-a", "--text", "--no-text"]),
    inert(&["-R"]),
    inert(&["--exit-code", "--no-exit-code"]),
    inert(&["--quiet", "--no-quiet"]),
    runs(&["--ext-diff"], "runs the diff program that configuration or environment name"),
    inert(&["--no-ext-diff"]),
    runs(&["--textconv"], "runs the text converters that the configuration names"),
    inert(&["--no-textconv"]),
    // `none` and `untracked` look into the submodules, whose own configuration then counts.
    inert(&["--ignore-submodules"]).may_take(Role::OneOf(&["all", "dirty"])),
    // `diff` starts a diff inside each submodule.
    inert(&["--submodule"]).may_take(Role::OneOf(&["short", "log"])),
    inert(&["--ita-invisible-in-index"]),
    inert(&["--ita-visible-in-index"]),
    inert(&["-S"]).takes_text(),
    inert(&["-G"]).takes(Role::Pattern),
    inert(&["--pickaxe-all"]),
    inert(&["--pickaxe-regex"]),
    reads(&["-O"], "reads the order of the files from this file"),
    inert(&["--rotate-to"]).takes_text(),
    inert(&["--skip-to"]).takes_text(),
    inert(&["--find-object"]).takes_text(),
    inert(&["--diff-filter"]).takes_text(),
    inert(&["--max-depth"]).takes_number().elsewhere(),
    writes(&["--output"], "writes the output into the file").takes(Role::WritePath),
];

/// The revision walk (`handle_revision_opt`, `handle_revision_pseudo_opt`, `diff_merges_parse_opts`).
pub(super) const REVISION: &[Flag] = &[
    inert(&["--all"]),
    inert(&["--branches", "--tags", "--remotes"]).may_take(Role::Pattern),
    inert(&["--reflog"]),
    inert(&["--not"]),
    inert(&["--no-walk"]).may_take(Role::OneOf(&["sorted", "unsorted"])),
    inert(&["--do-walk"]),
    inert(&["--bisect"]),
    inert(&["--glob"]).takes(Role::Pattern),
    inert(&["--indexed-objects"]),
    runs(&["--alternate-refs"], "asks other object stores through the program that the configuration names"),
    inert(&["--exclude"]).takes(Role::Pattern),
    inert(&["--exclude-hidden"]).takes(Role::OneOf(&["fetch", "receive", "uploadpack"])),
    inert(&["--single-worktree"]),
    inert(&["--filter"]).may_take(Role::Text),
    inert(&["--no-filter"]),
    inert(&["-n", "--max-count"]).takes_number(),
    inert(&["--max-count-oldest"]).takes_number().elsewhere(),
    inert(&["--skip"]).takes_number(),
    inert(&["--max-age", "--min-age"]).takes_number(),
    inert(&["--since", "--after", "--since-as-filter"]).takes_text(),
    inert(&["--until", "--before"]).takes_text(),
    inert(&["--first-parent"]),
    inert(&["--exclude-first-parent-only"]),
    inert(&["--ancestry-path"]).may_take(Role::Text),
    inert(&["-g", "--walk-reflogs"]),
    inert(&["--default"]).takes_text(),
    inert(&["--merge"]),
    inert(&["--topo-order"]),
    inert(&["--simplify-merges"]),
    inert(&["--simplify-by-decoration"]),
    inert(&["--date-order"]),
    inert(&["--author-date-order"]),
    inert(&["--early-output"]).may_take(Role::Number),
    inert(&["--parents"]),
    inert(&["--dense"]),
    inert(&["--sparse"]),
    inert(&["--in-commit-order"]),
    inert(&["--remove-empty"]),
    inert(&["--merges"]),
    inert(&["--no-merges"]),
    inert(&["--min-parents", "--max-parents"]).may_take(Role::Number),
    inert(&["--no-min-parents"]),
    inert(&["--no-max-parents"]),
    inert(&["--boundary"]),
    inert(&["--left-right"]),
    inert(&["--left-only"]),
    inert(&["--right-only"]),
    inert(&["--cherry"]),
    inert(&["--count"]),
    inert(&["--cherry-mark"]),
    inert(&["--cherry-pick"]),
    inert(&["--objects"]),
    inert(&["--objects-edge"]),
    inert(&["--objects-edge-aggressive"]),
    inert(&["--verify-objects"]),
    inert(&["--unpacked"]),
    inert(&["--no-kept-objects"]).may_take(Role::OneOf(&["in-core", "on-disk"])),
    inert(&["-r"]),
    inert(&["-t"]),
    inert(&["-m"]),
    inert(&["-c"]),
    inert(&["--cc"]),
    inert(&["--dd"]),
    writes(
        &["--remerge-diff"],
        "merges again, which writes temporary objects and starts the configured merge drivers",
    ),
    inert(&["--no-diff-merges"]),
    inert(&["--combined-all-paths"]),
    // `remerge` and `r` merge again; `on` and `m` do what the configuration says.
    inert(&["--diff-merges"]).takes(Role::OneOf(&[
        "off",
        "none",
        "first-parent",
        "1",
        "separate",
        "combined",
        "c",
        "dense-combined",
        "cc",
    ])),
    inert(&["-v"]),
    inert(&["--pretty", "--format"]).may_take(Role::Script(format::pretty)),
    inert(&["--expand-tabs"]).may_take(Role::Number),
    inert(&["--no-expand-tabs"]),
    inert(&["--notes", "--show-notes"]).may_take(Role::Text),
    inert(&["--show-notes-by-default"]),
    inert(&["--no-notes"]),
    inert(&["--standard-notes"]),
    inert(&["--no-standard-notes"]),
    runs(&["--show-signature"], "runs gpg, or the program that the configuration names for it"),
    inert(&["--no-show-signature"]),
    inert(&["--show-linear-break"]).may_take(Role::Text),
    inert(&["--oneline"]),
    inert(&["--graph"]),
    inert(&["--no-graph"]),
    inert(&["--encode-email-headers"]),
    inert(&["--no-encode-email-headers"]),
    inert(&["--root"]),
    inert(&["--no-commit-id"]),
    inert(&["--always"]),
    inert(&["--abbrev-commit"]),
    inert(&["--no-abbrev-commit"]),
    inert(&["--full-diff"]),
    inert(&["--show-pulls"]),
    inert(&["--full-history"]),
    inert(&["--relative-date"]),
    inert(&["--date"]).takes_text(),
    inert(&["--log-size"]),
    inert(&["--author"]).takes(Role::Pattern),
    inert(&["--committer"]).takes(Role::Pattern),
    inert(&["--grep-reflog"]).takes(Role::Pattern),
    inert(&["--grep"]).takes(Role::Pattern),
    inert(&["--basic-regexp"]),
    inert(&["-E", "--extended-regexp"]),
    inert(&["-i", "--regexp-ignore-case"]),
    inert(&["-F", "--fixed-strings"]),
    inert(&["-P", "--perl-regexp"]),
    inert(&["--all-match"]),
    inert(&["--invert-grep"]),
    inert(&["--encoding"]).takes_text(),
    inert(&["--reverse"]),
    inert(&["--children"]),
    inert(&["--ignore-missing"]),
    unread(&["--exclude-promisor-objects"], "is about objects that git would fetch"),
    waits(&["--stdin"], "reads revisions and paths from standard input"),
];

/// What lists of refs share (`for-each-ref`, `branch`, `tag`).
pub(super) const REF_LIST: &[Flag] = &[
    // Git takes the next word for the commit when there is one; as an operand it is a pattern here, and as harmless.
    inert(&["--contains", "--no-contains", "--with", "--without", "--merged", "--no-merged"])
        .may_take(Role::Text),
    inert(&["--points-at"]).takes_text(),
    inert(&["--omit-empty", "--no-omit-empty"]),
    inert(&["--sort"]).takes(Role::Script(format::sort_key)),
    inert(&["--no-sort"]),
    inert(&["--format"]).takes(Role::Script(format::reference)),
    inert(&["--no-format"]),
    inert(&["-i", "--ignore-case", "--no-ignore-case"]),
    COLOR,
    inert(&["--no-color"]),
];
