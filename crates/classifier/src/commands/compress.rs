//! `gzip`, `bzip2`, `xz` and `zstd`, with the programs of theirs that always print.
//!
//! They replace the files that are named, unless a flag makes them print, list or test. `zcat`, `gunzip`, `zgrep` and
//! their kin are shell scripts that run gzip, and are refused.

use crate::condition::{Condition, Conditions};
use crate::finding::Code;
use crate::spec::{
    CommandSpec, Flag, Operands, Role, Rule, ScriptIssue, Syntax, Tweak, follows_links, inert, reads,
    reads_listed, runs, unread, waits, writes,
};

/// The files are replaced by their other form, or it is written beside them.
const REPLACED: Operands = Operands::all(Role::WritePath).stdin_below(1);

/// Of several modes the last one on the command line wins (`xz -tz a.txt` compresses), so listing and testing read
/// only where no other mode is given; `-c` prints in all of them.
const MODES: &[Rule] = &[
    Rule::When(&["-l", "-t"], Tweak::Layout(Operands::FILES)),
    Rule::When(&["-d", "-z"], Tweak::Layout(REPLACED)),
    Rule::When(&["-c"], Tweak::Layout(Operands::FILES)),
];

/// gzip with `-r` opens what lies in a directory, and with `-c` or `-f` symlinks too. Where there is no file of a name, it
/// opens the one with a suffix behind it, which may be a symlink that nobody has seen.
pub(super) static GZIP: CommandSpec = CommandSpec {
    names: &["gzip"],
    about: "lists, tests or prints compressed files",
    checked: "gzip 1.12",
    syntax: Syntax::GNU.numeric(),
    flags: &[
        inert(&["-a", "--ascii"]).elsewhere(),
        inert(&["-b", "--bits"]).takes_number().elsewhere(),
        inert(&["-c", "--stdout", "--to-stdout"]),
        inert(&["-d", "--decompress", "--uncompress"]),
        inert(&["-f", "--force"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-k", "--keep"]),
        inert(&["-l", "--list"]),
        inert(&["-L", "--license"]).ends(),
        inert(&["-n", "--no-name"]),
        inert(&["-N", "--name"]),
        inert(&["-q", "--quiet", "--silent"]),
        follows_links(&["-r", "--recursive"], "opens every file below, symlinks included"),
        inert(&["--rsyncable"]),
        inert(&["-S", "--suffix"]).takes_text(),
        inert(&["--synchronous"]),
        inert(&["-t", "--test"]),
        inert(&["-v", "--verbose"]),
        inert(&["-V", "--version"]).ends(),
        inert(&["-1", "--fast"]),
        inert(&["-2"]),
        inert(&["-3"]),
        inert(&["-4"]),
        inert(&["-5"]),
        inert(&["-6"]),
        inert(&["-7"]),
        inert(&["-8"]),
        inert(&["-9", "--best"]),
    ],
    operands: REPLACED,
    rules: &[Rule::When(&["-c", "-l", "-t"], Tweak::Layout(Operands::FILES))],
    conditions: Conditions::NONE.with(Condition::ReadsConfined),
    ..CommandSpec::JUDGED
};

const BZIP2_FLAGS: &[Flag] = &[
    inert(&["-h", "--help"]).ends(),
    inert(&["-d", "--decompress"]),
    inert(&["-z", "--compress"]),
    inert(&["-k", "--keep"]),
    inert(&["-f", "--force"]),
    inert(&["-t", "--test"]),
    inert(&["-c", "--stdout"]),
    inert(&["-q", "--quiet"]),
    inert(&["-v", "--verbose"]),
    // They do not end it: it goes on with its input.
    inert(&["-L", "--license"]),
    inert(&["-V", "--version"]),
    inert(&["-s", "--small"]),
    inert(&["-1", "--fast"]),
    inert(&["-2"]),
    inert(&["-3"]),
    inert(&["-4"]),
    inert(&["-5"]),
    inert(&["-6"]),
    inert(&["-7"]),
    inert(&["-8"]),
    inert(&["-9", "--best"]),
];

pub(super) static BZIP2: CommandSpec = CommandSpec {
    names: &["bzip2", "bunzip2"],
    about: "tests or prints compressed files",
    checked: "bzip2 1.0.8",
    flags: BZIP2_FLAGS,
    operands: REPLACED,
    rules: &[
        Rule::When(&["-t"], Tweak::Layout(Operands::FILES)),
        Rule::When(&["-d", "-z"], Tweak::Layout(REPLACED)),
        Rule::When(&["-c"], Tweak::Layout(Operands::FILES)),
    ],
    ..CommandSpec::JUDGED
};

/// Its output stays standard output whatever mode is given.
pub(super) static BZCAT: CommandSpec = CommandSpec {
    names: &["bzcat"],
    about: "prints decompressed files",
    checked: "bzip2 1.0.8",
    flags: BZIP2_FLAGS,
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

const XZ_FLAGS: &[Flag] = &[
    inert(&["-z", "--compress"]),
    inert(&["-d", "--decompress", "--uncompress"]),
    inert(&["-t", "--test"]),
    inert(&["-l", "--list"]),
    inert(&["-k", "--keep"]),
    inert(&["-f", "--force"]),
    inert(&["-c", "--stdout", "--to-stdout"]),
    inert(&["--single-stream"]),
    inert(&["--no-sparse"]),
    inert(&["-S", "--suffix"]).takes_text(),
    reads_listed(&["--files"], "reads the names of files from a file").may_take(Role::PathList),
    reads_listed(&["--files0"], "reads the names of files from a file").may_take(Role::PathList),
    inert(&["-F", "--format"]).takes(Role::OneOf(&["auto", "xz", "lzma", "alone", "lzip", "raw"])),
    inert(&["-C", "--check"]).takes(Role::OneOf(&["none", "crc32", "crc64", "sha256"])),
    inert(&["--ignore-check"]),
    inert(&["-0"]),
    inert(&["-1", "--fast"]),
    inert(&["-2"]),
    inert(&["-3"]),
    inert(&["-4"]),
    inert(&["-5"]),
    inert(&["-6"]),
    inert(&["-7"]),
    inert(&["-8"]),
    inert(&["-9", "--best"]),
    inert(&["-e", "--extreme"]),
    inert(&["-T", "--threads"]).takes_number(),
    inert(&["--block-size"]).takes_number(),
    inert(&["--block-list"]).takes_number(),
    inert(&["--flush-timeout"]).takes_number(),
    inert(&["--memlimit-compress"]).takes_number(),
    inert(&["--memlimit-decompress"]).takes_number(),
    inert(&["--memlimit-mt-decompress"]).takes_number(),
    inert(&["-M", "--memlimit", "--memory"]).takes_number(),
    inert(&["--no-adjust"]),
    inert(&["--lzma1"]).may_take(Role::Text),
    inert(&["--lzma2"]).may_take(Role::Text),
    inert(&["--x86"]).may_take(Role::Text),
    inert(&["--arm"]).may_take(Role::Text),
    inert(&["--armthumb"]).may_take(Role::Text),
    inert(&["--arm64"]).may_take(Role::Text),
    inert(&["--powerpc"]).may_take(Role::Text),
    inert(&["--ia64"]).may_take(Role::Text),
    inert(&["--sparc"]).may_take(Role::Text),
    inert(&["--delta"]).may_take(Role::Text),
    inert(&["-q", "--quiet"]),
    inert(&["-v", "--verbose"]),
    inert(&["-Q", "--no-warn"]),
    inert(&["--robot"]),
    inert(&["--info-memory"]).ends(),
    inert(&["-h", "--help"]).ends(),
    inert(&["-H", "--long-help"]).ends(),
    inert(&["-V", "--version"]).ends(),
];

pub(super) static XZ: CommandSpec = CommandSpec {
    names: &["xz", "unxz", "lzma", "unlzma"],
    about: "lists, tests or prints compressed files",
    checked: "xz 5.4.1",
    flags: XZ_FLAGS,
    operands: REPLACED,
    rules: MODES,
    ..CommandSpec::JUDGED
};

pub(super) static XZCAT: CommandSpec = CommandSpec {
    names: &["xzcat", "lzcat"],
    about: "prints decompressed files",
    checked: "xz 5.4.1",
    flags: XZ_FLAGS,
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

const BENCHMARK: &str = "measures for as long as it is told to";
const TRAINS: &str = "writes a dictionary file";

/// A number with a unit and nothing behind it: zstd goes on with the letters after an attached number as further flags, so
/// that `-T4o` takes the next word for the file to write.
fn zstd_number(text: &str) -> Result<(), ScriptIssue> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if unit.len() < text.len() && matches!(unit, "" | "K" | "KB" | "KiB" | "M" | "MB" | "MiB") {
        return Ok(());
    }
    let why = "is not a plain number, and letters after one would be flags";
    Err(ScriptIssue { code: Code::BadValue, ..ScriptIssue::new(0, text.len(), why) })
}

const ZSTD_NUMBER: Role = Role::Script(zstd_number);

/// zstd reads its words by itself: letters bundle, numbers are attached, and `-o` and `-D` take the next word.
const ZSTD_FLAGS: &[Flag] = &[
    writes(&["-o"], "writes its output into the file").takes(Role::WritePath),
    inert(&["-k", "--keep"]),
    writes(&["--rm"], "removes the input files"),
    inert(&["-z", "--compress"]).elsewhere(),
    inert(&["-d", "--decompress", "--uncompress"]),
    reads(&["-D"], "reads a dictionary"),
    inert(&["-f", "--force"]),
    inert(&["-h"]).ends(),
    inert(&["-H", "--help"]).ends(),
    inert(&["-V", "--version"]).ends(),
    inert(&["-c", "--stdout"]),
    inert(&["-v", "--verbose"]),
    inert(&["-q", "--quiet"]),
    writes(&["--trace"], "writes a log").takes(Role::WritePath),
    inert(&["--progress"]),
    inert(&["--no-progress"]),
    follows_links(&["-r"], "opens every file below"),
    reads_listed(&["--filelist"], "reads the names of files from a file"),
    writes(&["--output-dir-flat"], "writes files into the directory").takes(Role::WritePath),
    writes(&["--output-dir-mirror"], "writes files into the directory").takes(Role::WritePath),
    inert(&["--asyncio"]),
    inert(&["--no-asyncio"]),
    inert(&["--check"]),
    inert(&["--no-check"]),
    inert(&["--ultra"]),
    inert(&["--fast"]).may_take(ZSTD_NUMBER),
    inert(&["--adapt"]),
    inert(&["--long"]).may_take(ZSTD_NUMBER),
    reads(&["--patch-from"], "reads the reference file"),
    inert(&["-T"]).may_take(ZSTD_NUMBER),
    inert(&["--single-thread"]),
    inert(&["--auto-threads"]).takes(Role::OneOf(&["physical", "logical"])),
    inert(&["-B"]).may_take(ZSTD_NUMBER),
    inert(&["--rsyncable"]),
    inert(&["--exclude-compressed"]),
    inert(&["--stream-size"]).takes(ZSTD_NUMBER),
    inert(&["--size-hint"]).takes(ZSTD_NUMBER),
    inert(&["--target-compressed-block-size"]).takes(ZSTD_NUMBER),
    inert(&["--no-dictID"]),
    inert(&["--compress-literals"]),
    inert(&["--no-compress-literals"]),
    inert(&["--row-match-finder"]),
    inert(&["--no-row-match-finder"]),
    inert(&["--format"]).takes(Role::OneOf(&["zstd", "gzip", "xz", "lzma", "lz4"])),
    inert(&["-l", "--list"]),
    inert(&["-t", "--test"]),
    inert(&["-M", "--memory"]).may_take(ZSTD_NUMBER),
    inert(&["--sparse"]),
    inert(&["--no-sparse"]),
    inert(&["--pass-through"]),
    inert(&["--no-pass-through"]),
    writes(&["--train"], TRAINS),
    writes(&["--train-cover"], TRAINS).may_take(Role::Text),
    writes(&["--train-fastcover"], TRAINS).may_take(Role::Text),
    writes(&["--train-legacy"], TRAINS).may_take(Role::Text),
    inert(&["--maxdict"]).takes(ZSTD_NUMBER),
    inert(&["--dictID"]).takes(ZSTD_NUMBER),
    waits(&["-b"], BENCHMARK).may_take(ZSTD_NUMBER),
    waits(&["-e"], BENCHMARK).may_take(ZSTD_NUMBER),
    waits(&["-i"], BENCHMARK).may_take(ZSTD_NUMBER),
    waits(&["-S"], BENCHMARK),
    unread(&["--priority"], "raises its priority").takes(Role::OneOf(&["rt"])),
    runs(&["-p"], "an older option of the benchmark").may_take(ZSTD_NUMBER).elsewhere(),
];

pub(super) static ZSTD: CommandSpec = CommandSpec {
    names: &["zstd", "unzstd", "zstdmt"],
    about: "lists, tests or prints compressed files",
    checked: "zstd 1.5.4",
    syntax: Syntax::GNU.numeric(),
    flags: ZSTD_FLAGS,
    operands: REPLACED,
    rules: MODES,
    ..CommandSpec::JUDGED
};

pub(super) static ZSTDCAT: CommandSpec = CommandSpec {
    names: &["zstdcat"],
    about: "prints decompressed files",
    checked: "zstd 1.5.4",
    syntax: Syntax::GNU.numeric(),
    flags: ZSTD_FLAGS,
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

#[cfg(test)]
mod tests {
    use super::zstd_number;

    #[test]
    fn numbers_of_zstd_hold_no_flags() {
        // contract: S10
        for plain in ["4", "0", "64K", "128MiB"] {
            assert!(zstd_number(plain).is_ok(), "{plain}");
        }
        for more in ["4o", "o", "", "4Ko", "-1", "4 o", "4,o"] {
            assert!(zstd_number(more).is_err(), "{more}");
        }
    }
}
