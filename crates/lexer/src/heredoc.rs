//! Here-documents. Their bodies stand after the newline that ends the line of the operator, wherever in that line the
//! operator is, so a body is read long after its redirection, and put in its place at the end.

use crate::parser::{Parser, offset};
use crate::pieces::{Context, Piece, assemble};
use crate::script::{Command, CompoundKind, List, Redirect, RedirectKind};
use crate::word::{Part, Word, WordValue};
use crate::{ErrorKind, LexError, Span, token};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Bash gives up when more than this many bodies are awaited.
const MAX_PENDING: usize = 16;

/// A here-document whose body has not been reached.
pub(crate) struct Pending<'a> {
    delimiter: Cow<'a, str>,
    /// Whether leading tabs are removed (`<<-`).
    tabs: bool,
    quoted: bool,
    /// Where the delimiter stands behind the operator.
    span: Span,
    /// Its place among the bodies.
    index: usize,
}

impl<'a> Parser<'a> {
    /// The delimiter at the cursor.
    pub(crate) fn here_document(&mut self, tabs: bool) -> Result<RedirectKind<'a>, LexError> {
        let start = self.pos;
        let mut pieces = self.pieces()?;
        let span = Span::new(offset(start), offset(self.pos));
        let raw = span.of(self.source);
        let quoted = pieces.iter().any(|piece| matches!(piece, Piece::Quoted(_)));
        let delimiter = match assemble(&mut pieces, Context::Operand) {
            Ok(WordValue::Literal(text)) => text,
            Ok(WordValue::Composite(_)) | Err(_) => Cow::Borrowed(""),
        };
        if delimiter.is_empty() || delimiter.contains('\n') || raw.contains(['$', '`']) || self.continued {
            return Err(LexError::new(
                ErrorKind::Syntax,
                span,
                "this delimiter of a here-document is not understood",
            ));
        }
        let index = self.bodies.len();
        self.pending.push(Pending { delimiter, tabs, quoted, span, index });
        if self.pending.len() > MAX_PENDING {
            return Err(LexError::new(ErrorKind::TooLarge, span, "too many here-documents in one line"));
        }
        self.bodies.push(None);
        let place = offset(index);
        let body = Word { span: Span::new(place, place), value: WordValue::Literal(Cow::Borrowed("")) };
        Ok(RedirectKind::HereDocument { body, quoted })
    }

    /// Refuses here-documents whose bodies did not come before the text around them ended.
    pub(crate) fn no_pending(&self) -> Result<(), LexError> {
        match self.pending.first() {
            None => Ok(()),
            Some(pending) => Err(LexError::new(
                ErrorKind::Syntax,
                pending.span,
                "the body of this here-document is missing",
            )),
        }
    }

    /// Reads the bodies that start at the cursor, which is just after a newline.
    pub(crate) fn here_documents(&mut self) -> Result<(), LexError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let line_end = self.pos;
        for pending in core::mem::take(&mut self.pending) {
            let body = self.body(&pending)?;
            self.last_in_substitution(&pending, line_end)?;
            if let Some(place) = self.bodies.get_mut(pending.index) {
                *place = Some(body);
            }
        }
        Ok(())
    }

    /// Bash 5.2 prints what it has parsed in `$( )` and parses that again, and what follows the body of a here-document
    /// can then end up in the wrong place. So a here-document must be the last thing in a `$( )`.
    fn last_in_substitution(&self, document: &Pending<'a>, line_end: usize) -> Result<(), LexError> {
        let Some(&depth) = self.substitutions.last() else { return Ok(()) };
        let blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
        let line_is_over = blank(self.slice(document.span.end as usize, line_end));
        let after = self.rest().trim_start_matches([' ', '\t', '\n']);
        if self.depth == depth && line_is_over && after.starts_with(')') {
            return Ok(());
        }
        let message = "inside `$( )` a here-document is understood only at the very end";
        Err(LexError::new(ErrorKind::Syntax, document.span, message))
    }

    fn body(&mut self, document: &Pending<'a>) -> Result<Word<'a>, LexError> {
        let start = self.pos;
        // The lines of a `<<-` body without their tabs; otherwise one piece for all.
        let mut lines: Vec<(usize, usize)> = Vec::new();
        let end = loop {
            let line_start = self.pos;
            let scanned = if self.pos < self.end { self.scan(token::line) } else { None };
            let Some((line, _)) = scanned else {
                let message = "this here-document has no line that ends it";
                return Err(LexError::new(ErrorKind::Syntax, document.span, message));
            };
            let text = if document.tabs { line.trim_start_matches('\t') } else { line };
            if text == document.delimiter {
                break line_start;
            }
            // Inside `$( )` bash takes such a line as the end of the document and of the substitution.
            if !self.substitutions.is_empty() && text.starts_with(&*document.delimiter) && text.contains(')')
            {
                let line = Span::new(offset(line_start), offset(line_start + line.len()));
                let message =
                    "a line of a here-document that starts with its delimiter and closes a parenthesis";
                return Err(LexError::new(ErrorKind::Syntax, line, message));
            }
            if document.tabs {
                lines.push((line_start + line.len() - text.len(), self.pos));
            }
        };
        let span = Span::new(offset(start), offset(end));
        if !document.tabs {
            lines.push((start, end));
        }
        let value = if document.quoted {
            match lines.as_slice() {
                [] => WordValue::Literal(Cow::Borrowed("")),
                [(from, to)] => WordValue::Literal(Cow::Borrowed(self.slice(*from, *to))),
                several => {
                    let text: String = several.iter().map(|(from, to)| self.slice(*from, *to)).collect();
                    WordValue::Literal(Cow::Owned(text))
                }
            }
        } else {
            let mut pieces = Vec::new();
            for (from, to) in lines {
                self.here_document_text(from, to, &mut pieces)?;
            }
            assemble(&mut pieces, Context::Operand)
                .map_err(|(kind, message)| LexError::new(kind, span, message))?
        };
        Ok(Word { span, value })
    }
}

