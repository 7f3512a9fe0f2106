//! Filters that read files and print their lines in another shape or order

use crate::spec::{CommandSpec, Operands, Prints, Role, Rule, Syntax, Tweak, inert, reads, waits, writes};

/// A pipe is copied into `$TMPDIR` first, which is private to the run.
pub(super) static TAC: CommandSpec = CommandSpec {
    names: &["tac"],
    about: "prints lines in reverse order",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-b", "--before"]),
        inert(&["-r", "--regex"]),
        inert(&["-s", "--separator"]).takes_text(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    rules: &[Rule::When(&["-b", "-r", "-s"], Tweak::Prints(Prints::Anything))],
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};

pub(super) static REV: CommandSpec = CommandSpec {
    names: &["rev"],
    about: "prints each line backwards",
    checked: "util-linux 2.38.1",
    flags: &[
        inert(&["-0", "--zero"]).elsewhere(),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static COLUMN: CommandSpec = CommandSpec {
    names: &["column"],
    about: "prints columns",
    checked: "util-linux 2.38.1",
    flags: &[
        inert(&["-t", "--table"]),
        // The short form takes no value in older versions, where the name would be a file to read.
        inert(&["-n"]).takes(Role::ReadPath),
        inert(&["--table-name"]).takes_text(),
        inert(&["-O", "--table-order"]).takes_text(),
        inert(&["-N", "--table-columns"]).takes_text(),
        inert(&["-l", "--table-columns-limit"]).takes_number(),
        inert(&["-E", "--table-noextreme"]).takes_text(),
        inert(&["-d", "--table-noheadings"]),
        inert(&["-e", "--table-header-repeat"]),
        inert(&["-H", "--table-hide"]).takes_text(),
        inert(&["-R", "--table-right"]).takes_text(),
        inert(&["-T", "--table-truncate"]).takes_text(),
        inert(&["-W", "--table-wrap"]).takes_text(),
        inert(&["-L", "--keep-empty-lines", "--table-empty-lines"]),
        inert(&["-J", "--json"]),
        inert(&["-r", "--tree"]).takes_text(),
        inert(&["-i", "--tree-id"]).takes_text(),
        inert(&["-p", "--tree-parent"]).takes_text(),
        inert(&["-c", "--output-width", "--columns"]).takes_text(),
        inert(&["-o", "--output-separator"]).takes_text(),
        inert(&["-s", "--separator"]).takes_text(),
        inert(&["-x", "--fillrows"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static FOLD: CommandSpec = CommandSpec {
    names: &["fold"],
    about: "breaks long lines",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric(),
    flags: &[
        inert(&["-b", "--bytes"]),
        inert(&["-s", "--spaces"]),
        inert(&["-w", "--width"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static FMT: CommandSpec = CommandSpec {
    names: &["fmt"],
    about: "fills paragraphs",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric(),
    flags: &[
        inert(&["-c", "--crown-margin"]),
        // The short form takes no value on BSD, where the prefix would be a file to read.
        inert(&["-p"]).takes(Role::ReadPath),
        inert(&["--prefix"]).takes_text(),
        inert(&["-s", "--split-only"]),
        inert(&["-t", "--tagged-paragraph"]),
        inert(&["-u", "--uniform-spacing"]),
        inert(&["-w", "--width"]).takes_number(),
        inert(&["-g", "--goal"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

/// The first page, `+3`, is held back: elsewhere it is a file.
pub(super) static PR: CommandSpec = CommandSpec {
    names: &["pr"],
    about: "lays lines out on pages",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric().plus(),
    flags: &[
        inert(&["--pages"]).takes_number(),
        inert(&["--columns"]).takes_number(),
        inert(&["-a", "--across"]),
        inert(&["-c", "--show-control-chars"]),
        inert(&["-d", "--double-space"]),
        inert(&["-D", "--date-format"]).takes_text(),
        inert(&["-e", "--expand-tabs"]).may_take(Role::Text),
        inert(&["-F", "-f", "--form-feed"]),
        inert(&["-h", "--header"]).takes_text(),
        inert(&["-i", "--output-tabs"]).may_take(Role::Text),
        inert(&["-J", "--join-lines"]),
        inert(&["-l", "--length"]).takes_number(),
        inert(&["-m", "--merge"]),
        inert(&["-n", "--number-lines"]).may_take(Role::Text),
        inert(&["-N", "--first-line-number"]).takes_number(),
        inert(&["-o", "--indent"]).takes_number(),
        inert(&["-r", "--no-file-warnings"]),
        inert(&["-s", "--separator"]).may_take(Role::Text),
        inert(&["-S", "--sep-string"]).may_take(Role::Text),
        inert(&["-t", "--omit-header"]),
        inert(&["-T", "--omit-pagination"]),
        inert(&["-v", "--show-nonprinting"]),
        inert(&["-w", "--width"]).takes_number(),
        inert(&["-W", "--page-width"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
        waits(&["-p"], "pauses at each page until a key is pressed").elsewhere(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static EXPAND: CommandSpec = CommandSpec {
    names: &["expand"],
    about: "turns tabs into spaces",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric(),
    flags: &[
        inert(&["-i", "--initial"]),
        inert(&["-t", "--tabs"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static UNEXPAND: CommandSpec = CommandSpec {
    names: &["unexpand"],
    about: "turns spaces into tabs",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::GNU.numeric(),
    flags: &[
        inert(&["-a", "--all"]),
        inert(&["--first-only"]),
        inert(&["-t", "--tabs"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

pub(super) static PASTE: CommandSpec = CommandSpec {
    names: &["paste"],
    about: "joins lines side by side",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-d", "--delimiters"]).takes_text(),
        inert(&["-s", "--serial"]),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

/// With `-e` and `-i` nothing is read.
pub(super) static SHUF: CommandSpec = CommandSpec {
    names: &["shuf"],
    about: "prints lines in random order",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-e", "--echo"]),
        inert(&["-i", "--input-range"]).takes(Role::Script(range)),
        inert(&["-n", "--head-count"]).takes_number(),
        writes(&["-o", "--output"], "writes the result into the file").takes(Role::WritePath),
        reads(&["--random-source"], "takes random bytes from the file"),
        waits(&["-r", "--repeat"], "prints for ever"),
        inert(&["-z", "--zero-terminated"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::at_most(&[Role::ReadPath], "reads one file").stdin_below(1),
    rules: &[
        Rule::When(&["-e"], Tweak::Layout(Operands::TEXTS)),
        Rule::When(&["-i"], Tweak::Layout(Operands::NONE)),
        Rule::When(&["-e", "-i"], Tweak::Prints(Prints::Anything)),
    ],
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};

/// A range of numbers that ends before a million.
fn range(text: &str) -> Result<(), crate::spec::ScriptIssue> {
    let small = |part: &str| !part.is_empty() && part.len() < 7 && part.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('-') {
        Some((low, high)) if small(low) && small(high) => Ok(()),
        Some(_) | None => Err(crate::spec::ScriptIssue::new(
            0,
            text.len(),
            "is not known to be a range that ends before a million",
        )),
    }
}

pub(super) static TSORT: CommandSpec = CommandSpec {
    names: &["tsort"],
    about: "sorts pairs so that each stands before what follows it",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["-w"]).elsewhere(), inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    operands: Operands::FILES,
    ..CommandSpec::JUDGED
};

/// Without a file it reads the system's own dictionary.
pub(super) static LOOK: CommandSpec = CommandSpec {
    names: &["look"],
    about: "prints lines that begin with a text",
    checked: "util-linux 2.38.1",
    flags: &[
        inert(&["-a", "--alternative"]),
        inert(&["-d", "--alphanum"]),
        inert(&["-f", "--ignore-case"]),
        inert(&["-t", "--terminate"]).takes_text(),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::at_most(&[Role::Text, Role::ReadPath], "takes a text and a file"),
    ..CommandSpec::JUDGED
};

/// It passes its input on. Every operand is a file that is written.
pub(super) static TEE: CommandSpec = CommandSpec {
    names: &["tee"],
    about: "passes its input on, and writes it into files",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-a", "--append"]),
        inert(&["-i", "--ignore-interrupts"]),
        inert(&["-p"]),
        inert(&["--output-error"]).may_take(Role::OneOf(&["warn", "warn-nopipe", "exit", "exit-nopipe"])),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::all(Role::WritePath).stdin_below(1),
    rules: &[Rule::Unless(&[], Tweak::AlwaysStdin)],
    prints: Prints::LinesOfInput,
    ..CommandSpec::JUDGED
};

#[cfg(test)]
mod tests {
    use super::range;
    use alloc::format;
    use proptest::prelude::*;

    #[test]
    fn short_ranges() {
        for range_text in ["1-10", "0-0", "5-999999"] {
            assert!(range(range_text).is_ok(), "{range_text}");
        }
        for range_text in ["", "-", "1", "1-", "-1", "1-1000000", "1--5", "a-b", "1-5x", "0x1-5"] {
            assert!(range(range_text).is_err(), "{range_text}");
        }
    }

    proptest! {
        #[test]
        fn a_short_range_holds_less_than_a_million(low in any::<u64>(), high in any::<u64>()) {
            let short = range(&format!("{low}-{high}")).is_ok();
            prop_assert_eq!(short, low < 1_000_000 && high < 1_000_000);
        }
    }
}
