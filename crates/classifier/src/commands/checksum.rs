//! Checksums

use crate::spec::{CommandSpec, Operands, inert, reads_listed};

const LISTED: &str = "reads the files that the list names";

pub(super) static SUMS: CommandSpec = CommandSpec {
    names: &["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum"],
    about: "prints checksums of files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-b", "--binary"]),
        reads_listed(&["-c", "--check"], LISTED).takes_none(),
        inert(&["--tag"]),
        inert(&["-t", "--text"]),
        inert(&["-z", "--zero"]),
        inert(&["--ignore-missing"]),
        inert(&["--quiet"]),
        inert(&["--status"]),
        inert(&["--strict"]),
        inert(&["-w", "--warn"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static B2SUM: CommandSpec = CommandSpec {
    names: &["b2sum"],
    about: "prints checksums of files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-b", "--binary"]),
        reads_listed(&["-c", "--check"], LISTED).takes_none(),
        inert(&["-l", "--length"]).takes_number(),
        inert(&["--tag"]),
        inert(&["-t", "--text"]),
        inert(&["-z", "--zero"]),
        inert(&["--ignore-missing"]),
        inert(&["--quiet"]),
        inert(&["--status"]),
        inert(&["--strict"]),
        inert(&["-w", "--warn"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static CKSUM: CommandSpec = CommandSpec {
    names: &["cksum"],
    about: "prints checksums of files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-a", "--algorithm"]).takes_text(),
        reads_listed(&["-c", "--check"], LISTED).takes_none(),
        inert(&["-l", "--length"]).takes_number(),
        inert(&["--tag"]),
        inert(&["--untagged"]),
        inert(&["-b"]),
        inert(&["-t"]),
        inert(&["-z", "--zero"]),
        inert(&["--ignore-missing"]),
        inert(&["--quiet"]),
        inert(&["--status"]),
        inert(&["--strict"]),
        inert(&["-w", "--warn"]),
        inert(&["--debug"]),
        inert(&["--base64"]).elsewhere(),
        inert(&["--raw"]).elsewhere(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static SUM: CommandSpec = CommandSpec {
    names: &["sum"],
    about: "prints checksums of files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-r"]),
        inert(&["-s", "--sysv"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

/// A script of perl's own distribution, which macOS has instead of the others.
pub(super) static SHASUM: CommandSpec = CommandSpec {
    names: &["shasum"],
    about: "prints checksums of files",
    checked: "perl 5.36, shasum 6.02",
    flags: &[
        inert(&["-a", "--algorithm"]).takes_number(),
        inert(&["-b", "--binary"]),
        reads_listed(&["-c", "--check"], LISTED).takes_none(),
        inert(&["-t", "--text"]),
        inert(&["-U", "--UNIVERSAL"]),
        inert(&["-0", "--01"]),
        inert(&["--tag"]),
        inert(&["-q", "--quiet"]),
        inert(&["-s", "--status"]),
        inert(&["-w", "--warn"]),
        inert(&["--strict"]),
        inert(&["--ignore-missing"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-v", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};
