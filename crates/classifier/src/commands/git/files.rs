//! What looks at files, index and objects by name: `ls-files`, `ls-tree`, `cat-file`, `hash-object`, `check-ignore`,
//! `check-attr`.

use super::log::PRINTS_NAMES;
use super::shared::{ABBREV, BASE, HELP, REVISIONS_AND_PATHS, rows};
use crate::condition::Condition;
use crate::finding::Code;
use crate::spec::{
    CommandSpec, Operands, Prints, Role, Rule, Tweak, inert, reads, reads_listed, runs, writes,
};

pub(super) const LS_FILES: CommandSpec = CommandSpec {
    names: &["ls-files"],
    about: "lists tracked and other files",
    flags: rows!(
        &[
            inert(&["-z"]),
            inert(&["-t"]),
            inert(&["-v"]),
            inert(&["-f"]),
            inert(&["-c", "--cached", "--no-cached"]),
            inert(&["-d", "--deleted", "--no-deleted"]),
            inert(&["-m", "--modified", "--no-modified"]),
            inert(&["-o", "--others", "--no-others"]),
            inert(&["-i", "--ignored", "--no-ignored"]),
            inert(&["-s", "--stage", "--no-stage"]),
            inert(&["-k", "--killed", "--no-killed"]),
            inert(&["--directory", "--no-directory"]),
            inert(&["--eol", "--no-eol"]),
            inert(&["--empty-directory", "--no-empty-directory"]),
            inert(&["-u", "--unmerged", "--no-unmerged"]),
            inert(&["--resolve-undo", "--no-resolve-undo"]),
            inert(&["-x", "--exclude"]).takes(Role::Pattern),
            reads(&["-X", "--exclude-from"], "reads patterns from the file"),
            // A name that is looked for in every directory on the way, `../x` included.
            reads(&["--exclude-per-directory"], "reads patterns from a file of this name in every directory"),
            inert(&["--no-exclude-per-directory"]),
            inert(&["--exclude-standard"]),
            inert(&["--full-name"]),
            runs(&["--recurse-submodules"], "starts git in submodules, whose own configuration then counts"),
            inert(&["--no-recurse-submodules"]),
            inert(&["--error-unmatch", "--no-error-unmatch"]),
            inert(&["--with-tree"]).takes_text(),
            inert(&["--no-with-tree"]),
            ABBREV,
            inert(&["--no-abbrev"]),
            inert(&["--debug", "--no-debug"]),
            inert(&["--deduplicate", "--no-deduplicate"]),
            inert(&["--sparse", "--no-sparse"]),
            inert(&["--format"]).takes_text(),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    rules: &[Rule::When(
        &["-t", "-v", "-f", "-s", "-k", "--eol", "-u", "--resolve-undo", "--debug", "--format"],
        Tweak::Prints(Prints::Anything),
    )],
    prints: Prints::PathsInside,
    ..BASE
};

pub(super) const LS_TREE: CommandSpec = CommandSpec {
    names: &["ls-tree"],
    about: "lists what a commit holds",
    flags: rows!(
        &[
            inert(&["-d"]),
            inert(&["-r"]),
            inert(&["-t"]),
            inert(&["-z"]),
            inert(&["-l", "--long"]),
            inert(&["--name-only", "--name-status"]),
            inert(&["--object-only"]),
            inert(&["--full-name", "--no-full-name"]),
            inert(&["--full-tree", "--no-full-tree"]),
            inert(&["--format"]).takes_text(),
            ABBREV,
            inert(&["--no-abbrev"]),
        ],
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    rules: &[Rule::When(&["--name-only"], PRINTS_NAMES)],
    ..BASE
};

pub(super) const CAT_FILE: CommandSpec = CommandSpec {
    names: &["cat-file"],
    about: "shows an object",
    flags: rows!(
        &[
            inert(&["-e"]),
            inert(&["-p"]),
            inert(&["-t"]),
            inert(&["-s"]),
            inert(&["--allow-unknown-type", "--no-allow-unknown-type"]),
            inert(&["--use-mailmap", "--mailmap", "--no-use-mailmap", "--no-mailmap"]),
            inert(&["--batch", "--batch-check", "--batch-command"]).may_take(Role::Text),
            inert(&["-z"]),
            inert(&["-Z"]),
            // Those of other object stores too, which may lie anywhere.
            inert(&["--batch-all-objects"]).needs(Condition::ReadsConfined),
            inert(&["--buffer", "--no-buffer"]),
            inert(&["--follow-symlinks", "--no-follow-symlinks"]),
            inert(&["--unordered", "--no-unordered"]),
            runs(&["--textconv"], "runs the text converters that the configuration names"),
            runs(&["--filters"], "runs the filters that the configuration names"),
            inert(&["--path"]).takes_text(),
            inert(&["--no-path"]),
        ],
        HELP
    ),
    operands: Operands::all(Role::Revision),
    rules: &[Rule::WhenWithout(&["--batch"], &["--batch-all-objects"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const HASH_OBJECT: CommandSpec = CommandSpec {
    names: &["hash-object"],
    about: "prints the name that a file's content has as an object",
    flags: rows!(
        &[
            inert(&["-t"]).takes_text(),
            writes(&["-w"], "writes the object"),
            inert(&["--stdin"]),
            inert(&["--no-stdin"]),
            reads_listed(&["--stdin-paths"], "reads the files that standard input names").takes_none(),
            inert(&["--no-stdin-paths"]),
            inert(&["--filters", "--no-filters"]),
            inert(&["--literally", "--no-literally"]),
            inert(&["--path"]).takes_text(),
            inert(&["--no-path"]),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    rules: &[Rule::When(&["--stdin"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const CHECK_IGNORE: CommandSpec = CommandSpec {
    names: &["check-ignore"],
    about: "tells which files are ignored, and why",
    flags: rows!(
        &[
            inert(&["-q", "--quiet", "--no-quiet"]),
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["--stdin"]),
            inert(&["--no-stdin"]),
            inert(&["-z"]),
            inert(&["-n", "--non-matching", "--no-non-matching"]),
            inert(&["--index", "--no-index"]),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    rules: &[Rule::When(&["--stdin"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const CHECK_ATTR: CommandSpec = CommandSpec {
    names: &["check-attr"],
    about: "shows attributes of files",
    flags: rows!(
        &[
            inert(&["-a", "--all", "--no-all"]),
            inert(&["--cached", "--no-cached"]),
            inert(&["--stdin"]),
            inert(&["--no-stdin"]),
            inert(&["-z"]),
            inert(&["--source"]).takes_text(),
            inert(&["--no-source"]),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    rules: &[Rule::When(&["--stdin"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const FSCK: CommandSpec = CommandSpec {
    names: &["fsck", "fsck-objects"],
    about: "checks the objects of the repository",
    flags: rows!(
        &[
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["--unreachable", "--no-unreachable"]),
            inert(&["--dangling", "--no-dangling"]),
            inert(&["--tags", "--no-tags"]),
            inert(&["--root", "--no-root"]),
            inert(&["--cache", "--no-cache"]),
            inert(&["--reflogs", "--no-reflogs"]),
            inert(&["--full", "--no-full"]),
            inert(&["--connectivity-only", "--no-connectivity-only"]),
            inert(&["--strict", "--no-strict"]),
            writes(&["--lost-found"], "writes what it finds into the repository"),
            inert(&["--no-lost-found"]),
            inert(&["--progress", "--no-progress"]),
            inert(&["--name-objects", "--no-name-objects"]),
            inert(&["--references", "--no-references"]).elsewhere(),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    ..BASE
};

pub(super) const VERIFY_PACK: CommandSpec = CommandSpec {
    names: &["verify-pack"],
    about: "checks packed objects",
    flags: rows!(
        &[
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["-s", "--stat-only", "--no-stat-only"]),
            inert(&["--object-format"]).takes_text(),
            inert(&["--no-object-format"]),
        ],
        HELP
    ),
    operands: Operands::FILES_OR_HERE,
    rules: &[Rule::Unless(&[], Tweak::RefuseOperandsUnder(1, Code::MissingValue, "needs a pack to check"))],
    ..BASE
};
