//! `du`

use crate::spec::{CommandSpec, Operands, Role, Rule, Tweak, follows_links, inert, reads, reads_listed};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["du"],
    about: "sums the sizes of files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-0", "--null"]),
        inert(&["-a", "--all"]),
        inert(&["--apparent-size"]),
        inert(&["-B", "--block-size"]).takes_text(),
        inert(&["-b", "--bytes"]),
        inert(&["-c", "--total"]),
        follows_links(&["-D", "--dereference-args"], "follows symlinks among its operands"),
        inert(&["-d", "--max-depth"]).takes_number(),
        reads_listed(&["--files0-from"], "looks at the files that the list names"),
        follows_links(&["-H"], "follows symlinks among its operands"),
        inert(&["-h", "--human-readable"]),
        inert(&["--inodes"]),
        inert(&["-k"]),
        follows_links(&["-L", "--dereference"], "follows every symlink"),
        inert(&["-l", "--count-links"]),
        inert(&["-m"]),
        inert(&["-P", "--no-dereference"]),
        inert(&["-S", "--separate-dirs"]),
        inert(&["--si"]),
        inert(&["-s", "--summarize"]),
        inert(&["-t", "--threshold"]).takes_number(),
        inert(&["--time"]).may_take(Role::OneOf(&["atime", "access", "use", "ctime", "status"])),
        inert(&["--time-style"]).takes_text(),
        reads(&["-X", "--exclude-from"], "reads patterns from the file"),
        inert(&["--exclude"]).takes(Role::Pattern),
        inert(&["-x", "--one-file-system"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        // BSD: apparent sizes, gigabytes, a pattern of names to leave out.
        inert(&["-A"]).elsewhere(),
        inert(&["-g"]).elsewhere(),
        inert(&["-I"]).takes(Role::ReadPath).elsewhere(),
    ],
    operands: Operands::FILES_OR_HERE,
    rules: &[Rule::When(&["--files0-from"], Tweak::NeverStdin)],
    ..CommandSpec::JUDGED
};
