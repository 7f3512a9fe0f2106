//! Refs and revisions by name: `for-each-ref`, `show-ref`, `symbolic-ref`, `check-ref-format`, `rev-parse`.

use super::shared::{ABBREV, BASE, HELP, REF_LIST, REVISIONS_AND_PATHS, rows};
use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, inert, reads, runs, waits, writes};

pub(super) const FOR_EACH_REF: CommandSpec = CommandSpec {
    names: &["for-each-ref"],
    about: "lists refs",
    flags: rows!(
        &[
            inert(&["-s", "--shell", "--no-shell"]),
            inert(&["-p", "--perl", "--no-perl"]),
            inert(&["--python", "--no-python"]),
            inert(&["--tcl", "--no-tcl"]),
            inert(&["--count"]).takes_number(),
            inert(&["--no-count"]),
            inert(&["--exclude"]).takes(Role::Pattern),
            inert(&["--no-exclude"]),
            inert(&["--no-points-at"]),
            inert(&["--stdin"]),
            inert(&["--no-stdin"]),
            inert(&["--include-root-refs", "--no-include-root-refs"]),
            inert(&["--start-after"]).takes_text().elsewhere(),
        ],
        REF_LIST,
        HELP
    ),
    operands: Operands::TEXTS,
    rules: &[Rule::When(&["--stdin"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const SHOW_REF: CommandSpec = CommandSpec {
    names: &["show-ref"],
    about: "lists refs with their objects",
    flags: rows!(
        &[
            inert(&["--tags", "--no-tags"]),
            inert(&["--branches", "--no-branches", "--heads", "--no-heads"]),
            inert(&["--exists", "--no-exists"]),
            inert(&["--verify", "--no-verify"]),
            inert(&["--head", "--no-head"]),
            inert(&["-d", "--dereference", "--no-dereference"]),
            inert(&["-s", "--hash"]).may_take(Role::Number),
            inert(&["--no-hash"]),
            ABBREV,
            inert(&["--no-abbrev"]),
            inert(&["-q", "--quiet", "--no-quiet"]),
            inert(&["--exclude-existing"]).may_take(Role::Pattern),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    rules: &[Rule::When(&["--exclude-existing"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const SYMBOLIC_REF: CommandSpec = CommandSpec {
    names: &["symbolic-ref"],
    about: "shows where a symbolic ref points",
    flags: rows!(
        &[
            inert(&["-q", "--quiet", "--no-quiet"]),
            writes(&["-d", "--delete", "--no-delete"], "deletes the ref"),
            inert(&["--short", "--no-short"]),
            inert(&["--recurse", "--no-recurse"]),
            writes(&["-m"], "is the reason for a change").takes_text(),
        ],
        HELP
    ),
    operands: Operands::at_most(&[Role::Text], "a second word is where the ref shall point"),
    ..BASE
};

pub(super) const CHECK_REF_FORMAT: CommandSpec = CommandSpec {
    names: &["check-ref-format"],
    about: "tells whether a text may name a ref",
    flags: rows!(
        &[
            inert(&["--branch"]),
            inert(&["--normalize", "--print"]),
            inert(&["--allow-onelevel", "--no-allow-onelevel"]),
            inert(&["--refspec-pattern"]),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    ..BASE
};

/// `rev-parse` echoes the options that it does not know; here they are held back. It looks whether an operand that is no
/// revision is a file.
pub(super) const REV_PARSE: CommandSpec = CommandSpec {
    names: &["rev-parse"],
    about: "shows what revisions and places of the repository are",
    flags: rows!(
        &[
            waits(&["--parseopt"], "reads a description of options from standard input"),
            inert(&["--sq-quote"]),
            inert(&["--local-env-vars"]),
            reads(&["--resolve-git-dir"], "looks whether this is a repository"),
            inert(&["--git-path"]).takes_text(),
            inert(&["--path-format"]).may_take(Role::OneOf(&["absolute", "relative"])),
            inert(&["--default"]).takes_text(),
            inert(&["--prefix"]).takes_text(),
            inert(&["--revs-only"]),
            inert(&["--no-revs"]),
            inert(&["--flags"]),
            inert(&["--no-flags"]),
            inert(&["--verify"]),
            inert(&["-q", "--quiet"]),
            inert(&["--output-object-format"]).may_take(Role::Text),
            inert(&["--short"]).may_take(Role::Number),
            inert(&["--sq"]),
            inert(&["--not"]),
            inert(&["--symbolic"]),
            inert(&["--symbolic-full-name"]),
            inert(&["--abbrev-ref"]).may_take(Role::OneOf(&["strict", "loose"])),
            inert(&["--all"]),
            inert(&["--disambiguate"]).may_take(Role::Text),
            inert(&["--bisect"]),
            inert(&["--branches", "--tags", "--remotes", "--glob"]).may_take(Role::Pattern),
            inert(&["--exclude"]).may_take(Role::Pattern),
            inert(&["--exclude-hidden"]).may_take(Role::Text),
            inert(&["--show-toplevel"]),
            runs(
                &["--show-superproject-working-tree"],
                "starts git in the directory above, whose configuration then counts",
            ),
            inert(&["--show-prefix"]),
            inert(&["--show-cdup"]),
            inert(&["--git-dir", "--absolute-git-dir"]),
            inert(&["--git-common-dir"]),
            inert(&["--is-inside-git-dir"]),
            inert(&["--is-inside-work-tree"]),
            inert(&["--is-bare-repository"]),
            inert(&["--is-shallow-repository"]),
            inert(&["--shared-index-path"]),
            inert(&["--since", "--after", "--before", "--until"]).may_take(Role::Text),
            inert(&["--show-object-format"]).may_take(Role::Text),
            inert(&["--show-ref-format"]),
        ],
        HELP
    ),
    operands: REVISIONS_AND_PATHS,
    ..BASE
};
