//! Patterns that other agents match against the *text* of a command, made into patterns that are matched against its
//! *words*.
//!
//! The text `git "commit"  -m x` has the words `git commit -m x`. A rule that allows must not match more than the
//! original did: where its text has anything that the shell would read in its own way, it is not carried over. A rule
//! that denies or asks must not match less: there, whatever the shell may take away becomes a `*`.

/// A pattern over the text of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wild {
    pub(super) pieces: Vec<Piece>,
    /// It ends in a wildcard that is bound at a word: the text before it may also stand alone.
    pub(super) bound: bool,
}

/// A part of a [`Wild`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// This very text.
    Text(String),
    /// Any text, also none.
    Any,
    /// One character.
    One,
}

/// A pattern in this program's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) patterns: Vec<String>,
    /// Whether it matches just what the original did, however that was spelled.
    pub(super) exact: bool,
}

/// Spelled out, the wildcards that stand between spaces double a pattern each time.
const MOST_GAPS: usize = 6;
/// The longest text, in bytes, that a rule may allow.
const LONGEST: usize = 4096;
/// Characters that the shell reads in its own way, wherever they stand.
const SPECIAL: &[char] =
    &['\'', '"', '\\', '$', '`', ';', '&', '|', '<', '>', '(', ')', '{', '}', '\n', '\r', '\0', '\u{1f}'];

/// Words that begin what is no plain command.
const CONTROL: &[&str] = &[
    "for", "while", "until", "if", "case", "select", "[[", "do", "done", "then", "else", "elif", "fi",
    "esac", "function", "coproc",
];

