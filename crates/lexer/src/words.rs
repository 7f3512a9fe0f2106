//! Scanning of words: quotes, escapes, expansions.

use crate::parser::{Parser, Stop, offset};
use crate::pieces::{Context, Piece, assemble};
use crate::word::{Part, Word, WordValue};
use crate::{ErrorKind, Grammar, LexError, List, Span, brace, token};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// Text in which only expansions and some escapes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Soft {
    /// Between double quotes.
    DoubleQuotes,
    /// The body of a here-document whose delimiter is not quoted.
    HereDocument,
}

impl<'a> Parser<'a> {
    /// Reads the word at the cursor and appends what it becomes to `words`: usually one word, several when braces are
    /// expanded, none when braces leave nothing.
    pub(crate) fn words(&mut self, words: &mut Vec<Word<'a>>) -> Result<(), LexError> {
        let start = self.pos;
        if let Some(word) = self.plain_word() {
            words.push(word);
            return Ok(());
        }
        let mut pieces = self.pieces()?;
        let span = Span::new(offset(start), offset(self.pos));
        if self.braces_count(&pieces, span)? {
            let results =
                brace::expand(&pieces, &mut self.brace_budget).map_err(|refusal| match refusal {
                    brace::Refusal::TooLarge => {
                        LexError::new(ErrorKind::TooLarge, span, "the braces stand for too many words")
                    }
                    brace::Refusal::Unclear => LexError::new(
                        ErrorKind::Expansion,
                        span,
                        "these braces are not understood; quote them",
                    ),
                })?;
            if results.is_empty() {
                return Err(LexError::new(ErrorKind::Expansion, span, "these braces leave no word at all"));
            }
            for mut result in results {
                words.push(Self::finish(&mut result, span, Context::Argument)?);
            }
        } else {
            words.push(Self::finish(&mut pieces, span, Context::Argument)?);
        }
        self.recycle(pieces);
        Ok(())
    }

