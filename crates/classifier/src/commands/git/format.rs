//! Git's own small languages: formats of commits and of refs, sort keys, and line ranges.
//!
//! A format is more than text: `%G?` and `%(signature)` run gpg, or the program that the configuration names for it, and
//! a name that is none of git's own is looked up in the configuration, where it may stand for any format.

use crate::finding::Code;
use crate::spec::ScriptIssue;

/// Formats of commits that git itself names. Git also takes a beginning of a name, but a name from the configuration
/// could be nearer then.
const NAMES: &[&str] =
    &["oneline", "short", "medium", "full", "fuller", "reference", "email", "raw", "mboxrd"];

/// The value of `--pretty` and `--format` of the commands that show commits.
pub(super) fn pretty(text: &str) -> Result<(), ScriptIssue> {
    if text.is_empty() || NAMES.contains(&text) {
        return Ok(());
    }
    if !text.starts_with("format:") && !text.starts_with("tformat:") && !text.contains('%') {
        let why = "is not one of git's own formats: the configuration says what it means";
        return Err(ScriptIssue { code: Code::BadValue, ..ScriptIssue::new(0, text.len(), why) });
    }
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let start = text.len() - rest.len() + at;
        let after = rest.get(at + 1..).unwrap_or("");
        // `%+x`, `%-x` and `% x` are `%x` with a line feed or space around it.
        let item = after.strip_prefix(['+', '-', ' ']).unwrap_or(after);
        let doubled = item.starts_with('%');
        // `% %G?` is no `%%`: the first `%` stands for itself and the second begins a placeholder.
        let used = if doubled && item.len() < after.len() { None } else { commit_item(item) };
        let Some(used) = used else {
            return Err(placeholder(item, start, text.len()));
        };
        rest = item.get(used..).unwrap_or("");
    }
    Ok(())
}

/// Why a placeholder is held back.
fn placeholder(item: &str, start: usize, end: usize) -> ScriptIssue {
    if item.starts_with('G') {
        let why = "`%G` runs gpg, or the program that the configuration names for it";
        return ScriptIssue { code: Code::FlagRuns, ..ScriptIssue::new(start, start + 2, why) };
    }
    ScriptIssue {
        code: Code::BadValue,
        ..ScriptIssue::new(start, end, "is a placeholder that is not in the table")
    }
}

/// How many bytes of the placeholder after `%` are read before the text goes on. What stands in parentheses is read as
/// text again, so that nothing can hide in it.
fn commit_item(item: &str) -> Option<usize> {
    const LETTERS: &str = "HhTtPpdDSesfbBNnmCw<>%";
    if item.starts_with("(trailers") {
        return Some("(trailers".len());
    }
    if item.starts_with("(decorate") {
        return Some("(decorate".len());
    }
    let mut chars = item.chars();
    let first = chars.next()?;
    let second = chars.next();
    match (first, second) {
        ('a', Some('n' | 'N' | 'e' | 'E' | 'l' | 'L' | 'd' | 'D' | 'r' | 't' | 'i' | 'I' | 's' | 'h'))
        | ('c', Some('n' | 'N' | 'e' | 'E' | 'l' | 'L' | 'd' | 'D' | 'r' | 't' | 'i' | 'I' | 's' | 'h'))
        | ('g', Some('D' | 'd' | 'n' | 'N' | 'e' | 'E' | 's')) => Some(2),
        ('x', Some(_)) => {
            let hex = item.get(1..3)?;
            hex.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(3)
        }
        (letter, _) if LETTERS.contains(letter) => Some(letter.len_utf8()),
        _ => None,
    }
}

/// What refs can be asked for without running anything: not `signature` (gpg) and `describe` (another git).
const ATOMS: &[&str] = &[
    "refname",
    "objecttype",
    "objectsize",
    "objectname",
    "deltabase",
    "tree",
    "parent",
    "numparent",
    "object",
    "type",
    "tag",
    "author",
    "authorname",
    "authoremail",
    "authordate",
    "committer",
    "committername",
    "committeremail",
    "committerdate",
    "tagger",
    "taggername",
    "taggeremail",
    "taggerdate",
    "creator",
    "creatordate",
    "subject",
    "body",
    "trailers",
    "contents",
    "raw",
    "upstream",
    "push",
    "symref",
    "flag",
    "HEAD",
    "color",
    "worktreepath",
    "align",
    "end",
    "if",
    "then",
    "else",
    "ahead-behind",
    "is-base",
];

/// The value of `--format` of `for-each-ref`, `branch` and `tag`.
pub(super) fn reference(text: &str) -> Result<(), ScriptIssue> {
    let mut rest = text;
    while let Some(at) = rest.find("%(") {
        let start = text.len() - rest.len() + at;
        let inside = rest.get(at + 2..).unwrap_or("");
        let name = inside.strip_prefix('*').unwrap_or(inside);
        let name = name.split([':', ')']).next().unwrap_or(name);
        atom(name, start, start + 2 + name.len())?;
        rest = inside;
    }
    Ok(())
}