impl Wild {
    /// A text with these characters as wildcards.
    pub(super) fn parse(text: &str, any: char, one: Option<char>) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        for c in text.chars() {
            let piece = if c == any {
                Piece::Any
            } else if Some(c) == one {
                Piece::One
            } else if let Some(Piece::Text(text)) = pieces.last_mut() {
                text.push(c);
                continue;
            } else {
                Piece::Text(c.to_string())
            };
            if piece == Piece::Any && pieces.last() == Some(&Piece::Any) {
                continue;
            }
            pieces.push(piece);
        }
        Self { pieces, bound: false }
    }

    /// Exactly this text.
    pub(super) fn exactly(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())], bound: false }
    }

    /// This text, or this text followed by a space and anything.
    pub(super) fn prefix(text: &str) -> Self {
        Self { bound: true, ..Self::exactly(text) }
    }

    /// Whether it matches every text.
    pub(super) fn is_everything(&self) -> bool {
        match self.pieces.as_slice() {
            [] => self.bound,
            [Piece::Any] => true,
            [Piece::Text(text)] => self.bound && text.trim().is_empty(),
            _ => false,
        }
    }

    /// The program's name, where the pattern spells it out.
    pub(super) fn program(&self) -> Option<&str> {
        let Some(Piece::Text(text)) = self.pieces.first() else { return None };
        match text.trim_start().split_once(' ') {
            Some((program, _)) => Some(program),
            None if self.pieces.len() == 1 => Some(text.trim()),
            None => None,
        }
    }

    /// Whether it is a text without any wildcard.
    pub(super) fn is_exact(&self) -> bool {
        !self.bound && matches!(self.pieces.as_slice(), [Piece::Text(_)])
    }

    fn length(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.len(),
                Piece::Any | Piece::One => 1,
            })
            .sum()
    }

    /// For a rule that allows; the error says why there can be none.
    pub(super) fn for_allowing(&self) -> Result<Translated, String> {
        if self.is_everything() {
            return Ok(Translated { patterns: vec!["*".to_owned()], exact: true });
        }
        if self.length() > LONGEST {
            return Err(format!("it is longer than {LONGEST} bytes"));
        }
        let mut tokens: Vec<Token> = Vec::new();
        for piece in &self.pieces {
            let text = match piece {
                Piece::Any => {
                    tokens.push(Token::Any);
                    continue;
                }
                Piece::One => {
                    return Err(
                        "a wildcard for one character may stand for a quote, which is in no word".to_owned()
                    );
                }
                Piece::Text(text) => text,
            };
            for c in text.chars() {
                let at_word = matches!(tokens.last(), None | Some(Token::Char(' ')));
                if SPECIAL.contains(&c) || matches!(c, '*' | '?' | '[') || at_word && matches!(c, '~' | '#') {
                    return Err(format!(
                        "`{}` means something to the shell, so which words it allows cannot be told",
                        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
                    ));
                }
                if c.is_whitespace() && c != ' ' {
                    return Err("it holds a space that is not a plain one".to_owned());
                }
                if c != ' ' || tokens.last().is_some_and(|last| *last != Token::Char(' ')) {
                    tokens.push(Token::Char(c));
                }
            }
        }
        if self.bound || self.pieces.last() != Some(&Piece::Any) {
            while tokens.last() == Some(&Token::Char(' ')) {
                tokens.pop();
            }
        }
        if tokens.is_empty() {
            return Err("it is empty".to_owned());
        }
        if tokens
            .iter()
            .take_while(|token| **token != Token::Char(' '))
            .any(|token| *token == Token::Char('='))
        {
            return Err("it sets a variable for the program, and no rule allows that here".to_owned());
        }
        // Agents differ in whether a bound wildcard may stand for nothing when there is another before it.
        let exact = !self.bound || tokens.iter().all(|token| matches!(token, Token::Char(_)));
        if self.bound && !exact {
            tokens.extend([Token::Char(' '), Token::Any]);
        }
        Ok(Translated { patterns: vec![render(&tokens, self.bound && exact, false)], exact })
    }

    /// For a rule that denies or asks.
    pub(super) fn for_tightening(&self) -> Translated {
        let whole = self.cover();
        if !self
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Text(text) if text.contains([';', '&', '|', '\n'])))
        {
            return whole;
        }
        // An operator is part of a command's words when it is quoted there; else the command is two, and the pattern
        // can only have meant the whole line: then the part that says most stands for it.
        let mut patterns = whole.patterns;
        let mut part = Self::default();
        let mut parts = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    for (at, chunk) in text.split([';', '&', '|', '\n']).enumerate() {
                        if at > 0 {
                            parts.push(std::mem::take(&mut part));
                        }
                        part.pieces.push(Piece::Text(chunk.to_owned()));
                    }
                }
                Piece::Any | Piece::One => part.pieces.push(piece.clone()),
            }
        }
        part.bound = self.bound;
        parts.push(part);
        let said = |part: &Self| {
            part.pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.trim().len(),
                    Piece::Any | Piece::One => 0,
                })
                .sum::<usize>()
        };
        if let Some(part) = parts.iter().max_by_key(|part| said(part)) {
            patterns.extend(part.cover().patterns);
        }
        patterns.dedup();
        Translated { patterns, exact: false }
    }

    /// Where a rule that denies or asks may match what is in none of a command's words: the names of such syntax (see
    /// [`crate::syntax`]), and a pattern for the words of the commands that may have it.
    ///
    /// A wildcard may stand for a `>`, and then what follows it in the pattern may be the name of a file, for one.
    pub(super) fn beyond_words(&self) -> Option<(Vec<&'static str>, String)> {
        let first = self.pieces.iter().position(|piece| !matches!(piece, Piece::Text(_)))?;
        let later: Vec<&str> = self
            .pieces
            .iter()
            .skip(first)
            .filter_map(|piece| match piece {
                Piece::Text(text) => Some(text.as_str()),
                Piece::Any | Piece::One => None,
            })
            .chain(self.bound.then_some(" "))
            .collect();
        if later.is_empty() {
            return None;
        }
        // Also `2>&1` and `>/dev/null`, where the text may be a part of those.
        let plain = if later.iter().any(|text| may_be_plain(text)) { "redirect" } else { "file" };
        if first == 0 {
            return Some((vec!["assignment", "comment", "control", plain], "*".to_owned()));
        }
        let mut pieces: Vec<Piece> = self.pieces.iter().take(first).cloned().collect();
        pieces.push(Piece::Any);
        let start = Self { pieces, bound: false }.cover();
        let pattern = start.patterns.into_iter().next().unwrap_or_else(|| "*".to_owned());
        Some((vec!["comment", plain], pattern))
    }

    /// A pattern for at least everything that this one matches.
    fn cover(&self) -> Translated {
        let mut tokens: Vec<Token> = Vec::new();
        let mut exact = true;
        let mut cut = false;
        'pieces: for piece in &self.pieces {
            let text = match piece {
                Piece::Any => {
                    tokens.push(Token::Any);
                    continue;
                }
                // The one character may be a quote, and then it is none.
                Piece::One => {
                    exact = false;
                    tokens.push(Token::Any);
                    continue;
                }
                Piece::Text(text) => text,
            };
            let mut characters = text.chars().peekable();
            while let Some(c) = characters.next() {
                let at_word = matches!(tokens.last(), None | Some(Token::Char(' ')));
                match c {
                    '\'' | '"' | '\\' => tokens.push(Token::Any),
                    '$' if matches!(characters.peek(), Some('(' | '{')) => cut = true,
                    '$' => {
                        while characters.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                        tokens.push(Token::Any);
                    }
                    '~' if at_word => tokens.push(Token::Any),
                    '<' | '>' => {
                        drop_descriptor(&mut tokens);
                        cut = true;
                    }
                    '`' | '(' | ')' | '{' | '}' => cut = true,
                    '#' if at_word => cut = true,
                    c if c.is_whitespace() => {
                        if tokens.last().is_some_and(|last| *last != Token::Char(' ')) {
                            tokens.push(Token::Char(' '));
                        }
                        continue;
                    }
                    c => {
                        tokens.push(Token::Char(c));
                        continue;
                    }
                }
                exact = false;
                if cut {
                    break 'pieces;
                }
            }
        }
        // What follows may be in no word at all, and then the blank before it is not there either.
        let mut cut_at_word = false;
        if cut {
            while matches!(tokens.as_slice(), [.., Token::Char(' ')] | [.., Token::Char(' '), Token::Any]) {
                cut_at_word = true;
                tokens.pop();
            }
            if tokens.is_empty() || !cut_at_word {
                tokens.push(Token::Any);
            }
        }
        // `FOO=1 rm x` is matched without its assignment.
        let first: Vec<&Token> = tokens.iter().take_while(|token| **token != Token::Char(' ')).collect();
        let spelled: String = first.iter().filter_map(|token| token.character()).collect();
        if spelled.contains('=') || matches!(spelled.as_str(), "time" | "!") {
            let rest = tokens.split_off(first.len());
            tokens = std::iter::once(Token::Any).chain(rest.into_iter().skip(1)).collect();
            exact = false;
        }
        let control = CONTROL.contains(&spelled.as_str());
        let mut bound = if cut { cut_at_word } else { self.bound };
        // Behind the last word, a wildcard may stand for what is in no word.
        while let [.., Token::Char(' '), Token::Any] = tokens.as_slice() {
            tokens.truncate(tokens.len() - 2);
            bound = true;
            exact = false;
        }
        if !bound {
            while tokens.last() == Some(&Token::Char(' ')) {
                tokens.pop();
            }
        } else if tokens.last() == Some(&Token::Char(' ')) {
            tokens.pop();
        }
        let mut patterns = vec![render(&tokens, bound, true)];
        if control {
            // The word is none of a command's: it counts for every command inside.
            patterns.push("syntax:control *".to_owned());
            exact = false;
        }
        Translated { patterns, exact }
    }
}

