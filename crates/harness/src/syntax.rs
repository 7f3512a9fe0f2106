//! What a command line has besides plain commands.
//!
//! A rule that allows `npm run **` allows it in a loop too, with its output in a file of the project, and after `time`.
//! Whoever wants that asked about writes a rule for `syntax:output npm run **`: for every command of a line that has
//! such syntax, the rules that deny or ask and begin with `syntax:` are looked up as if that and the name of the syntax
//! stood before the command.

use cmdgate_classifier::Grammar;
use cmdgate_lexer::{
    Command, Compound, CompoundKind, List, Part, Redirect, RedirectKind, Segment, Span, Word, lex,
};
use std::collections::BTreeSet;

/// Every name, with what it stands for.
pub const NAMES: [(&str, &str); 15] = [
    ("assignment", "`NAME=value` before a command or on its own"),
    ("command", "`command` before a command"),
    ("comment", "a comment"),
    ("control", "`for`, `while`, `until`, `if`, `case`, `[[` and `((`"),
    ("expansion", "`$name`, `$(…)`, `$((…))`, backticks and `~`"),
    ("file", "a redirection that names a file other than /dev/null, or holds a text"),
    ("group", "`(…)` and `{…}`"),
    ("ionice", "`ionice` before a command"),
    ("negation", "`!` before a pipeline"),
    ("nice", "`nice` before a command"),
    ("output", "output into a file other than /dev/null"),
    ("redirect", "any redirection"),
    ("stdbuf", "`stdbuf` before a command"),
    ("time", "`time` before a pipeline or command"),
    ("timeout", "`timeout` before a command"),
];

/// Adds the names of the syntax that a line has. A line that the lexer does not admit adds none: nothing is known of it.
pub(crate) fn collect(line: &str, found: &mut BTreeSet<&'static str>) {
    if let Ok(script) = lex(line, Grammar::Sequence) {
        let mut walk = Walk { found, words: Vec::new() };
        walk.list(&script.list);
        if has_comment(line, &walk.words) {
            walk.add("comment");
        }
    }
}

/// Whether a `#` begins a comment: it stands where a word may begin, and in none.
fn has_comment(line: &str, words: &[Span]) -> bool {
    let mut before = None;
    line.bytes().enumerate().any(|(at, byte)| {
        let begins = match before.replace(byte) {
            None => true,
            Some(before) => before.is_ascii_whitespace() || b";&|()".contains(&before),
        };
        byte == b'#' && begins && !words.iter().any(|word| word.range().contains(&at))
    })
}

struct Walk<'f> {
    found: &'f mut BTreeSet<&'static str>,
    /// Where the words are.
    words: Vec<Span>,
}

impl Walk<'_> {
    fn add(&mut self, name: &'static str) {
        self.found.insert(name);
    }

    fn list(&mut self, list: &List<'_>) {
        for item in &list.items {
            if item.pipeline.negated {
                self.add("negation");
            }
            if item.pipeline.timed {
                self.add("time");
            }
            for stage in &item.pipeline.stages {
                match stage {
                    Command::Simple(segment) => self.segment(segment),
                    Command::Compound(compound) => self.compound(compound),
                }
            }
        }
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        for assignment in &segment.assignments {
            self.add("assignment");
            self.word(&assignment.value);
        }
        self.words(&segment.words);
        self.redirects(&segment.redirects);
    }

    fn compound(&mut self, compound: &Compound<'_>) {
        self.redirects(&compound.redirects);
        match &compound.kind {
            CompoundKind::Subshell(list) | CompoundKind::Group(list) => {
                self.add("group");
                self.list(list);
                return;
            }
            CompoundKind::For { words, body, .. } => {
                self.words(words);
                self.list(body);
            }
            CompoundKind::While { condition, body, .. } => {
                self.list(condition);
                self.list(body);
            }
            CompoundKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.list(condition);
                    self.list(body);
                }
                if let Some(body) = otherwise {
                    self.list(body);
                }
            }
            CompoundKind::Case { word, arms } => {
                self.word(word);
                for (patterns, body) in arms {
                    self.words(patterns);
                    if let Some(body) = body {
                        self.list(body);
                    }
                }
            }
            CompoundKind::Arithmetic(_) => {}
            CompoundKind::Conditional(words) => self.words(words),
        }
        self.add("control");
    }

    fn words(&mut self, words: &[Word<'_>]) {
        for word in words {
            self.word(word);
        }
    }

    fn word(&mut self, word: &Word<'_>) {
        // A comment may stand in a substitution, whose own words are looked at below.
        if !word.parts().iter().any(|part| matches!(part, Part::Substitution { .. })) {
            self.words.push(word.span);
        }
        for part in word.parts() {
            match part {
                Part::Text(_) | Part::Glob(_) => {}
                Part::Tilde(_) | Part::Variable { .. } | Part::Arithmetic { .. } => self.add("expansion"),
                Part::Substitution { list, .. } => {
                    self.add("expansion");
                    self.list(list);
                }
            }
        }
    }

    fn redirects(&mut self, redirects: &[Redirect<'_>]) {
        for redirect in redirects {
            self.add("redirect");
            match &redirect.kind {
                RedirectKind::Write { target, .. } | RedirectKind::WriteBoth { target, .. } => {
                    if target.literal() != Some("/dev/null") {
                        self.add("file");
                        self.add("output");
                    }
                    self.word(target);
                }
                RedirectKind::ReadWrite(target) => {
                    self.add("file");
                    self.add("output");
                    self.word(target);
                }
                RedirectKind::Read(word)
                | RedirectKind::HereString(word)
                | RedirectKind::HereDocument { body: word, .. } => {
                    if word.literal() != Some("/dev/null") {
                        self.add("file");
                    }
                    self.word(word);
                }
                RedirectKind::Duplicate(_) | RedirectKind::Close => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<&'static str> {
        let mut found = BTreeSet::new();
        collect(line, &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn plain_commands_have_none() {
        for line in ["ls", "a && b || c | d; e\nf", "ls *.rs 'a b' \"c\" d\\ e", "ls 'a # b' \"#\" a#b \\# c"]
        {
            assert!(names(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn every_other_syntax_has_a_name() {
        for (line, expected) in [
            ("A=1 ls", &["assignment"][..]),
            ("for f in a b; do ls $f; done", &["control", "expansion"]),
            ("if [[ -f a ]]; then ls; fi", &["control"]),
            ("ls $(pwd)", &["expansion"]),
            ("ls ~", &["expansion"]),
            ("(ls)", &["group"]),
            ("{ ls; }", &["group"]),
            ("! ls", &["negation"]),
            ("time ls", &["time"]),
            ("ls > a", &["file", "output", "redirect"]),
            ("ls >/dev/null 2>&1 </dev/null", &["redirect"]),
            ("sort < a", &["file", "redirect"]),
            ("sort <<< a", &["file", "redirect"]),
            ("sort <<E\n#a\nE", &["file", "redirect"]),
            ("sort <<E # a\nb\nE", &["comment", "file", "redirect"]),
            ("ls $(cat < a)", &["expansion", "file", "redirect"]),
            ("ls # a", &["comment"]),
            ("# a\nls", &["comment"]),
            ("ls;# a", &["comment"]),
            ("ls $(pwd # a\n)", &["comment", "expansion"]),
        ] {
            assert_eq!(names(line), expected, "{line}");
        }
        let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        assert!(known.is_sorted());
    }
}
