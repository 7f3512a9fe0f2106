//! `tar`

use crate::finding::Code;
use crate::spec::{
    CommandSpec, Flag, Operands, Role, Rule, Syntax, Tweak, inert, network, reads, reads_listed, runs,
    unread, waits, writes,
};

/// Only the listing form. Even that starts a decompressor for a compressed archive, whatever flags are given, so the
/// archive's name must say that it is not compressed; one that lies only makes tar start the system's own `gzip -d`.
pub(super) static SPEC: CommandSpec = CommandSpec {
    names: &["tar", "gtar"],
    about: "lists archives",
    checked: "GNU tar 1.34",
    syntax: Syntax::GNU.bare_bundle(),
    flags: FLAGS,
    operands: Operands::all(Role::Pattern),
    rules: &[
        Rule::Unless(
            &["-t"],
            Tweak::Refuse(Code::FlagWrites, "only the listing of an archive (t) writes nothing"),
        ),
        Rule::Unless(&["-f"], Tweak::AlwaysStdin),
    ],
    ..CommandSpec::JUDGED
};

/// An archive that tar opens as a local file and reads without a decompressor.
fn plain_archive(name: &str) -> Result<(), &'static str> {
    if name.contains(':') {
        Err("a name with a colon is an archive on another host")
    } else if name.strip_suffix(".tar").is_some() || name == "-" {
        // On standard input tar only complains of a compressed archive.
        Ok(())
    } else {
        Err("a compressed archive makes tar start a decompressor; only `.tar` says that it is not compressed")
    }
}

const FILTER: &str = "runs a compression program";
const CHANGES: &str = "changes an archive or extracts files";
const EXTRACTION: &str = "decides how files are written or removed";

