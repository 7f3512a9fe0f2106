//! Words: what bash passes to a program, or the parts from which it would make that.

use crate::{List, Span};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// One word after quote removal and brace expansion.
///
/// Brace expansion of literals (`{a,b}.txt`) is already done: each result is a word of its own, and all of them
/// carry the span of the text that they came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// Where the word stands in the source, quotes included.
    pub span: Span,
    /// Its value.
    pub value: WordValue<'a>,
}

/// What is known of a word's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordValue<'a> {
    /// Exactly this text is passed, as one argument.
    Literal(Cow<'a, str>),
    /// The text depends on files, variables or other commands. Never empty, and never only [`Part::Text`]. Empty
    /// quotes leave no part, so a word of nothing but unquoted expansions may vanish, or may not.
    Composite(Vec<Part<'a>>),
}

/// A piece of a composite word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text that bash takes literally: quoted text, or plain text outside quotes, already unquoted. Two pieces of
    /// text never stand next to each other.
    Text(Cow<'a, str>),
    /// An unquoted pattern character of pathname expansion; in a pattern of `case` or `[[`, of that pattern. Where no
    /// file matches, bash passes the word as it is written.
    Glob(Glob<'a>),
    /// A leading unquoted `~`, or one after `=` or `:` in an assignment-like word; the text is the user name, empty
    /// for one's own home. Where it is unclear whether bash would expand it, as in `~"a"`, it is here as well.
    Tilde(&'a str),
    /// `$name` or `${name}`; also the special parameters, with their one-character names (`?`, `#`, `$`, `@`, `1`).
    /// The parameters `@` and `*` can be any number of words, `@` even in quotes.
    Variable {
        /// The name without `$` and braces.
        name: &'a str,
        /// Whether it stands in double quotes: then it is never split and never a pattern.
        quoted: bool,
    },
    /// `$( … )`, backticks, or `<( … )`.
    Substitution {
        /// The commands inside.
        list: List<'a>,
        /// Whether it stands in double quotes: then it is never split and never a pattern.
        quoted: bool,
        /// Whether it is `<( … )`: the word, of which it is all, is then the name of a pipe (`/dev/fd/63`) from which the
        /// output can be read, and the commands run beside the one that the word belongs to.
        pipe: bool,
    },
    /// `$(( … ))` made of numbers and operators alone: no names, no subscripts, no assignment.
    Arithmetic {
        /// The expression.
        text: &'a str,
        /// Whether it stands in double quotes.
        quoted: bool,
    },
}

/// A pattern character of pathname expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glob<'a> {
    /// `*`
    Any,
    /// `?`
    One,
    /// `[…]`, with the brackets.
    Class(&'a str),
}

impl<'a> Word<'a> {
    /// The text, when it is exactly known.
    pub fn literal(&self) -> Option<&str> {
        match &self.value {
            WordValue::Literal(text) => Some(text),
            WordValue::Composite(_) => None,
        }
    }

    /// The parts, when the text is not exactly known; empty for a literal.
    pub fn parts(&self) -> &[Part<'a>] {
        match &self.value {
            WordValue::Literal(_) => &[],
            WordValue::Composite(parts) => parts,
        }
    }
}
