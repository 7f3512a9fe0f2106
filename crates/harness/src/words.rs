//! Words as one line of shell text, and back: a line that is shown can be read without doubt, and be pasted.

use crate::gate::Action;
use crate::present::is_unseen;
use cmdgate_lexer::{Command, Grammar, lex};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Words that a shell takes for its own where a program stands.
const RESERVED: &[&str] = &[
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "time", "until", "while",
];

/// A program with its arguments as a shell would have to be given them. Characters that cannot be seen are written as
/// bash's `$'…'` has them.
///
/// ```
/// use cmdgate_harness::words::line;
/// assert_eq!(line(&["rm", "-rf", "a b"]), "rm -rf 'a b'");
/// assert_eq!(line(&["echo", "it's", "", "a\nb"]), r"echo 'it'\''s' '' $'a\nb'");
/// ```
pub fn line<T: AsRef<str>>(words: &[T]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().map(AsRef::as_ref).enumerate() {
        if at > 0 {
            text.push(' ');
        }
        // As the first word, one with `=` would be an assignment.
        if at == 0 && (word.contains('=') || RESERVED.contains(&word)) {
            text.push_str(&in_quotes(word));
        } else {
            text.push_str(&quoted(word));
        }
    }
    text
}

/// One word, in quotes where it needs them.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(in_quotes(word))
    }
}

/// One word in quotes, whatever it holds.
pub fn in_quotes(word: &str) -> String {
    if !word.chars().any(is_unseen) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut text = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => text.push_str(r"\n"),
            '\t' => text.push_str(r"\t"),
            '\r' => text.push_str(r"\r"),
            '\'' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii() && is_unseen(c) => {
                let _ = write!(text, "\\x{:02x}", u32::from(c));
            }
            c if is_unseen(c) => {
                let _ = write!(text, "\\U{:08x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}

/// An action as one line: a command line as it is, an argument list with its words in quotes.
pub fn of(action: &Action) -> Cow<'_, str> {
    match action {
        Action::Exec(argv) => Cow::Owned(line(argv)),
        Action::Shell(_) | Action::Read(_) | Action::Write(_) => action.text(),
    }
}

/// One program with its arguments, as a shell would read them; nothing that only a shell could do.
///
/// # Errors
///
/// What to write instead.
///
/// ```
/// use cmdgate_harness::words::parse;
/// assert_eq!(parse("npm test -- --grep 'a b'")?, ["npm", "test", "--", "--grep", "a b"]);
/// assert!(parse("npm test && ls").is_err());
/// # Ok::<(), String>(())
/// ```
pub fn parse(text: &str) -> Result<Vec<String>, String> {
    let only = "write one program with its arguments; put anything more into a script of the project";
    let script = lex(text, Grammar::Sequence).map_err(|error| format!("{error}; {only}"))?;
    let [item] = script.list.items.as_slice() else { return Err(only.to_owned()) };
    let [Command::Simple(segment)] = item.pipeline.stages.as_slice() else { return Err(only.to_owned()) };
    if !segment.assignments.is_empty()
        || !segment.redirects.is_empty()
        || item.pipeline.negated
        || item.pipeline.timed
    {
        return Err(only.to_owned());
    }
    let words: Option<Vec<String>> =
        segment.words.iter().map(|word| word.literal().map(ToOwned::to_owned)).collect();
    match words {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) | None => Err(format!("a word of it depends on files or variables; {only}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // contract: P12
    #[test]
    fn what_is_shown_is_what_bash_would_read() {
        let words = [
            "if",
            "A=b",
            "a b",
            "it's",
            "",
            "$HOME",
            "`id`",
            "~",
            "*",
            "a\\b",
            "a\nb",
            "\u{1b}[2J",
            "\u{202e}x\\'",
            "ü",
            "!",
            "-n",
            "{a,b}",
            "#x",
            "a\tb",
        ];
        for first in words {
            let words: Vec<&str> = std::iter::once(first).chain(words).collect();
            // A program that prints every word it gets, under whatever name.
            let script = format!("set -- {}; printf '%s\\0' \"$@\"", line(&words));
            let out =
                std::process::Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output();
            let out = String::from_utf8(out.unwrap().stdout).unwrap();
            assert_eq!(out.split_terminator('\0').collect::<Vec<_>>(), words, "{script}");
        }
        assert_eq!(line(&["A=b", "x=y"]), "'A=b' x=y");
        assert_eq!(line(&["time", "time"]), "'time' time");
    }

    proptest! {
        // contract: P12
        #[test]
        fn nothing_unseen_is_shown_and_words_come_back(words in proptest::collection::vec(any::<String>(), 1..5)) {
            let line = line(&words);
            prop_assert!(!line.chars().any(is_unseen));
            if !words.iter().any(|word| word.chars().any(is_unseen)) {
                prop_assert_eq!(parse(&line).unwrap(), words);
            }
        }
    }

    // contract: P13
    #[test]
    fn more_than_one_program_with_its_arguments_is_refused() {
        for wrong in [
            "",
            "npm test && ls",
            "npm test | tee x",
            "npm test > x",
            "A=1 npm test",
            "! npm test",
            "ls *",
            "echo $HOME",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
