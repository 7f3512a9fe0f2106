//! Matching one pattern against one text.
//!
//! `*` spans everything, `/` and spaces and newlines included, and `?` is one character, not one byte, so
//! the libraries made for file names do not fit (globset, for one, takes `?` as a byte). Matching is
//! without backtracking into earlier stars: the leftmost place for each literal run is always good enough.

use crate::pattern::PatternError;
use std::borrow::Cow;

/// The most texts that the alternatives of one pattern may stand for.
pub(crate) const MAX_ALTERNATIVES: usize = 256;
/// How deep `{…}` may nest.
const MAX_DEPTH: usize = 8;

/// One element of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// Exactly this character.
    Char(char),
    /// `?`
    AnyChar,
    /// `[…]`
    Class(Class),
    /// `*`
    Star,
    /// `**`; the same as `*` except at the places that [`crate::pattern`] knows.
    StarStar,
}

/// A set of characters: `[a-z]`, `[!0-9]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Class {
    negated: bool,
    ranges: Box<[(char, char)]>,
    /// Set in patterns that ignore case: the text has been folded, so both cases are tried.
    fold: bool,
}

impl Class {
    fn contains(&self, character: char) -> bool {
        let listed = |c: char| self.ranges.iter().any(|&(low, high)| low <= c && c <= high);
        if !self.fold {
            return listed(character) != self.negated;
        }
        // What one case satisfies, the folded text satisfies: a fold only ever adds matches.
        std::iter::once(character).chain(character.to_uppercase()).any(|c| listed(c) != self.negated)
    }
}

/// Splits a pattern into tokens, one list for each choice of its `{a,b}` alternatives.
pub(crate) fn parse(text: &str) -> Result<Vec<Vec<Token>>, PatternError> {
    Parser { text, at: 0, depth: 0 }.sequence(false)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..).and_then(|rest| rest.chars().next())
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Reads up to the end, or, inside braces, up to the `,` or `}` that ends this alternative.
    fn sequence(&mut self, in_braces: bool) -> Result<Vec<Vec<Token>>, PatternError> {
        // Of a whole pattern, not of each of its alternatives: those can be many.
        let most = if in_braces { 0 } else { self.text.len() };
        let mut lists = vec![Vec::with_capacity(most)];
        while let Some(character) = self.peek() {
            if in_braces && matches!(character, ',' | '}') {
                break;
            }
            let start = self.at;
            self.next();
            let token = match character {
                '\\' => Token::Char(self.next().ok_or(PatternError::DanglingEscape)?),
                '?' => Token::AnyChar,
                '*' if self.peek() == Some('*') => {
                    while self.peek() == Some('*') {
                        self.next();
                    }
                    Token::StarStar
                }
                '*' => Token::Star,
                '[' => Token::Class(self.class(start)?),
                '{' if self.has_alternatives(start)? => {
                    lists = self.alternatives(&lists)?;
                    continue;
                }
                other => Token::Char(other),
            };
            if let [list] = lists.as_mut_slice() {
                list.push(token);
                continue;
            }
            for list in &mut lists {
                list.push(token.clone());
            }
        }
        Ok(lists)
    }

    /// Whether the `{` at `start` has a `,` of its own before its `}`. As in bash, `{}` and `{print}`
    /// are plain text.
    fn has_alternatives(&self, start: usize) -> Result<bool, PatternError> {
        let mut depth = 0_usize;
        let mut escaped = false;
        let mut comma = false;
        for character in self.text.get(self.at..).unwrap_or_default().chars() {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '{' => depth += 1,
                '}' if depth == 0 => return Ok(comma),
                '}' => depth -= 1,
                ',' if depth == 0 => comma = true,
                _ => {}
            }
        }
        Err(PatternError::UnclosedBrace { at: start })
    }

    fn alternatives(&mut self, before: &[Vec<Token>]) -> Result<Vec<Vec<Token>>, PatternError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PatternError::TooDeep { limit: MAX_DEPTH });
        }
        let mut choices = self.sequence(true)?;
        while self.next() == Some(',') {
            choices.extend(self.sequence(true)?);
            if choices.len() > MAX_ALTERNATIVES {
                return Err(PatternError::TooManyAlternatives { limit: MAX_ALTERNATIVES });
            }
        }
        self.depth -= 1;
        if before.len().saturating_mul(choices.len()) > MAX_ALTERNATIVES {
            return Err(PatternError::TooManyAlternatives { limit: MAX_ALTERNATIVES });
        }
        let joined = before
            .iter()
            .flat_map(|head| choices.iter().map(move |tail| head.iter().chain(tail).cloned().collect()));
        Ok(joined.collect())
    }

    /// The inside of `[…]`; a `]` that comes first is one of its characters.
    fn class(&mut self, start: usize) -> Result<Class, PatternError> {
        let unclosed = PatternError::UnclosedClass { at: start };
        let negated = matches!(self.peek(), Some('!' | '^'));
        if negated {
            self.next();
        }
        let mut ranges = Vec::new();
        loop {
            let low = match self.next() {
                None => return Err(unclosed),
                Some(']') if !ranges.is_empty() => break,
                Some('\\') => self.next().ok_or(PatternError::DanglingEscape)?,
                Some(other) => other,
            };
            let after = self.text.get(self.at..).unwrap_or_default();
            if !after.starts_with('-') || after.starts_with("-]") {
                ranges.push((low, low));
                continue;
            }
            self.next();
            let high = match self.next() {
                None => return Err(unclosed),
                Some('\\') => self.next().ok_or(PatternError::DanglingEscape)?,
                Some(other) => other,
            };
            if high < low {
                return Err(PatternError::ReversedRange { low, high });
            }
            ranges.push((low, high));
        }
        Ok(Class { negated, ranges: ranges.into(), fold: false })
    }
}