/// The value of `--sort` of the same.
pub(super) fn sort_key(text: &str) -> Result<(), ScriptIssue> {
    let key = text.strip_prefix('-').unwrap_or(text);
    let key = key.strip_prefix("version:").or_else(|| key.strip_prefix("v:")).unwrap_or(key);
    let key = key.strip_prefix('*').unwrap_or(key);
    atom(key.split(':').next().unwrap_or(key), 0, text.len())
}

fn atom(name: &str, start: usize, end: usize) -> Result<(), ScriptIssue> {
    if ATOMS.contains(&name) {
        return Ok(());
    }
    let (code, why) = match name {
        "signature" => {
            (Code::FlagRuns, "`signature` runs gpg, or the program that the configuration names for it")
        }
        "describe" => (Code::FlagRuns, "`describe` starts another git"),
        _ => (Code::BadValue, "is a field that is not in the table"),
    };
    Err(ScriptIssue { code, ..ScriptIssue::new(start, end, why) })
}

/// The value of `-L` of `log`: `START,END:FILE` or `:FUNCTION:FILE`.
pub(super) fn line_range(text: &str) -> Result<(), ScriptIssue> {
    let file = text.rsplit(':').next().unwrap_or(text);
    if file.starts_with(['/', '~']) || text.split(['/', ':']).any(|part| part == "..") {
        let start = text.len() - file.len();
        let why = "names a file outside the project, or by a way that is not followed";
        return Err(ScriptIssue { code: Code::PathOutside, ..ScriptIssue::new(start, text.len(), why) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    #[test]
    fn commit_formats() {
        // contract: S12
        for text in [
            "",
            "oneline",
            "%H",
            "format:%h %s",
            "tformat:%an <%ae>%n",
            "%H > out",
            "%C(auto)%h%Creset",
            "%x09%x2C",
            "%%",
            "%<(20,trunc)%an",
            "%(trailers:key=Signed-off-by,separator=%x2C)",
            "%+d",
            "%gd: %gs",
            "format:",
            "%(decorate)",
        ] {
            assert_eq!(pretty(text), Ok(()), "{text}");
        }
        for text in [
            "mine",
            "one",
            "ONELINE",
            "%G?",
            "%GK",
            "%+G?",
            "%-GS",
            "% G?",
            "format:%h %G?",
            "%(describe)",
            "%(signature)",
            "%(trailers:separator=%G?)",
            "%Q",
            "%",
            "%x",
            "%xG?",
            "%<(5)%G?",
            "%aZ",
            "%(decorate:prefix=%G?)",
            "% %G?",
            "%+%G?",
        ] {
            assert!(pretty(text).is_err(), "{text}");
        }
        assert_eq!(pretty("ab%G?").unwrap_err().start, 2);
        assert_eq!(pretty("%G?").unwrap_err().code, Code::FlagRuns);
    }

    #[test]
    fn ref_formats_and_sort_keys() {
        // contract: S12
        for text in [
            "%(refname:short)",
            "%(HEAD) %(*objectname)",
            "plain",
            "%(if)%(HEAD)%(then)*%(else) %(end)",
            "%H",
        ] {
            assert_eq!(reference(text), Ok(()), "{text}");
        }
        for text in [
            "%(signature)",
            "%(signature:grade)",
            "%(*signature)",
            "%(describe)",
            "%(x)",
            "%(",
            "%(align:%(signature))",
        ] {
            assert!(reference(text).is_err(), "{text}");
        }
        for text in
            ["-committerdate", "refname", "-v:refname", "version:refname", "*authordate", "contents:size"]
        {
            assert_eq!(sort_key(text), Ok(()), "{text}");
        }
        for text in ["signature", "-signature:key", "describe", "", "-v:marble", "*signature"] {
            assert!(sort_key(text).is_err(), "{text}");
        }
    }

    #[test]
    fn line_ranges() {
        // contract: S9
        for text in ["1,2:a.txt", ":main:src/main.rs", "/start/,/end/:a.txt", "1,+5:sub/a.txt"] {
            assert_eq!(line_range(text), Ok(()), "{text}");
        }
        for text in ["1,2:../x", "1,2:/etc/passwd", ":f:sub/../../x", "1,2:~/x"] {
            assert!(line_range(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[%a-zG(){}:*+ ,\u{e9}-]{0,24}") {
            let _ = (pretty(&text), reference(&text), sort_key(&text), line_range(&text));
        }

        /// Whatever stands around it, a placeholder that runs gpg is seen.
        #[test]
        fn signatures_never_pass(before in "[a-z %(),:]{0,8}", after in "[a-z ?()]{0,8}") {
            let mut text = String::from("format:");
            text.push_str(&before);
            text.push_str("%G");
            text.push_str(&after);
            prop_assume!(!before.ends_with('%'));
            prop_assert!(pretty(&text).is_err());
        }
    }
}