const FLAGS: &[Flag] = &[
    // Main operation mode.
    inert(&["-t", "--list"]),
    writes(&["-A", "--catenate", "--concatenate"], CHANGES),
    writes(&["-c", "--create"], CHANGES),
    writes(&["--delete"], CHANGES),
    unread(&["-d", "--diff", "--compare"], "opens the files that the archive names, which may lie anywhere"),
    writes(&["-r", "--append"], CHANGES),
    inert(&["--test-label"]),
    writes(&["-u", "--update"], CHANGES),
    writes(&["-x", "--extract", "--get"], CHANGES),
    // Operation modifiers.
    inert(&["--check-device"]),
    writes(&["-g", "--listed-incremental"], "updates the snapshot file").takes(Role::WritePath),
    inert(&["-G", "--incremental"]),
    inert(&["--hole-detection"]).takes(Role::OneOf(&["raw", "seek"])),
    inert(&["--ignore-failed-read"]),
    inert(&["--level"]).takes_number(),
    inert(&["--no-check-device"]),
    inert(&["--no-seek"]),
    inert(&["-n", "--seek"]),
    inert(&["--occurrence"]).may_take(Role::Number),
    inert(&["--sparse-version"]).takes_number(),
    inert(&["-S", "--sparse"]),
    // Local file name selection.
    reads(&["--add-file"], "adds the file"),
    reads(&["-C", "--directory"], "goes to the directory"),
    inert(&["--exclude"]).takes(Role::Pattern),
    inert(&["--exclude-backups"]),
    inert(&["--exclude-caches"]),
    inert(&["--exclude-caches-all"]),
    inert(&["--exclude-caches-under"]),
    reads(&["--exclude-ignore"], "reads patterns from a file in each directory"),
    reads(&["--exclude-ignore-recursive"], "reads patterns from a file in each directory"),
    inert(&["--exclude-tag"]).takes(Role::Pattern),
    inert(&["--exclude-tag-all"]).takes(Role::Pattern),
    inert(&["--exclude-tag-under"]).takes(Role::Pattern),
    inert(&["--exclude-vcs"]),
    inert(&["--exclude-vcs-ignores"]),
    inert(&["--no-null"]),
    inert(&["--no-recursion"]),
    inert(&["--no-unquote"]),
    inert(&["--no-verbatim-files-from"]),
    inert(&["--null"]),
    inert(&["--recursion"]),
    reads_listed(&["-T", "--files-from"], "the file may hold options too, `--checkpoint-action` among them"),
    inert(&["--unquote"]),
    inert(&["--verbatim-files-from"]),
    reads(&["-X", "--exclude-from"], "reads patterns from the file"),
    // File name matching options.
    inert(&["--anchored"]),
    inert(&["--ignore-case"]),
    inert(&["--no-anchored"]),
    inert(&["--no-ignore-case"]),
    inert(&["--no-wildcards"]),
    inert(&["--no-wildcards-match-slash"]),
    inert(&["--wildcards"]),
    inert(&["--wildcards-match-slash"]),
    // Overwrite control.
    writes(&["--keep-directory-symlink"], EXTRACTION),
    writes(&["--keep-newer-files"], EXTRACTION),
    writes(&["-k", "--keep-old-files"], EXTRACTION),
    writes(&["--no-overwrite-dir"], EXTRACTION),
    writes(&["--one-top-level"], EXTRACTION).may_take(Role::WritePath),
    writes(&["--overwrite"], EXTRACTION),
    writes(&["--overwrite-dir"], EXTRACTION),
    writes(&["--recursive-unlink"], EXTRACTION),
    writes(&["--remove-files"], EXTRACTION),
    writes(&["--skip-old-files"], EXTRACTION),
    writes(&["-U", "--unlink-first"], EXTRACTION),
    writes(&["-W", "--verify"], EXTRACTION),
    // Select output stream.
    inert(&["--ignore-command-error"]),
    inert(&["--no-ignore-command-error"]),
    inert(&["-O", "--to-stdout"]),
    runs(&["--to-command"], "runs the command for every file").takes(Role::Program),
    // Handling of file attributes.
    writes(&["--atime-preserve"], "sets the times of files that were read").may_take(Role::Text),
    inert(&["--clamp-mtime"]),
    inert(&["--delay-directory-restore"]),
    inert(&["--group"]).takes_text(),
    reads(&["--group-map"], "reads names from the file"),
    inert(&["--mode"]).takes_text(),
    unread(&["--mtime"], "takes the time of a file, or a date that may name a time zone file").takes_text(),
    inert(&["-m", "--touch"]),
    inert(&["--no-delay-directory-restore"]),
    inert(&["--no-same-owner"]),
    inert(&["--no-same-permissions"]),
    inert(&["--numeric-owner"]),
    inert(&["--owner"]).takes_text(),
    reads(&["--owner-map"], "reads names from the file"),
    inert(&["-p", "--preserve-permissions", "--same-permissions"]),
    inert(&["--same-owner"]),
    inert(&["--sort"]).takes(Role::OneOf(&["none", "name", "inode"])),
    inert(&["-s", "--preserve-order", "--same-order"]),
    inert(&["--preserve"]).elsewhere(),
    // Handling of extended file attributes.
    inert(&["--acls"]),
    inert(&["--no-acls"]),
    inert(&["--no-selinux"]),
    inert(&["--no-xattrs"]),
    inert(&["--selinux"]),
    inert(&["--xattrs"]),
    inert(&["--xattrs-exclude"]).takes(Role::Pattern),
    inert(&["--xattrs-include"]).takes(Role::Pattern),
    // Device selection and switching.
    inert(&["--force-local"]),
    inert(&["-f", "--file"]).takes(Role::NamedPath(plain_archive)),
    runs(&["-F", "--info-script", "--new-volume-script"], "runs the script at the end of each volume")
        .takes(Role::Program),
    waits(&["-L", "--tape-length"], "asks for the next volume on the terminal").takes_number(),
    waits(&["-M", "--multi-volume"], "asks for the next volume on the terminal"),
    runs(&["--rmt-command"], "runs the program").takes(Role::Program),
    runs(&["--rsh-command"], "runs the program").takes(Role::Program),
    writes(&["--volno-file"], "updates the volume number in the file").takes(Role::WritePath),
    // Device blocking.
    inert(&["-b", "--blocking-factor"]).takes_number(),
    inert(&["-B", "--read-full-records"]),
    inert(&["-i", "--ignore-zeros"]),
    inert(&["--record-size"]).takes_number(),
    // Archive format selection.
    inert(&["-H", "--format"]).takes(Role::OneOf(&["gnu", "oldgnu", "pax", "posix", "ustar", "v7"])),
    inert(&["--old-archive", "--portability"]),
    unread(&["--pax-option"], "a header may name a path").takes_text(),
    inert(&["--posix"]),
    inert(&["-V", "--label"]).takes(Role::Pattern),
    // Compression options.
    runs(&["-a", "--auto-compress"], FILTER),
    runs(&["-I", "--use-compress-program"], FILTER).takes(Role::Program),
    runs(&["-j", "--bzip2"], FILTER),
    runs(&["-J", "--xz"], FILTER),
    runs(&["--lzip"], FILTER),
    runs(&["--lzma"], FILTER),
    runs(&["--lzop"], FILTER),
    inert(&["--no-auto-compress"]),
    runs(&["--zstd"], FILTER),
    runs(&["-z", "--gzip", "--gunzip", "--ungzip"], FILTER),
    runs(&["-Z", "--compress", "--uncompress"], FILTER),
    // Local file selection.
    writes(&["--backup"], EXTRACTION).may_take(Role::Text),
    inert(&["--hard-dereference"]),
    inert(&["-h", "--dereference"]),
    inert(&["-K", "--starting-file"]).takes_text(),
    unread(&["--newer-mtime"], "a date may name a time zone file").takes_text(),
    unread(&["-N", "--newer", "--after-date"], "takes the time of a file, or a date that may name one")
        .takes_text(),
    inert(&["--one-file-system"]),
    inert(&["-P", "--absolute-names"]),
    writes(&["--suffix"], EXTRACTION).takes_text(),
    // File name transformations: a substitution of sed's, which has no flag that runs or writes.
    inert(&["--strip-components"]).takes_number(),
    inert(&["--transform", "--xform"]).takes_text(),
    // Informative output.
    inert(&["--checkpoint"]).may_take(Role::Number),
    runs(&["--checkpoint-action"], "may be `exec=` and a command").takes(Role::Program),
    inert(&["--full-time"]),
    writes(&["--index-file"], "writes the listing into the file").takes(Role::WritePath),
    inert(&["-l", "--check-links"]),
    inert(&["--no-quote-chars"]).takes_text(),
    inert(&["--quote-chars"]).takes_text(),
    inert(&["--quoting-style"]).takes(Role::OneOf(&[
        "literal",
        "shell",
        "shell-always",
        "shell-escape",
        "shell-escape-always",
        "c",
        "c-maybe",
        "escape",
        "locale",
        "clocale",
    ])),
    inert(&["-R", "--block-number"]),
    inert(&["--show-defaults"]).ends(),
    inert(&["--show-omitted-dirs"]),
    inert(&["--show-snapshot-field-ranges"]).ends(),
    inert(&["--show-transformed-names", "--show-stored-names"]),
    inert(&["--totals"]).may_take(Role::Text),
    inert(&["--utc"]),
    inert(&["-v", "--verbose"]),
    inert(&["--warning"]).takes_text(),
    waits(&["-w", "--interactive", "--confirmation"], "asks for confirmation"),
    // Compatibility and other options.
    inert(&["-o"]),
    inert(&["-?", "--help"]).ends(),
    inert(&["--restrict"]),
    inert(&["--usage"]).ends(),
    inert(&["--version"]).ends(),
    // BSD tar: `-z` and the rest mean the same; these would reach further.
    network(&["--options"], "BSD tar hands it to a filter module").takes_text().elsewhere(),
    runs(&["--cd"], "BSD tar goes to a directory, which is not followed").takes_text().elsewhere(),
];