/// Whether a text may stand in a redirection such as `2>&1` or `> /dev/null`: at its end, at least.
fn may_be_plain(text: &str) -> bool {
    let text = text.trim_start();
    let head = text.split_whitespace().next().unwrap_or_default();
    head.is_empty()
        || head.contains(['<', '>'])
        || "/dev/null".contains(head)
        || head.chars().all(|c| c.is_ascii_digit() || matches!(c, '&' | '-' | '|'))
}

/// The `2` of `2>` and the `&` of `&>` at the end are in no word. After a wildcard, digits may be such.
fn drop_descriptor(tokens: &mut Vec<Token>) {
    while tokens.last() == Some(&Token::Char('&')) {
        tokens.pop();
    }
    let digits =
        tokens.iter().rev().take_while(|token| token.character().is_some_and(|c| c.is_ascii_digit())).count();
    let before = tokens.len() - digits;
    if matches!(tokens.get(..before), Some([] | [.., Token::Any | Token::Char(' ')])) {
        tokens.truncate(before);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    Any,
}

impl Token {
    const fn character(self) -> Option<char> {
        match self {
            Self::Char(c) => Some(c),
            Self::Any => None,
        }
    }
}

/// The pattern's text. With `gaps`, a wildcard between two spaces may stand for nothing, and then the two are one.
fn render(tokens: &[Token], bound: bool, gaps: bool) -> String {
    let mut out = String::new();
    let mut left = if gaps { MOST_GAPS } else { 0 };
    let mut after_any = false;
    let mut rest = tokens;
    loop {
        let any = matches!(rest, [Token::Any, ..]);
        rest = match rest {
            [] => break,
            [Token::Char(' '), Token::Any, Token::Char(' '), ..] if left > 0 => {
                left -= 1;
                out.push_str("{ *,}");
                rest.get(2..).unwrap_or_default()
            }
            [Token::Char(' '), Token::Any, Token::Char(' '), after @ ..] if gaps => {
                out.push_str(" *");
                after_any = true;
                rest = after;
                continue;
            }
            [Token::Any, after @ ..] => {
                if !after_any {
                    out.push('*');
                }
                after
            }
            [Token::Char(c), after @ ..] => {
                if matches!(c, '*' | '?' | '[' | '{' | '}' | ',' | '\\') {
                    out.push('\\');
                }
                out.push(*c);
                after
            }
        };
        after_any = any;
    }
    if out.is_empty() {
        return "*".to_owned();
    }
    if bound && tokens != [Token::Any] { format!("{out} **") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_word_is_left_out_of_what_denies() {
        for (text, expected) in [
            ("npm test > out.txt", &["npm test **"][..]),
            ("npm test >out.txt", &["npm test **"]),
            ("npm test>out.txt", &["npm test*"]),
            ("npm test2>out.txt", &["npm test2*"]),
            ("npm test 2>/dev/null", &["npm test **"]),
            ("npm * 2>/dev/null", &["npm **"]),
            ("npm *2>/dev/null", &["npm **"]),
            ("npm test <in", &["npm test **"]),
            ("npm test <<EOF*", &["npm test **"]),
            ("npm test # quickly", &["npm test **"]),
            ("npm test $(x)", &["npm test **"]),
            ("> x npm", &["*"]),
        ] {
            let patterns = Wild::parse(text, '*', None).for_tightening().patterns;
            assert_eq!(patterns, expected, "{text}");
        }
        for text in ["for *", "if *", "while true*", "[[ *"] {
            let patterns = Wild::parse(text, '*', None).for_tightening().patterns;
            assert!(patterns.iter().any(|pattern| pattern == "syntax:control *"), "{text}: {patterns:?}");
        }
        for text in ["*2>&1*", "*> x", "* > x", "*<in"] {
            let patterns = Wild::parse(text, '*', None).for_tightening().patterns;
            assert!(patterns.iter().any(|pattern| pattern == "*"), "{text}: {patterns:?}");
        }
        for (text, expected) in [
            ("npm test", None),
            ("npm *", None),
            ("npm test*", None),
            ("npm *x", Some("syntax:{comment,file} npm **")),
            ("npm test* x", Some("syntax:{comment,file} npm test*")),
            ("npm * -f", Some("syntax:{comment,file} npm **")),
            ("npm *1", Some("syntax:{comment,redirect} npm **")),
            ("npm *- x", Some("syntax:{comment,redirect} npm **")),
            ("npm *ull", Some("syntax:{comment,redirect} npm **")),
            ("npm * ", Some("syntax:{comment,redirect} npm **")),
            ("*out.txt", Some("syntax:{assignment,comment,control,file} *")),
        ] {
            let beyond = Wild::parse(text, '*', None).beyond_words();
            let beyond = beyond.map(|(names, pattern)| format!("syntax:{{{}}} {pattern}", names.join(",")));
            assert_eq!(beyond.as_deref(), expected, "{text}");
        }
        let patterns = Wild::parse("npm x 2>&1", '*', None).for_tightening().patterns;
        assert!(patterns.iter().any(|pattern| pattern == "npm x **"), "{patterns:?}");
    }
}