/// Lower case in a way that also joins what some file systems join (`ſ` and `s`, the Kelvin sign and `k`).
/// Works character by character: the fold of a joined text is the join of the folds.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Owned(text.to_ascii_lowercase());
        }
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().flat_map(fold_char).collect())
}

fn fold_char(character: char) -> impl Iterator<Item = char> {
    character.to_uppercase().flat_map(char::to_lowercase)
}

/// The tokens of a pattern that ignores case, to be matched against a folded text.
pub(crate) fn fold_tokens(tokens: &[Token]) -> Vec<Token> {
    let mut folded = Vec::with_capacity(tokens.len());
    for token in tokens {
        match token {
            Token::Char(character) if character.is_ascii() => {
                folded.push(Token::Char(character.to_ascii_lowercase()));
            }
            Token::Char(character) => folded.extend(fold_char(*character).map(Token::Char)),
            Token::Class(class) => folded.push(Token::Class(Class { fold: true, ..class.clone() })),
            Token::AnyChar | Token::Star | Token::StarStar => folded.push(token.clone()),
        }
    }
    folded
}

/// Whether whatever fits `inner` fits `outer`, seen by matching one pattern against the other: a star of
/// `inner` can stand for anything, so only a star of `outer` takes it.
pub(crate) fn covers(outer: &[Token], inner: &[Token]) -> bool {
    let (mut outer_rest, mut inner_rest) = (outer, inner);
    let mut retry: Option<(&[Token], &[Token])> = None;
    loop {
        match (outer_rest, inner_rest) {
            ([], []) => return true,
            ([Token::Star | Token::StarStar, after @ ..], _) => {
                retry = Some((after, inner_rest));
                outer_rest = after;
                continue;
            }
            ([one, after_outer @ ..], [other, after_inner @ ..]) if token_covers(one, other) => {
                (outer_rest, inner_rest) = (after_outer, after_inner);
                continue;
            }
            _ => {}
        }
        // Let the last star of `outer` take one token more.
        match retry {
            Some((after, [_, longer @ ..])) => {
                retry = Some((after, longer));
                (outer_rest, inner_rest) = (after, longer);
            }
            Some((_, [])) | None => return false,
        }
    }
}

fn token_covers(outer: &Token, inner: &Token) -> bool {
    match (outer, inner) {
        (Token::AnyChar, Token::Char(_) | Token::AnyChar | Token::Class(_)) => true,
        (Token::Class(class), Token::Char(character)) => class.contains(*character),
        (Token::Class(outer), Token::Class(inner)) => outer == inner,
        (Token::Char(outer), Token::Char(inner)) => outer == inner,
        (Token::Char(_) | Token::AnyChar | Token::Class(_) | Token::Star | Token::StarStar, _) => false,
    }
}

