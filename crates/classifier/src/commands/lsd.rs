//! `lsd`

use crate::condition::Condition;
use crate::spec::{CommandSpec, Operands, Role, follows_links, inert, reads};

const WHEN: Role = Role::OneOf(&["always", "auto", "never"]);

/// It reads the user's own settings, which choose colours and columns.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["lsd"],
    about: "lists directories",
    checked: "lsd 0.23.1, and the flags of 1.2.0",
    flags: &[
        inert(&["-a", "--all"]),
        inert(&["-A", "--almost-all"]),
        inert(&["--color"]).takes(WHEN),
        inert(&["--icon"]).takes(WHEN),
        inert(&["--icon-theme"]).takes(Role::OneOf(&["fancy", "unicode"])),
        inert(&["-F", "--classify"]),
        inert(&["-l", "--long"]),
        inert(&["--ignore-config"]),
        reads(&["--config-file"], "reads settings from the file"),
        inert(&["-1", "--oneline"]),
        inert(&["-R", "--recursive"]),
        inert(&["-h", "--human-readable"]),
        inert(&["--tree"]),
        inert(&["--depth"]).takes_number(),
        inert(&["-d", "--directory-only"]),
        inert(&["--permission"]).takes_text(),
        inert(&["--size"]).takes(Role::OneOf(&["default", "short", "bytes"])),
        inert(&["--total-size"]),
        inert(&["--date"]).takes_text(),
        inert(&["-t", "--timesort"]),
        inert(&["-S", "--sizesort"]),
        inert(&["-X", "--extensionsort"]),
        inert(&["-G", "--gitsort"]).needs(Condition::ReadsConfined).elsewhere(),
        inert(&["-v", "--versionsort"]),
        inert(&["--sort"]).takes_text(),
        inert(&["-U", "--no-sort"]),
        inert(&["-r", "--reverse"]),
        inert(&["--group-dirs"]).takes(Role::OneOf(&["none", "first", "last"])),
        inert(&["--group-directories-first"]),
        inert(&["--blocks"]).takes_text(),
        inert(&["--classic"]),
        inert(&["--no-symlink"]),
        inert(&["-I", "--ignore-glob"]).takes(Role::Pattern),
        inert(&["-i", "--inode"]),
        inert(&["-g", "--git"]).needs(Condition::ReadsConfined).elsewhere(),
        follows_links(&["-L", "--dereference"], "looks at what symlinks lead to"),
        inert(&["-Z", "--context"]),
        inert(&["--hyperlink"]).takes(WHEN),
        inert(&["--header"]),
        inert(&["--truncate-owner-after"]).takes_number().elsewhere(),
        inert(&["--truncate-owner-marker"]).takes_text().elsewhere(),
        inert(&["--system-protected"]).elsewhere(),
        inert(&["-N", "--literal"]).elsewhere(),
        inert(&["--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES_OR_HERE,
    ..CommandSpec::JUDGED
};
