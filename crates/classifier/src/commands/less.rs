//! `less` and `more`, which without a terminal print like `cat`.

use crate::condition::{Condition, Conditions};
use crate::spec::{CommandSpec, Operands, Role, ScriptIssue, Syntax, inert, reads, runs, unread, writes};

/// A number flag is followed by more flags in the same word (`-x4ofile` logs into `file`): digits and commas only.
fn digits(text: &str) -> Result<(), ScriptIssue> {
    if !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'-' | b'.'))
    {
        Ok(())
    } else {
        Err(ScriptIssue::new(0, text.len(), "is not a number, and letters after one would be flags"))
    }
}

/// A `$` ends the value, and what follows it in the same word are flags.
fn no_dollar(text: &str) -> Result<(), ScriptIssue> {
    match text.find('$') {
        None => Ok(()),
        Some(at) => Err(ScriptIssue::new(at, at + 1, "a `$` ends the value, and flags follow")),
    }
}

const NUMBER: Role = Role::Script(digits);
const TEXT: Role = Role::Script(no_dollar);

/// LESSOPEN and LESS are absent from the environment, and a lesskey file in the home directory, which may set them,
/// is not visible.
const CAT_LIKE: Conditions =
    Conditions::NONE.with(Condition::OutputNotTerminal).with(Condition::ReadsConfined);

pub(super) static LESS: CommandSpec = CommandSpec {
    names: &["less"],
    about: "prints files, or shows them page by page on a terminal",
    checked: "less 590",
    syntax: Syntax::GNU.plus(),
    flags: &[
        inert(&["-?", "--help"]).ends(),
        inert(&["-a", "--search-skip-screen"]),
        inert(&["-A", "--SEARCH-SKIP-SCREEN"]),
        inert(&["-b", "--buffers"]).takes(NUMBER),
        inert(&["-B", "--auto-buffers"]),
        inert(&["-c", "-C", "--clear-screen", "--CLEAR-SCREEN"]),
        inert(&["-d", "--dumb"]),
        inert(&["-D", "--color"]).takes(TEXT),
        inert(&["-e", "--quit-at-eof"]),
        inert(&["-E", "--QUIT-AT-EOF"]),
        inert(&["-f", "--force"]),
        inert(&["-F", "--quit-if-one-screen"]),
        inert(&["-g", "--hilite-search"]),
        inert(&["-G", "--HILITE-SEARCH"]),
        inert(&["-h", "--max-back-scroll"]).takes(NUMBER),
        inert(&["-i", "--ignore-case"]),
        inert(&["-I", "--IGNORE-CASE"]),
        inert(&["-j", "--jump-target"]).takes(NUMBER),
        inert(&["-J", "--status-column"]),
        runs(&["-k", "--lesskey-file"], "a lesskey file may set LESSOPEN, which runs a program")
            .takes(Role::ReadPath),
        runs(&["--lesskey-src"], "a lesskey file may set LESSOPEN, which runs a program")
            .takes(Role::ReadPath)
            .elsewhere(),
        runs(&["--lesskey-content"], "may set LESSOPEN, which runs a program").takes_text().elsewhere(),
        inert(&["-K", "--quit-on-intr"]),
        inert(&["-L", "--no-lessopen"]),
        inert(&["-m", "--long-prompt"]),
        inert(&["-M", "--LONG-PROMPT"]),
        inert(&["-n", "--line-numbers"]),
        inert(&["-N", "--LINE-NUMBERS"]),
        writes(&["-o", "--log-file"], "copies its input into the file").takes(Role::WritePath),
        writes(&["-O", "--LOG-FILE"], "copies its input into the file").takes(Role::WritePath),
        inert(&["-p", "--pattern"]).takes(TEXT),
        unread(&["-P", "--prompt"], "a prompt may name programs' results").takes_text(),
        inert(&["-q", "--quiet", "--silent"]),
        inert(&["-Q", "--QUIET", "--SILENT"]),
        inert(&["-r", "--raw-control-chars"]),
        inert(&["-R", "--RAW-CONTROL-CHARS"]),
        inert(&["-s", "--squeeze-blank-lines"]),
        inert(&["-S", "--chop-long-lines"]),
        unread(&["-t", "--tag"], "opens the file that a tags file names").takes_text(),
        reads(&["-T", "--tag-file"], "reads a tags file"),
        inert(&["-u", "--underline-special"]),
        inert(&["-U", "--UNDERLINE-SPECIAL"]),
        inert(&["-V", "--version"]).ends(),
        inert(&["-w", "--hilite-unread"]),
        inert(&["-W", "--HILITE-UNREAD"]),
        inert(&["-x", "--tabs"]).takes(NUMBER),
        inert(&["-X", "--no-init"]),
        inert(&["-y", "--max-forw-scroll"]).takes(NUMBER),
        inert(&["-z", "--window"]).takes(NUMBER),
        unread(&["-\"", "--quotes"], "changes how file names are quoted").takes_text(),
        inert(&["-~", "--tilde"]),
        inert(&["-#", "--shift"]).takes(NUMBER),
        inert(&["--file-size"]),
        inert(&["--follow-name"]),
        inert(&["--incsearch"]),
        inert(&["--line-num-width"]).takes(NUMBER),
        inert(&["--mouse"]),
        inert(&["--MOUSE"]),
        inert(&["--no-keypad"]),
        inert(&["--no-histdups"]),
        inert(&["--rscroll"]).takes(TEXT),
        writes(&["--save-marks"], "writes its history file"),
        inert(&["--status-col-width"]).takes(NUMBER),
        unread(&["--use-backslash"], "changes how the values of the following flags end"),
        inert(&["--use-color"]),
        inert(&["--wheel-lines"]).takes(NUMBER),
    ],
    operands: Operands::FILES,
    conditions: CAT_LIKE,
    ..CommandSpec::JUDGED
};

pub(super) static MORE: CommandSpec = CommandSpec {
    names: &["more"],
    about: "prints files, or shows them page by page on a terminal",
    checked: "util-linux 2.38.1",
    syntax: Syntax::GNU.numeric().plus(),
    flags: &[
        inert(&["-d", "--silent"]),
        inert(&["-f", "--logical"]),
        inert(&["-l", "--no-pause"]),
        inert(&["-c", "--print-over"]),
        inert(&["-p", "--clean-print"]),
        inert(&["-e", "--exit-on-eof"]),
        inert(&["-s", "--squeeze"]),
        inert(&["-u", "--plain"]),
        inert(&["-n", "--lines"]).takes_number(),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::FILES,
    conditions: CAT_LIKE,
    ..CommandSpec::JUDGED
};

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S10
    #[test]
    fn values_that_hold_further_flags_are_held_back() {
        assert!(digits("4,8").is_ok());
        assert!(digits("4ofile").is_err());
        assert!(no_dollar("word").is_ok());
        assert!(no_dollar("word$ofile").is_err());
    }
}
