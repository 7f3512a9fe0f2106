//! `df`

use crate::spec::{CommandSpec, Operands, Role, inert, writes};

/// It reads the kernel's list of mounts and asks each file system for its size.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["df"],
    about: "shows free space",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-a", "--all"]),
        inert(&["-B", "--block-size"]).takes_text(),
        inert(&["-h", "--human-readable"]),
        inert(&["-H", "--si"]),
        inert(&["-i", "--inodes"]),
        inert(&["-k"]),
        inert(&["-l", "--local"]),
        inert(&["--no-sync"]),
        inert(&["--output"]).may_take(Role::ListOf(&[
            "source", "fstype", "itotal", "iused", "iavail", "ipcent", "size", "used", "avail", "pcent",
            "file", "target",
        ])),
        inert(&["-P", "--portability"]),
        writes(&["--sync"], "writes caches to disk first"),
        inert(&["--total"]),
        inert(&["-t", "--type"]).takes_text(),
        inert(&["-T", "--print-type"]),
        inert(&["-x", "--exclude-type"]).takes_text(),
        inert(&["-v"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // BSD: megabytes and gigabytes.
        inert(&["-m"]).elsewhere(),
        inert(&["-g"]).elsewhere(),
    ],
    operands: Operands::FILES_OR_HERE,
    ..CommandSpec::JUDGED
};
