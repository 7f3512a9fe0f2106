//! Small readers and filters: counts, packs, names, text from standard input, and git's words about itself.

use super::shared::{BASE, HELP, rows};
use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, inert, reads, runs};

/// Reads standard input only, and prints to standard output only.
const FILTER: &[Rule] = &[Rule::Unless(&[], Tweak::AlwaysStdin)];

pub(super) const COUNT_OBJECTS: CommandSpec = CommandSpec {
    names: &["count-objects"],
    about: "counts objects and the room they take",
    flags: rows!(
        &[
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["-H", "--human-readable", "--no-human-readable"]),
        ],
        HELP
    ),
    ..BASE
};

pub(super) const CHECK_MAILMAP: CommandSpec = CommandSpec {
    names: &["check-mailmap"],
    about: "shows the usual name of a contributor",
    flags: rows!(
        &[
            inert(&["--stdin"]),
            inert(&["--no-stdin"]),
            reads(&["--mailmap-file"], "reads names from the file"),
            inert(&["--no-mailmap-file"]),
            inert(&["--mailmap-blob"]).takes_text(),
            inert(&["--no-mailmap-blob"]),
        ],
        HELP
    ),
    operands: Operands::TEXTS,
    rules: &[Rule::When(&["--stdin"], Tweak::AlwaysStdin)],
    ..BASE
};

pub(super) const SHOW_INDEX: CommandSpec = CommandSpec {
    names: &["show-index"],
    about: "shows the index of a pack",
    flags: rows!(&[inert(&["--object-format"]).takes_text(), inert(&["--no-object-format"])], HELP),
    rules: FILTER,
    ..BASE
};

pub(super) const GET_TAR_COMMIT_ID: CommandSpec = CommandSpec {
    names: &["get-tar-commit-id"],
    about: "shows the commit that an archive was made of",
    flags: HELP,
    rules: FILTER,
    ..BASE
};

pub(super) const PATCH_ID: CommandSpec = CommandSpec {
    names: &["patch-id"],
    about: "names a patch by its content",
    flags: rows!(&[inert(&["--stable", "--unstable", "--verbatim"])], HELP),
    rules: FILTER,
    ..BASE
};

pub(super) const STRIPSPACE: CommandSpec = CommandSpec {
    names: &["stripspace"],
    about: "removes needless white space from text",
    flags: rows!(&[inert(&["-s", "--strip-comments"]), inert(&["-c", "--comment-lines"])], HELP),
    rules: FILTER,
    ..BASE
};

pub(super) const COLUMN: CommandSpec = CommandSpec {
    names: &["column"],
    about: "sets lines in columns",
    flags: rows!(
        &[
            inert(&["--command"]).takes_text(),
            inert(&["--no-command"]),
            inert(&["--mode"]).may_take(Role::Text),
            inert(&["--no-mode"]),
            inert(&["--raw-mode", "--width", "--padding"]).takes_number(),
            inert(&["--no-raw-mode", "--no-width", "--no-padding"]),
            inert(&["--indent", "--nl"]).takes_text(),
            inert(&["--no-indent", "--no-nl"]),
        ],
        HELP
    ),
    rules: FILTER,
    ..BASE
};

pub(super) const VERSION: CommandSpec = CommandSpec {
    names: &["version"],
    about: "shows git's version",
    flags: rows!(&[inert(&["--build-options", "--no-build-options"])], HELP),
    ..BASE
};

/// Lists are printed; a word opens the manual page about it.
pub(super) const HELP_COMMAND: CommandSpec = CommandSpec {
    names: &["help"],
    about: "lists git's commands and guides",
    flags: rows!(
        &[
            inert(&["-a", "--all"]),
            // Looks for programs whose names begin with `git-` in every directory of `PATH`, and reads aliases.
            inert(&["--external-commands", "--no-external-commands"]),
            inert(&["--aliases", "--no-aliases"]),
            inert(&["-v", "--verbose", "--no-verbose"]),
            inert(&["--exclude-guides", "--no-exclude-guides"]),
            inert(&["--config-for-completion", "--config-sections-for-completion"]),
            inert(&["-g", "--guides"]),
            inert(&["-c", "--config"]),
            inert(&["--user-interfaces", "--developer-interfaces"]),
            runs(&["-m", "--man", "--no-man"], "opens the manual page in a viewer"),
            runs(&["-w", "--web", "--no-web"], "opens a browser"),
            runs(&["-i", "--info", "--no-info"], "opens the info page in a viewer"),
        ],
        HELP
    ),
    operands: Operands::at_most(&[], "opens the manual page in a viewer"),
    ..BASE
};
