//! Compound commands: groups, loops, conditionals.

use crate::parser::{Keyword, Parser, Stop, offset};
use crate::pieces::Context;
use crate::word::{Word, WordValue};
use crate::{Command, Compound, CompoundKind, ErrorKind, LexError, RedirectKind, Span, token};
use alloc::borrow::Cow;
use alloc::vec::Vec;

impl<'a> Parser<'a> {
    /// The compound command that `keyword`, which is under the cursor, starts.
    pub(crate) fn compound(&mut self, keyword: Keyword) -> Result<Command<'a>, LexError> {
        let start = self.pos;
        self.enter(start)?;
        let kind = match keyword {
            Keyword::Open => self.group()?,
            Keyword::If => self.conditional_branches()?,
            Keyword::For => self.for_loop()?,
            Keyword::While => self.while_loop(false)?,
            Keyword::Until => self.while_loop(true)?,
            Keyword::Case => self.case()?,
            Keyword::OpenTest => self.test()?,
            Keyword::Select => {
                return Err(
                    self.error_here(ErrorKind::Construct, "`select` asks for input and is not understood")
                );
            }
            Keyword::Function => return Err(self.error_here(ErrorKind::Construct, "a function definition")),
            Keyword::Coproc => {
                return Err(
                    self.error_here(ErrorKind::Construct, "`coproc` runs a command in the background")
                );
            }
            Keyword::Then
            | Keyword::Elif
            | Keyword::Else
            | Keyword::Fi
            | Keyword::Esac
            | Keyword::Do
            | Keyword::Done
            | Keyword::In
            | Keyword::Time
            | Keyword::Close
            | Keyword::Not
            | Keyword::CloseTest => {
                return Err(self.error_here(ErrorKind::Syntax, "this reserved word does not belong here"));
            }
        };
        self.leave();
        self.finish_compound(start, kind)
    }

    /// The redirections after a compound command.
    fn finish_compound(&mut self, start: usize, kind: CompoundKind<'a>) -> Result<Command<'a>, LexError> {
        let mut redirects = Vec::new();
        let mut end = self.pos;
        loop {
            self.blanks();
            if !self.at_redirect() {
                break;
            }
            let redirect = self.redirect()?;
            if !self.substitutions.is_empty() && matches!(redirect.kind, RedirectKind::HereDocument { .. }) {
                let message = "inside `$( )` only a simple command can have a here-document";
                return Err(LexError::new(ErrorKind::Syntax, redirect.span, message));
            }
            redirects.push(redirect);
            end = self.pos;
        }
        self.pos = end;
        Ok(Command::Compound(Compound { kind, redirects, span: Span::new(offset(start), offset(end)) }))
    }

    /// `( … )` or `(( … ))`.
    pub(crate) fn parenthesis(&mut self) -> Result<Command<'a>, LexError> {
        let start = self.pos;
        self.enter(start)?;
        if self.rest().starts_with("(\\\n") {
            return Err(self.error_here(ErrorKind::Syntax, "a continued line directly after a parenthesis"));
        }
        let kind = if self.peek_second() == Some(b'(') {
            self.pos += 2;
            let text = self.scan(token::arithmetic).filter(|_| self.rest().starts_with("))"));
            let Some(text) = text else {
                let message = "only numbers and operators are understood in `(( ))`";
                return Err(self.error(ErrorKind::Expansion, start, start + 2, message));
            };
            self.pos += 2;
            CompoundKind::Arithmetic(text)
        } else {
            self.pos += 1;
            let list = self.list(Stop::Paren, start)?;
            self.expect_closing(start)?;
            CompoundKind::Subshell(list)
        };
        self.leave();
        self.finish_compound(start, kind)
    }

    fn group(&mut self) -> Result<CompoundKind<'a>, LexError> {
        let start = self.pos;
        self.pos += 1;
        let list = self.list(Stop::Brace, start)?;
        self.pos += 1;
        Ok(CompoundKind::Group(list))
    }

    fn conditional_branches(&mut self) -> Result<CompoundKind<'a>, LexError> {
        let start = self.pos;
        let outside = self.stages;
        let mut branches = Vec::new();
        let mut otherwise = None;
        self.pos += 2;
        loop {
            let condition = self.list(Stop::Then, start)?;
            self.pos += 4;
            let body = self.list(Stop::Branch, start)?;
            branches.push((condition, body));
            match self.keyword() {
                Some(Keyword::Elif) => {
                    // Each `elif` is one more level of bash's parser stack.
                    self.count_stage()?;
                    self.pos += 4;
                }
                Some(Keyword::Else) => {
                    self.pos += 4;
                    otherwise = Some(self.list(Stop::Fi, start)?);
                    break;
                }
                _ => break,
            }
        }
        self.stages = outside;
        self.expect_keyword(Keyword::Fi, "fi", "`fi` is missing")?;
        Ok(CompoundKind::If { branches, otherwise })
    }

    fn while_loop(&mut self, until: bool) -> Result<CompoundKind<'a>, LexError> {
        let start = self.pos;
        self.pos += 5;
        let condition = self.list(Stop::Do, start)?;
        self.pos += 2;
        let body = self.list(Stop::Done, start)?;
        self.pos += 4;
        Ok(CompoundKind::While { until, condition, body })
    }

    fn for_loop(&mut self) -> Result<CompoundKind<'a>, LexError> {
        let start = self.pos;
        self.pos += 3;
        self.blanks();
        let name_start = self.pos;
        let name = self.scan(token::name).filter(|_| matches!(self.peek(), Some(b' ' | b'\t')));
        let Some(name) = name else {
            return Err(self.error(
                ErrorKind::Syntax,
                start,
                start + 3,
                "only `for NAME in …` is understood",
            ));
        };
        let name_span = Span::new(offset(name_start), offset(self.pos));
        // Inside `case`, bash 5.2 does not find an `in` on the next line.
        self.blanks();
        self.expect_keyword(Keyword::In, "in", "only `for NAME in …` on one line is understood")?;
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b';') => {
                    self.pos += 1;
                    break;
                }
                Some(b'\n' | b'#') => break,
                Some(byte) if !token::ends_word(byte) => {
                    let at = self.pos;
                    self.words(&mut words)?;
                    if matches!(self.peek(), Some(b'<' | b'>' | b'(')) {
                        return Err(self.error(
                            ErrorKind::Syntax,
                            at,
                            self.pos + 1,
                            "an operator among the words",
                        ));
                    }
                }
                _ => {
                    return Err(
                        self.error_here(ErrorKind::Syntax, "`;` or a newline is missing after the words")
                    );
                }
            }
        }
        self.newlines()?;
        self.expect_keyword(Keyword::Do, "do", "this loop has no `do`")?;
        let body = self.list(Stop::Done, start)?;
        self.pos += 4;
        Ok(CompoundKind::For { name, name_span, words, body })
    }

    fn case(&mut self) -> Result<CompoundKind<'a>, LexError> {
        let start = self.pos;
        self.pos += 4;
        self.blanks();
        let word = self.operand(Context::Operand)?;
        self.blanks();
        self.expect_keyword(Keyword::In, "in", "this `case` has no `in`")?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.keyword() == Some(Keyword::Esac) {
                self.pos += 4;
                return Ok(CompoundKind::Case { word, arms });
            }
            if self.peek().is_none() {
                return Err(self.error(ErrorKind::Syntax, start, start + 4, "this `case` has no `esac`"));
            }
            if self.peek() == Some(b'(') {
                self.pos += 1;
            }
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                let pattern = self.operand(Context::Pattern)?;
                // Inside braces bash counts a `}` here as the one that closes them.
                if matches!(pattern.literal(), Some("esac" | "{" | "}")) {
                    return Err(LexError::new(
                        ErrorKind::Syntax,
                        pattern.span,
                        "a reserved word as a pattern",
                    ));
                }
                patterns.push(pattern);
                self.blanks();
                match self.peek() {
                    Some(b'|') => self.pos += 1,
                    Some(b')') => break,
                    _ => return Err(self.error_here(ErrorKind::Syntax, "`)` is missing after the pattern")),
                }
            }
            self.pos += 1;
            self.newlines()?;
            let empty = self.rest().starts_with(";;") || self.keyword() == Some(Keyword::Esac);
            let body = if empty { None } else { Some(self.list(Stop::Arm, start)?) };
            arms.push((patterns, body));
            if self.rest().starts_with(";&") {
                return Err(self.error_here(ErrorKind::Construct, "`;&` is not understood"));
            }
            if self.rest().starts_with(";;") {
                if self.rest().starts_with(";;&") {
                    return Err(self.error(
                        ErrorKind::Construct,
                        self.pos,
                        self.pos + 3,
                        "`;;&` is not understood",
                    ));
                }
                self.pos += 2;
            } else if self.keyword() != Some(Keyword::Esac) {
                return Err(self.error_here(ErrorKind::Syntax, "`;;` or `esac` is missing"));
            }
        }
    }

    /// One word that must be there.
    fn operand(&mut self, context: Context) -> Result<Word<'a>, LexError> {
        match self.peek() {
            Some(b'#') | None => Err(self.error_here(ErrorKind::Syntax, "a word is missing here")),
            Some(byte) if token::ends_word(byte) => {
                Err(self.error_here(ErrorKind::Syntax, "a word is missing here"))
            }
            Some(_) => self.word(context),
        }
    }

    // `[[ … ]]`

    fn test(&mut self) -> Result<CompoundKind<'a>, LexError> {
        let start = self.pos;
        let mut words = Vec::new();
        self.pos += 2;
        self.test_or(start, &mut words)?;
        self.blanks();
        if self.keyword() != Some(Keyword::CloseTest) {
            return Err(self.error(ErrorKind::Syntax, start, self.pos + 1, "this test is not understood"));
        }
        self.pos += 2;
        Ok(CompoundKind::Conditional(words))
    }

    /// An operator of a test as a word of its own.
    fn test_operator(&mut self, length: usize, words: &mut Vec<Word<'a>>) {
        let start = self.pos;
        self.pos += length;
        let text = self.slice(start, self.pos);
        let span = Span::new(offset(start), offset(self.pos));
        words.push(Word { span, value: WordValue::Literal(Cow::Borrowed(text)) });
    }

    fn test_or(&mut self, start: usize, words: &mut Vec<Word<'a>>) -> Result<(), LexError> {
        loop {
            self.test_term(start, words)?;
            self.blanks();
            if !self.rest().starts_with("&&") && !self.rest().starts_with("||") {
                return Ok(());
            }
            self.test_operator(2, words);
            self.newlines()?;
        }
    }

    fn test_term(&mut self, start: usize, words: &mut Vec<Word<'a>>) -> Result<(), LexError> {
        loop {
            self.blanks();
            if self.keyword() != Some(Keyword::Not) {
                break;
            }
            self.count_stage()?;
            self.test_operator(1, words);
        }
        if self.peek() == Some(b'(') {
            self.enter(self.pos)?;
            self.test_operator(1, words);
            self.test_or(start, words)?;
            self.blanks();
            if self.peek() != Some(b')') {
                return Err(self.error_here(ErrorKind::Syntax, "`)` is missing in this test"));
            }
            self.test_operator(1, words);
            self.leave();
            return Ok(());
        }
        let at = self.pos;
        if self.keyword() == Some(Keyword::CloseTest) {
            return Err(self.error_here(ErrorKind::Syntax, "this test is not complete"));
        }
        let left = self.operand(Context::Operand)?;
        let raw = self.slice(at, self.pos);
        let unary = raw.len() == 2
            && matches!(raw.as_bytes(), [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter));
        words.push(left);
        if self.continued {
            return Err(self.error(ErrorKind::Syntax, at, self.pos, "a word of a test that spans lines"));
        }
        self.blanks();
        if unary {
            return self.test_operand(Context::Operand, words);
        }
        let at = self.pos;
        let comparison = match (self.peek(), self.peek_second()) {
            (Some(b'<' | b'>'), Some(b' ' | b'\t')) => {
                self.test_operator(1, words);
                Context::Operand
            }
            (Some(b'&' | b'|' | b')'), _) => return Ok(()),
            (Some(byte), _) if !token::ends_word(byte) => {
                if self.keyword() == Some(Keyword::CloseTest) {
                    return Ok(());
                }
                let length = self.rest().bytes().position(token::ends_word).unwrap_or(self.rest().len());
                let context = match self.slice(at, at + length) {
                    "=" | "==" | "!=" | "=~" => Context::Pattern,
                    "-ef" | "-nt" | "-ot" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => Context::Operand,
                    _ => {
                        return Err(self.error(
                            ErrorKind::Syntax,
                            at,
                            at + length,
                            "not an operator of a test",
                        ));
                    }
                };
                self.test_operator(length, words);
                context
            }
            _ => return Err(self.error_here(ErrorKind::Syntax, "this test is not understood")),
        };
        let regex = self.slice(at, self.pos) == "=~";
        self.blanks();
        let right = self.pos;
        self.test_operand(comparison, words)?;
        if regex && self.slice(right, self.pos).contains(['\\', '\'', '"', '`']) {
            return Err(self.error(
                ErrorKind::Syntax,
                right,
                self.pos,
                "quotes in a regular expression after `=~`",
            ));
        }
        Ok(())
    }

    fn test_operand(&mut self, context: Context, words: &mut Vec<Word<'a>>) -> Result<(), LexError> {
        if self.keyword() == Some(Keyword::CloseTest) {
            return Err(self.error_here(ErrorKind::Syntax, "this test is not complete"));
        }
        let word = self.operand(context)?;
        words.push(word);
        Ok(())
    }
}