/// Puts the bodies where their redirections wait for them.
pub(crate) fn fill<'a>(list: &mut List<'a>, bodies: &mut [Option<Word<'a>>]) {
    for item in &mut list.items {
        for stage in &mut item.pipeline.stages {
            match stage {
                Command::Simple(segment) => {
                    for assignment in &mut segment.assignments {
                        fill_word(&mut assignment.value, bodies);
                    }
                    for word in &mut segment.words {
                        fill_word(word, bodies);
                    }
                    fill_redirects(&mut segment.redirects, bodies);
                }
                Command::Compound(compound) => {
                    fill_compound(&mut compound.kind, bodies);
                    fill_redirects(&mut compound.redirects, bodies);
                }
            }
        }
    }
}

fn fill_compound<'a>(kind: &mut CompoundKind<'a>, bodies: &mut [Option<Word<'a>>]) {
    match kind {
        CompoundKind::Subshell(list) | CompoundKind::Group(list) => fill(list, bodies),
        CompoundKind::For { words, body, .. } => {
            for word in words {
                fill_word(word, bodies);
            }
            fill(body, bodies);
        }
        CompoundKind::While { condition, body, .. } => {
            fill(condition, bodies);
            fill(body, bodies);
        }
        CompoundKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                fill(condition, bodies);
                fill(body, bodies);
            }
            if let Some(body) = otherwise {
                fill(body, bodies);
            }
        }
        CompoundKind::Case { word, arms } => {
            fill_word(word, bodies);
            for (patterns, body) in arms {
                for word in patterns {
                    fill_word(word, bodies);
                }
                if let Some(body) = body {
                    fill(body, bodies);
                }
            }
        }
        CompoundKind::Conditional(words) => {
            for word in words {
                fill_word(word, bodies);
            }
        }
        CompoundKind::Arithmetic(_) => {}
    }
}

fn fill_redirects<'a>(redirects: &mut [Redirect<'a>], bodies: &mut [Option<Word<'a>>]) {
    for redirect in redirects {
        match &mut redirect.kind {
            RedirectKind::HereDocument { body, .. } => {
                let waiting = bodies.get_mut(body.span.start as usize).and_then(Option::take);
                if let Some(word) = waiting {
                    *body = word;
                }
                fill_word(body, bodies);
            }
            RedirectKind::Read(word)
            | RedirectKind::ReadWrite(word)
            | RedirectKind::HereString(word)
            | RedirectKind::Write { target: word, .. }
            | RedirectKind::WriteBoth { target: word, .. } => fill_word(word, bodies),
            RedirectKind::Duplicate(_) | RedirectKind::Close => {}
        }
    }
}

fn fill_word<'a>(word: &mut Word<'a>, bodies: &mut [Option<Word<'a>>]) {
    let WordValue::Composite(parts) = &mut word.value else {
        return;
    };
    for part in parts {
        match part {
            Part::Substitution { list, .. } => fill(list, bodies),
            Part::Text(_)
            | Part::Glob(_)
            | Part::Tilde(_)
            | Part::Variable { .. }
            | Part::Arithmetic { .. } => {}
        }
    }
}