    /// Reads the word at the cursor as one word. Where braces would make several of it, it is refused.
    pub(crate) fn word(&mut self, context: Context) -> Result<Word<'a>, LexError> {
        let start = self.pos;
        if let Some(word) = self.plain_word() {
            return Ok(word);
        }
        let mut pieces = self.pieces()?;
        let span = Span::new(offset(start), offset(self.pos));
        if context.has_braces() && self.braces_count(&pieces, span)? {
            return Err(LexError::new(ErrorKind::Expansion, span, "braces in the target of a redirection"));
        }
        let word = Self::finish(&mut pieces, span, context);
        self.recycle(pieces);
        word
    }

    /// A word without quotes, escapes, expansions, patterns, braces and tildes, or one that is a single quoted text.
    /// Nothing is read when the word is of another kind.
    fn plain_word(&mut self) -> Option<Word<'a>> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let first = *bytes.first()?;
        let (text, length) = match first {
            b'\'' | b'"' => {
                let inner = bytes.get(1..)?;
                let length = inner.iter().position(|&byte| {
                    byte == first || first == b'"' && matches!(byte, b'\\' | b'$' | b'`')
                })?;
                if inner.get(length) != Some(&first) {
                    return None;
                }
                (rest.get(1..=length)?, length + 2)
            }
            _ => {
                let mut previous = b'=';
                let length = bytes.iter().position(|&byte| {
                    let stop = token::ends_word(byte)
                        || token::starts_quote(byte)
                        || matches!(byte, b'*' | b'?' | b'[' | b'{')
                        || byte == b'~' && matches!(previous, b'=' | b':');
                    previous = byte;
                    stop
                });
                let length = length.unwrap_or(bytes.len());
                (rest.get(..length)?, length)
            }
        };
        if bytes.get(length).is_some_and(|&byte| !token::ends_word(byte)) || length == 0 {
            return None;
        }
        let start = self.pos;
        self.pos += length;
        self.continued = false;
        Some(Word {
            span: Span::new(offset(start), offset(self.pos)),
            value: WordValue::Literal(Cow::Borrowed(text)),
        })
    }

    fn finish(pieces: &mut Vec<Piece<'a>>, span: Span, context: Context) -> Result<Word<'a>, LexError> {
        match assemble(pieces, context) {
            Ok(value) => Ok(Word { span, value }),
            Err((kind, message)) => Err(LexError::new(kind, span, message)),
        }
    }

    /// Whether brace expansion would change the word, or might.
    fn braces_count(&self, pieces: &[Piece<'a>], span: Span) -> Result<bool, LexError> {
        let possible = brace::possible(pieces);
        if possible && self.grammar == Grammar::Pipeline {
            return Err(LexError::new(ErrorKind::Construct, span, "brace expansion"));
        }
        if possible && self.continued {
            return Err(LexError::new(ErrorKind::Expansion, span, "braces in a word that spans lines"));
        }
        Ok(possible)
    }

    /// Reads the word at the cursor in pieces, up to the first unquoted blank, newline or operator.
    pub(crate) fn pieces(&mut self) -> Result<Vec<Piece<'a>>, LexError> {
        let start = self.pos;
        let mut pieces = core::mem::take(&mut self.spare);
        self.continued = false;
        let mut continued = false;
        while let Some(byte) = self.peek() {
            match byte {
                _ if token::ends_word(byte) => break,
                b'\'' => self.single_quotes(&mut pieces)?,
                b'"' => self.double_quotes(&mut pieces)?,
                b'\\' => continued |= self.escape(&mut pieces)?,
                b'`' => self.backticks(false, &mut pieces)?,
                b'$' => self.dollar(None, &mut pieces)?,
                _ => {
                    let run = self.take_until(|byte| token::ends_word(byte) || token::starts_quote(byte));
                    pieces.push(Piece::Plain(run));
                }
            }
        }
        self.continued = continued;
        // Bash 5.2 prints what it has parsed in `$( )` and parses that again, but prints no `;` after an `&`.
        let raw = self.slice(start, self.pos);
        if !self.substitutions.is_empty() && raw.ends_with('&') {
            let message = "a word inside `$( )` that ends with `\\&`; quote it otherwise";
            return Err(self.error(ErrorKind::Escape, start, self.pos, message));
        }
        Ok(pieces)
    }

    /// Keeps the storage of `pieces` for the next word.
    fn recycle(&mut self, mut pieces: Vec<Piece<'a>>) {
        pieces.clear();
        self.spare = pieces;
    }

    /// A backslash outside quotes. True when it continued the line.
    fn escape(&mut self, pieces: &mut Vec<Piece<'a>>) -> Result<bool, LexError> {
        let start = self.pos;
        if self.grammar == Grammar::Pipeline {
            return Err(self.error(
                ErrorKind::Escape,
                start,
                start + 1,
                "a backslash escape outside single quotes",
            ));
        }
        self.pos += 1;
        let Some(char) = self.rest().chars().next() else {
            return Err(self.error(ErrorKind::Escape, start, start + 1, "a backslash at the very end"));
        };
        let begin = self.pos;
        self.pos += char.len_utf8();
        if char == '\n' {
            return Ok(true);
        }
        pieces.push(Piece::Quoted(Cow::Borrowed(self.slice(begin, self.pos))));
        Ok(false)
    }

    fn single_quotes(&mut self, pieces: &mut Vec<Piece<'a>>) -> Result<(), LexError> {
        let start = self.pos;
        self.pos += 1;
        let text = self.take_until(|byte| byte == b'\'');
        if self.peek().is_none() {
            return Err(self.error(
                ErrorKind::UnterminatedQuote,
                start,
                start + 1,
                "this single quote is never closed",
            ));
        }
        self.pos += 1;
        pieces.push(Piece::Quoted(Cow::Borrowed(text)));
        Ok(())
    }

    fn double_quotes(&mut self, pieces: &mut Vec<Piece<'a>>) -> Result<(), LexError> {
        let start = self.pos;
        let before = pieces.len();
        self.pos += 1;
        self.soft_text(Soft::DoubleQuotes, pieces)?;
        if self.peek().is_none() {
            return Err(self.error(
                ErrorKind::UnterminatedQuote,
                start,
                start + 1,
                "this double quote is never closed",
            ));
        }
        self.pos += 1;
        if pieces.len() == before {
            pieces.push(Piece::Quoted(Cow::Borrowed("")));
        }
        Ok(())
    }

    /// Text in double quotes up to the closing one, or the body of a here-document up to the end of the input.
    fn soft_text(&mut self, soft: Soft, pieces: &mut Vec<Piece<'a>>) -> Result<(), LexError> {
        loop {
            let start = self.pos;
            let run = self.take_until(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'`'));
            if !run.is_empty() {
                pieces.push(Piece::Quoted(Cow::Borrowed(run)));
            }
            let Some(byte) = self.peek() else { return Ok(()) };
            let start = if run.is_empty() { start } else { self.pos };
            match byte {
                b'"' if soft == Soft::DoubleQuotes => return Ok(()),
                b'$' => self.dollar(Some(soft), pieces)?,
                b'`' => self.backticks(true, pieces)?,
                b'\\' if self.grammar == Grammar::Pipeline => {
                    let message = "a backslash in double quotes; use single quotes";
                    return Err(self.error(ErrorKind::Escape, start, start + 1, message));
                }
                b'\\' => {
                    self.pos += 1;
                    match self.peek() {
                        Some(b'\n') if soft == Soft::HereDocument => {
                            let message = "a backslash at the end of a line in a here-document";
                            return Err(self.error(ErrorKind::Escape, start, start + 1, message));
                        }
                        Some(b'\n') => self.pos += 1,
                        Some(escaped)
                            if matches!(escaped, b'$' | b'`' | b'\\')
                                || escaped == b'"' && soft == Soft::DoubleQuotes =>
                        {
                            let begin = self.pos;
                            self.pos += 1;
                            pieces.push(Piece::Quoted(Cow::Borrowed(self.slice(begin, self.pos))));
                        }
                        _ => pieces.push(Piece::Quoted(Cow::Borrowed("\\"))),
                    }
                }
                _ => {
                    self.pos += 1;
                    pieces.push(Piece::Quoted(Cow::Borrowed(self.slice(start, self.pos))));
                }
            }
        }
    }

    /// The body of an unquoted here-document from `start` to `end`, or one line of it.
    pub(crate) fn here_document_text(
        &mut self,
        start: usize,
        end: usize,
        pieces: &mut Vec<Piece<'a>>,
    ) -> Result<(), LexError> {
        let outside = (self.pos, self.end);
        (self.pos, self.end) = (start, end);
        let result = self.soft_text(Soft::HereDocument, pieces);
        (self.pos, self.end) = outside;
        result
    }

    /// What a `$` starts. `soft` says in what it stands when it is not in plain text.
    fn dollar(&mut self, soft: Option<Soft>, pieces: &mut Vec<Piece<'a>>) -> Result<(), LexError> {
        let start = self.pos;
        if self.grammar == Grammar::Pipeline {
            return Err(self.error(
                ErrorKind::Construct,
                start,
                start + 1,
                "`$` starts an expansion; use single quotes",
            ));
        }
        let quoted = soft.is_some();
        self.pos += 1;
        let rest = self.rest();
        if rest.starts_with("\\\n") || rest.starts_with("(\\\n") {
            return Err(self.error(ErrorKind::Expansion, start, start + 1, "an expansion that spans lines"));
        }
        let mut chars = rest.chars();
        match (chars.next(), chars.next()) {
            (Some('('), Some('(')) => {
                self.pos += 2;
                let text = self.scan(token::arithmetic).filter(|_| self.rest().starts_with("))"));
                let Some(text) = text else {
                    let message = "only numbers and operators are understood in `$(( ))`";
                    return Err(self.error(ErrorKind::Expansion, start, start + 3, message));
                };
                self.pos += 2;
                pieces.push(Piece::Part(Part::Arithmetic { text, quoted }));
            }
            (Some('('), _) => {
                self.pos += 1;
                let list = self.commands_in_parentheses(start)?;
                pieces.push(Piece::Part(Part::Substitution { list, quoted, pipe: false }));
            }
            (Some('{'), _) => {
                self.pos += 1;
                let Some(name) = self.scan(token::braced_parameter) else {
                    let end = self.pos + 1;
                    let message = "only `${name}` is understood, without operators";
                    return Err(self.error(ErrorKind::Expansion, start, end, message));
                };
                pieces.push(Piece::Part(Part::Variable { name, quoted }));
            }
            (Some('['), _) => {
                return Err(self.error(
                    ErrorKind::Expansion,
                    start,
                    start + 2,
                    "`$[ ]` arithmetic is not understood",
                ));
            }
            (Some('\''), _) if !quoted => {
                self.pos += 1;
                let Some(text) = self.scan(token::ansi_c) else {
                    let message = "this `$'…'` is not closed, or holds an escape that is not understood";
                    return Err(self.error(ErrorKind::Expansion, start, start + 2, message));
                };
                pieces.push(Piece::Quoted(Cow::Owned(text)));
            }
            (Some('"'), _) if !quoted => {
                return Err(self.error(
                    ErrorKind::Expansion,
                    start,
                    start + 2,
                    "a translated string `$\"…\"`",
                ));
            }
            (Some(other), _) if !other.is_ascii() => {
                let message = "`$` before a character whose meaning depends on the locale";
                return Err(self.error(ErrorKind::Expansion, start, start + 1, message));
            }
            _ => match self.scan(token::bare_parameter) {
                Some(_) if self.rest().starts_with("\\\n") => {
                    return Err(self.error(
                        ErrorKind::Expansion,
                        start,
                        self.pos,
                        "an expansion that spans lines",
                    ));
                }
                Some(name) => pieces.push(Piece::Part(Part::Variable { name, quoted })),
                None if quoted => pieces.push(Piece::Quoted(Cow::Borrowed("$"))),
                None => pieces.push(Piece::Dollar),
            },
        }
        Ok(())
    }

    /// `<( … )`, as far as it is a whole word.
    pub(crate) fn process_substitution(&mut self) -> Result<Word<'a>, LexError> {
        let start = self.pos;
        self.pos += 2;
        if self.rest().starts_with("\\\n") {
            return Err(self.error(ErrorKind::Expansion, start, start + 2, "an expansion that spans lines"));
        }
        let list = self.commands_in_parentheses(start)?;
        if self.peek().is_some_and(|byte| !token::ends_word(byte) || matches!(byte, b'<' | b'>' | b'(')) {
            let message = "a process substitution that is only a part of its word";
            return Err(self.error(ErrorKind::Construct, start, self.pos, message));
        }
        self.continued = false;
        let part = Part::Substitution { list, quoted: false, pipe: true };
        let span = Span::new(offset(start), offset(self.pos));
        Ok(Word { span, value: WordValue::Composite(alloc::vec![part]) })
    }

    /// The commands up to the closing parenthesis, with which they end, of a substitution whose opening one was read.
    fn commands_in_parentheses(&mut self, start: usize) -> Result<List<'a>, LexError> {
        self.enter(start)?;
        let pending = core::mem::take(&mut self.pending);
        self.substitutions.push(self.depth);
        let list = self.list(Stop::Paren, start)?;
        self.expect_closing(start)?;
        self.substitutions.pop();
        self.no_pending()?;
        self.pending = pending;
        self.leave();
        Ok(list)
    }

    /// `` `…` ``: bash reads its text up to the next backtick, whatever quotes are in it, and undoes backslashes first.
    fn backticks(&mut self, quoted: bool, pieces: &mut Vec<Piece<'a>>) -> Result<(), LexError> {
        let start = self.pos;
        if self.grammar == Grammar::Pipeline {
            return Err(self.error(
                ErrorKind::Construct,
                start,
                start + 1,
                "a backtick runs a command; use single quotes",
            ));
        }
        self.pos += 1;
        let begin = self.pos;
        let text = self.take_until(|byte| byte == b'`');
        let close = self.pos;
        if self.peek().is_none() {
            return Err(self.error(
                ErrorKind::UnterminatedQuote,
                start,
                start + 1,
                "this backtick is never closed",
            ));
        }
        if text.contains('\\') || quoted && text.contains('"') {
            let message = "backslashes and double quotes in backticks are not understood; use `$( )`";
            return Err(self.error(ErrorKind::Expansion, start, close + 1, message));
        }
        self.enter(start)?;
        let outside = core::mem::replace(&mut self.end, close);
        let pending = core::mem::take(&mut self.pending);
        self.pos = begin;
        let list = self.list(Stop::End, start)?;
        self.no_pending()?;
        self.pending = pending;
        self.end = outside;
        self.pos = close + 1;
        self.leave();
        pieces.push(Piece::Part(Part::Substitution { list, quoted, pipe: false }));
        Ok(())
    }
}
