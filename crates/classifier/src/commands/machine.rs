//! Readers of the machine's state: `lsblk`, `lscpu`, `lsmod` and `findmnt`, and of its manual and package lists.
//!
//! They read `/proc`, `/sys` and databases of the system, no file of a user. Those that open sockets or devices for it
//! (`lsusb`, `ss`, `ip`, `lspci`) are refused.

use crate::condition::{Condition, Conditions};
use crate::finding::Code;
use crate::spec::{
    CommandSpec, Operands, Role, Rule, ScriptIssue, Tweak, discloses, inert, reads, runs, unread, waits,
    writes,
};

const UTIL_LINUX: &str = "util-linux 2.38.1";
const SYSROOT: &str = "takes another directory for the root of the system, whose symlinks lead anywhere";

pub(super) static LSBLK: CommandSpec = CommandSpec {
    names: &["lsblk"],
    about: "lists block devices",
    checked: UTIL_LINUX,
    flags: &[
        inert(&["-A", "--noempty"]),
        inert(&["-D", "--discard"]),
        inert(&["-E", "--dedup"]).takes_text(),
        inert(&["-I", "--include"]).takes_number(),
        inert(&["-J", "--json"]),
        inert(&["-M", "--merge"]),
        inert(&["-O", "--output-all"]),
        inert(&["-P", "--pairs"]),
        inert(&["-S", "--scsi"]),
        inert(&["-T", "--tree"]).may_take(Role::Text),
        inert(&["-a", "--all"]),
        inert(&["-b", "--bytes"]),
        inert(&["-d", "--nodeps"]),
        inert(&["-e", "--exclude"]).takes_number(),
        inert(&["-f", "--fs"]),
        inert(&["-i", "--ascii"]),
        inert(&["-l", "--list"]),
        inert(&["-m", "--perms"]),
        inert(&["-n", "--noheadings"]),
        inert(&["-o", "--output"]).takes_text(),
        inert(&["-p", "--paths"]),
        inert(&["-r", "--raw"]),
        inert(&["-s", "--inverse"]),
        inert(&["-t", "--topology"]),
        inert(&["-w", "--width"]).takes_number(),
        inert(&["-x", "--sort"]).takes_text(),
        inert(&["-y", "--shell"]),
        inert(&["-z", "--zoned"]),
        unread(&["--sysroot"], SYSROOT).takes(Role::ReadPath),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES_OR_HERE,
    ..CommandSpec::JUDGED
};

pub(super) static LSCPU: CommandSpec = CommandSpec {
    names: &["lscpu"],
    about: "describes the processors",
    checked: UTIL_LINUX,
    flags: &[
        inert(&["-a", "--all"]),
        inert(&["-b", "--online"]),
        inert(&["-B", "--bytes"]),
        inert(&["-C", "--caches"]).may_take(Role::Text),
        inert(&["-c", "--offline"]),
        inert(&["-J", "--json"]),
        inert(&["-e", "--extended"]).may_take(Role::Text),
        inert(&["-p", "--parse"]).may_take(Role::Text),
        unread(&["-s", "--sysroot"], SYSROOT).takes(Role::ReadPath),
        inert(&["-x", "--hex"]),
        inert(&["-y", "--physical"]),
        inert(&["--output-all"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

pub(super) static LSMOD: CommandSpec = CommandSpec {
    names: &["lsmod"],
    about: "lists modules of the kernel",
    checked: "kmod 30",
    ..CommandSpec::JUDGED
};

/// A tag (`LABEL=…`) makes it look into every block device, and write down what it found in `/run/blkid/blkid.tab`.
fn no_tag(text: &str) -> Result<(), &'static str> {
    if text.contains('=') {
        Err("a tag is looked for on every block device, and what is found is written into a cache")
    } else {
        Ok(())
    }
}

fn plain_source(text: &str) -> Result<(), ScriptIssue> {
    no_tag(text).map_err(|why| ScriptIssue { code: Code::BadValue, ..ScriptIssue::new(0, text.len(), why) })
}

const SOURCE: Role = Role::NamedPath(no_tag);

pub(super) static FINDMNT: CommandSpec = CommandSpec {
    names: &["findmnt"],
    about: "lists mounted file systems",
    checked: UTIL_LINUX,
    flags: &[
        inert(&["-s", "--fstab"]),
        inert(&["-m", "--mtab"]),
        inert(&["-k", "--kernel"]),
        waits(&["-p", "--poll"], "waits for changes").may_take(Role::Text),
        inert(&["-w", "--timeout"]).takes_number(),
        inert(&["-A", "--all"]),
        inert(&["-a", "--ascii"]),
        inert(&["-b", "--bytes"]),
        inert(&["-C", "--nocanonicalize"]),
        inert(&["-c", "--canonicalize"]),
        inert(&["-D", "--df"]),
        inert(&["-d", "--direction"]).takes(Role::OneOf(&["forward", "backward"])),
        writes(&["-e", "--evaluate"], "looks for tags on every block device, and writes a cache of them"),
        reads(&["-F", "--tab-file"], "reads the table from the file"),
        inert(&["-f", "--first-only"]),
        inert(&["-i", "--invert"]),
        inert(&["-J", "--json"]),
        inert(&["-l", "--list"]),
        discloses(&["-N", "--task"], "shows what another process sees").takes_number(),
        inert(&["-n", "--noheadings"]),
        inert(&["-O", "--options"]).takes_text(),
        inert(&["-o", "--output"]).takes_text(),
        inert(&["--output-all"]),
        inert(&["-P", "--pairs"]),
        inert(&["--pseudo"]),
        inert(&["--shadowed"]),
        inert(&["-R", "--submounts"]),
        inert(&["-r", "--raw"]),
        inert(&["--real"]),
        inert(&["-S", "--source"]).takes(Role::Script(plain_source)),
        reads(&["-T", "--target"], "looks at the path").takes(SOURCE),
        inert(&["--tree"]),
        reads(&["-M", "--mountpoint"], "looks at the path").takes(SOURCE),
        inert(&["-t", "--types"]).takes_text(),
        inert(&["-U", "--uniq"]),
        inert(&["-u", "--notruncate"]),
        inert(&["-v", "--nofsroot"]),
        inert(&["-y", "--shell"]),
        writes(&["-x", "--verify"], "looks for tags on every block device, and writes a cache of them"),
        inert(&["--verbose"]),
        inert(&["--vfs-all"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::all(SOURCE),
    ..CommandSpec::JUDGED
};

const MANPATH: &str = "takes another place for manual pages and their index";

/// The one-line descriptions of manual pages, from the system's index. `man` itself formats pages by running several
/// programs, and is refused.
pub(super) static WHATIS: CommandSpec = CommandSpec {
    names: &["whatis", "apropos"],
    about: "shows the one-line descriptions of manual pages",
    checked: "man-db 2.11.2",
    flags: &[
        inert(&["-d", "--debug"]),
        inert(&["-v", "--verbose"]),
        inert(&["-e", "--exact"]),
        inert(&["-r", "--regex"]),
        inert(&["-w", "--wildcard"]),
        inert(&["-a", "--and"]),
        inert(&["-l", "--long"]),
        reads(&["-C", "--config-file"], "reads its configuration from the file"),
        unread(&["-L", "--locale"], MANPATH).takes_text(),
        unread(&["-m", "--systems"], MANPATH).takes_text(),
        unread(&["-M", "--manpath"], MANPATH).takes_text(),
        inert(&["-s", "--sections", "--section"]).takes_text(),
        inert(&["-?", "--help"]).ends(),
        inert(&["--usage"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    // A word with a slash in it is looked at as a file.
    operands: Operands::all(Role::ProgramName),
    ..CommandSpec::JUDGED
};

const PACKAGES: &str = "changes packages or the package database";
const DATABASE: &str = "takes another place for the package database";
const UNPACKS: &str = "runs `tar` on a package file";

/// The queries. `dpkg` runs `dpkg-query` for most of them, its own program; a pager only on a terminal.
pub(super) static DPKG: CommandSpec = CommandSpec {
    names: &["dpkg"],
    about: "queries the installed packages",
    checked: "dpkg 1.21.22",
    flags: &[
        inert(&["-s", "--status"]),
        inert(&["-p", "--print-avail"]),
        inert(&["-L", "--listfiles"]),
        inert(&["-l", "--list"]),
        inert(&["-S", "--search"]),
        inert(&["--get-selections"]),
        inert(&["--print-architecture"]),
        inert(&["--print-foreign-architectures"]),
        inert(&["--compare-versions"]),
        inert(&["--no-pager"]),
        inert(&["-?", "--help"]).ends(),
        inert(&["--version"]).ends(),
        inert(&["--force-help"]).ends(),
        inert(&["--assert-help"]).ends(),
        writes(&["-i", "--install"], PACKAGES),
        writes(&["--unpack"], PACKAGES),
        writes(&["-A", "--record-avail"], PACKAGES),
        writes(&["--configure"], PACKAGES),
        writes(&["--triggers-only"], PACKAGES),
        writes(&["-r", "--remove"], PACKAGES),
        writes(&["-P", "--purge"], PACKAGES),
        unread(&["-V", "--verify"], "reads every file of the packages"),
        writes(&["--set-selections"], PACKAGES),
        writes(&["--clear-selections"], PACKAGES),
        writes(&["--update-avail"], PACKAGES),
        writes(&["--merge-avail"], PACKAGES),
        writes(&["--clear-avail"], PACKAGES),
        writes(&["--forget-old-unavail"], PACKAGES),
        unread(&["-C", "--audit"], "its effect has not been read"),
        unread(&["--yet-to-unpack"], "its effect has not been read"),
        unread(&["--predep-package"], "its effect has not been read"),
        writes(&["--add-architecture"], PACKAGES),
        writes(&["--remove-architecture"], PACKAGES),
        unread(&["--admindir"], DATABASE).takes(Role::ReadPath),
        unread(&["--root"], DATABASE).takes(Role::ReadPath),
        unread(&["--instdir"], DATABASE).takes(Role::ReadPath),
        runs(&["--pre-invoke"], "runs the command").takes(Role::Program),
        runs(&["--post-invoke"], "runs the command").takes(Role::Program),
        runs(&["--status-logger"], "runs the command").takes(Role::Program),
        writes(&["--log"], "writes a log").takes(Role::WritePath),
        runs(&["-b", "--build"], UNPACKS),
        runs(&["-c", "--contents"], UNPACKS),
        runs(&["-I", "--info"], UNPACKS),
        runs(&["-f", "--field"], UNPACKS),
        runs(&["-x", "--extract"], UNPACKS),
        runs(&["-X", "--vextract"], UNPACKS),
        runs(&["-e", "--control"], UNPACKS),
        runs(&["--ctrl-tarfile"], UNPACKS),
        runs(&["--fsys-tarfile"], UNPACKS),
    ],
    operands: Operands::TEXTS,
    rules: &[Rule::Unless(
        &[
            "-s",
            "-p",
            "-L",
            "-l",
            "-S",
            "--get-selections",
            "--print-architecture",
            "--print-foreign-architectures",
            "--compare-versions",
        ],
        Tweak::Refuse(Code::FlagWrites, "only its queries leave the packages as they are"),
    )],
    conditions: Conditions::NONE.with(Condition::OutputNotTerminal),
    ..CommandSpec::JUDGED
};

pub(super) static DPKG_QUERY: CommandSpec = CommandSpec {
    names: &["dpkg-query"],
    about: "queries the installed packages",
    checked: "dpkg 1.21.22",
    flags: &[
        inert(&["-s", "--status"]),
        inert(&["-p", "--print-avail"]),
        inert(&["-L", "--listfiles"]),
        inert(&["-l", "--list"]),
        inert(&["-W", "--show"]),
        inert(&["-S", "--search"]),
        inert(&["--control-list"]),
        inert(&["--control-show"]),
        inert(&["-c", "--control-path"]),
        inert(&["-?", "--help"]).ends(),
        inert(&["--version"]).ends(),
        unread(&["--admindir"], DATABASE).takes(Role::ReadPath),
        unread(&["--root"], DATABASE).takes(Role::ReadPath),
        inert(&["--load-avail"]),
        inert(&["--no-pager"]),
        inert(&["-f", "--showformat"]).takes_text(),
    ],
    operands: Operands::TEXTS,
    conditions: Conditions::NONE.with(Condition::OutputNotTerminal),
    ..CommandSpec::JUDGED
};