/// A compiled pattern: runs without stars, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    first: Run,
    middle: Box<[Run]>,
    /// `None` when the pattern has no star.
    last: Option<Run>,
    /// Whether the pattern ended in ` **`: the rest of the text may follow, but only after a space.
    word_tail: bool,
}

/// A stretch of a pattern without stars.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Run {
    Literal(Box<str>),
    Mixed(Box<[Token]>),
}

impl Run {
    fn new(tokens: &[Token]) -> Self {
        let literal: Option<String> = tokens
            .iter()
            .map(|token| match token {
                Token::Char(character) => Some(*character),
                Token::AnyChar | Token::Class(_) | Token::Star | Token::StarStar => None,
            })
            .collect();
        match literal {
            Some(text) => Self::Literal(text.into()),
            None => Self::Mixed(tokens.into()),
        }
    }

    /// How many bytes of the text's beginning this run takes, if it fits there.
    fn fits(&self, text: &str) -> Option<usize> {
        match self {
            Self::Literal(literal) => text.starts_with(&**literal).then_some(literal.len()),
            Self::Mixed(tokens) => {
                let mut characters = text.chars();
                let mut taken = 0;
                for token in tokens {
                    let character = characters.next()?;
                    let fits = match token {
                        Token::Char(wanted) => character == *wanted,
                        Token::AnyChar => true,
                        Token::Class(class) => class.contains(character),
                        // A run is what stands between stars.
                        Token::Star | Token::StarStar => false,
                    };
                    if !fits {
                        return None;
                    }
                    taken += character.len_utf8();
                }
                Some(taken)
            }
        }
    }

    /// What remains after the first place where this run fits.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Literal(literal) => text.find(&**literal).and_then(|at| text.get(at + literal.len()..)),
            Self::Mixed(_) => text.char_indices().find_map(|(at, _)| {
                let rest = text.get(at..)?;
                rest.get(self.fits(rest)?..)
            }),
        }
    }

    fn fits_end(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => text.ends_with(&**literal),
            Self::Mixed(tokens) => {
                let start = text.char_indices().rev().nth(tokens.len().saturating_sub(1));
                start.and_then(|(at, _)| text.get(at..)).is_some_and(|end| self.fits(end) == Some(end.len()))
            }
        }
    }

    fn literal_parts(&self) -> Vec<Cow<'_, str>> {
        match self {
            Self::Literal(literal) => vec![Cow::Borrowed(literal)],
            Self::Mixed(tokens) => {
                let mut parts = vec![String::new()];
                for token in tokens {
                    match (token, parts.last_mut()) {
                        (Token::Char(character), Some(part)) => part.push(*character),
                        _ => parts.push(String::new()),
                    }
                }
                parts.into_iter().map(Cow::Owned).collect()
            }
        }
    }
}

impl Glob {
    pub(crate) fn new(tokens: &[Token], word_tail: bool) -> Self {
        let mut runs = tokens
            .split(|token| matches!(token, Token::Star | Token::StarStar))
            .map(Run::new)
            .collect::<std::collections::VecDeque<_>>();
        let first = runs.pop_front().unwrap_or_else(|| Run::Literal("".into()));
        let last = runs.pop_back();
        Self { first, middle: runs.into_iter().collect(), last, word_tail }
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some(mut rest) = self.first.fits(text).and_then(|taken| text.get(taken..)) else {
            return false;
        };
        let Some(last) = &self.last else {
            return rest.is_empty() || self.word_tail && rest.starts_with(' ');
        };
        for run in &self.middle {
            match run.find(rest) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        if last.fits_end(rest) {
            return true;
        }
        self.word_tail
            && rest.char_indices().any(|(at, _)| {
                let here = rest.get(at..).unwrap_or_default();
                let after = last.fits(here).and_then(|taken| here.get(taken..));
                after.is_some_and(|after| after.starts_with(' '))
            })
    }

    /// The whole text, for a pattern that can only match that one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match (&self.first, &self.last) {
            (Run::Literal(text), None) if !self.word_tail => Some(text),
            _ => None,
        }
    }

    /// The literal stretches that every matching text contains, empty ones left out.
    pub(crate) fn literal_parts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        std::iter::once(&self.first)
            .chain(&self.middle)
            .chain(&self.last)
            .flat_map(Run::literal_parts)
            .filter(|part| !part.is_empty())
    }
}
