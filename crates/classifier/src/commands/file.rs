//! `file`

use crate::spec::{CommandSpec, Operands, Role, discloses, follows_links, inert, reads_listed, runs, writes};

pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["file"],
    about: "guesses what files hold",
    checked: "file 5.44",
    flags: &[
        inert(&["-v", "--version"]).ends(),
        reads_listed(&["-m", "--magic-file"], "reads the magic files of a list joined by colons"),
        runs(&["-z", "--uncompress"], "may run decompressors to look inside"),
        runs(&["-Z", "--uncompress-noreport"], "may run decompressors to look inside"),
        inert(&["-b", "--brief"]),
        inert(&["-c", "--checking-printout"]),
        inert(&["-e", "--exclude"]).takes_text(),
        inert(&["--exclude-quiet"]).takes_text(),
        reads_listed(&["-f", "--files-from"], "reads the files that the list names"),
        inert(&["-F", "--separator"]).takes_text(),
        inert(&["-i", "--mime"]),
        inert(&["--apple"]),
        inert(&["--extension"]),
        inert(&["--mime-type"]),
        inert(&["--mime-encoding"]),
        inert(&["-k", "--keep-going"]),
        inert(&["-l", "--list"]),
        follows_links(&["-L", "--dereference"], "follows symlinks among its operands"),
        inert(&["-h", "--no-dereference"]),
        inert(&["-n", "--no-buffer"]),
        inert(&["-N", "--no-pad"]),
        inert(&["-0", "--print0"]),
        writes(&["-p", "--preserve-date"], "sets the access times of the files that it reads"),
        inert(&["-P", "--parameter"]).takes_text(),
        inert(&["-r", "--raw"]),
        discloses(&["-s", "--special-files"], "reads devices, which may hold what other users wrote"),
        runs(&["-S", "--no-sandbox"], "turns off its own sandbox, which holds back a flaw in its parsers"),
        writes(&["-C", "--compile"], "writes a compiled magic file"),
        inert(&["-d", "--debug"]),
        inert(&["--help"]).ends(),
        // macOS.
        inert(&["-I"]).elsewhere(),
        inert(&["-E"]).elsewhere(),
    ],
    operands: Operands::all(Role::ReadPath),
    ..CommandSpec::JUDGED
};
