//! `unzip` and `zipinfo`

use crate::condition::{Condition, Conditions};
use crate::finding::Code;
use crate::spec::{
    CommandSpec, Operands, Role, Rule, ScriptIssue, Syntax, Tweak, inert, unread, waits, writes,
};

/// An archive, then patterns of its members' names. The archive's name may itself be a pattern, and gets `.zip` behind it
/// where there is no such file, so that what is opened may be a symlink that nobody has seen.
const ARCHIVE: Operands = Operands::then(&[Role::ReadPath], Role::Script(member));

/// What follows the archive: `-x` leaves out the members behind it. Any other word with a dash is a flag to some versions
/// and a member to others: `unzip a.zip -l` extracts the member `-l`.
fn member(text: &str) -> Result<(), ScriptIssue> {
    if text.starts_with('-') && text != "-x" {
        let why = "stands behind the archive, where only some versions take it for a flag";
        return Err(ScriptIssue { code: Code::MayBeFlag, ..ScriptIssue::new(0, text.len(), why) });
    }
    Ok(())
}
const EXTRACTION: &str = "decides how files are written";

/// Without a mode that lists, tests or prints it extracts. A `-` inside a bundle takes a flag back (`-l--l`), and is
/// not in the table. An encrypted member asks on the terminal, which the run does not have.
pub(super) static UNZIP: CommandSpec = CommandSpec {
    names: &["unzip"],
    about: "lists, tests or prints the members of zip archives",
    checked: "Info-ZIP UnZip 6.00",
    syntax: Syntax { permutes: false, long: false, double_dash: false, ..Syntax::GNU },
    flags: &[
        inert(&["-Z"]),
        inert(&["-h"]),
        inert(&["-A"]),
        inert(&["-c"]),
        writes(&["-f"], "writes files that are newer in the archive"),
        inert(&["-l"]),
        inert(&["-p"]),
        inert(&["-t"]),
        writes(&["-T"], "sets the time of the archive"),
        writes(&["-u"], "writes files that are newer in the archive"),
        inert(&["-v"]),
        inert(&["-z"]),
        inert(&["-a"]),
        inert(&["-b"]),
        writes(&["-B"], EXTRACTION),
        inert(&["-C"]),
        writes(&["-D"], EXTRACTION),
        writes(&["-d"], "names the directory to extract into").takes(Role::WritePath),
        unread(&["-E"], "of another system"),
        unread(&["-F"], "of another system"),
        unread(&["-i"], "of another system"),
        unread(&["-I"], "names a character set in some builds").takes_text().elsewhere(),
        inert(&["-j"]),
        unread(&["-J"], "of another system"),
        writes(&["-K"], "restores set-user-ID bits"),
        inert(&["-L"]),
        waits(&["-M"], "stops after every page and waits for a key"),
        inert(&["-n"]),
        unread(&["-N"], "of another system"),
        writes(&["-o"], "overwrites files without asking"),
        unread(&["-O"], "names a character set in some builds").takes_text().elsewhere(),
        inert(&["-P"]).takes_text(),
        inert(&["-q"]),
        unread(&["-s"], "of another system, and a listing format after -Z"),
        unread(&["-S"], "of another system"),
        inert(&["-U"]),
        inert(&["-V"]),
        inert(&["-W"]),
        writes(&["-X"], "restores owners"),
        unread(&["-x"], "leaves out members behind the archive; before it, the next word is the archive"),
        unread(&["-Y"], "of another system"),
        unread(&["-$"], "of another system"),
        unread(&["-/"], "of another system").takes_text(),
        writes(&["-:"], "lets members be written outside the directory"),
        writes(&["-^"], EXTRACTION),
        // Formats of the listing after `-Z`.
        inert(&["-1"]),
        inert(&["-2"]),
        inert(&["-m"]).elsewhere(),
    ],
    operands: ARCHIVE,
    rules: &[Rule::Unless(
        &["-l", "-p", "-t", "-v", "-z", "-Z", "-c"],
        Tweak::RefuseOperandsOver(0, Code::FlagWrites, "without a mode that lists or prints it extracts"),
    )],
    conditions: Conditions::NONE.with(Condition::ReadsConfined),
    ..CommandSpec::JUDGED
};

pub(super) static ZIPINFO: CommandSpec = CommandSpec {
    names: &["zipinfo"],
    about: "lists zip archives in detail",
    checked: "Info-ZIP ZipInfo 3.00",
    syntax: Syntax { permutes: false, long: false, double_dash: false, ..Syntax::GNU },
    flags: &[
        inert(&["-1"]),
        inert(&["-2"]),
        inert(&["-s"]),
        inert(&["-m"]),
        inert(&["-l"]),
        inert(&["-v"]),
        inert(&["-h"]),
        waits(&["-M"], "stops after every page and waits for a key"),
        inert(&["-t"]),
        inert(&["-T"]),
        inert(&["-z"]),
        inert(&["-C"]),
        unread(&["-x"], "leaves out members behind the archive; before it, the next word is the archive"),
        inert(&["-U"]),
        unread(&["-I"], "names a character set in some builds").takes_text().elsewhere(),
        unread(&["-O"], "names a character set in some builds").takes_text().elsewhere(),
    ],
    operands: ARCHIVE,
    conditions: Conditions::NONE.with(Condition::ReadsConfined),
    ..CommandSpec::JUDGED
};
