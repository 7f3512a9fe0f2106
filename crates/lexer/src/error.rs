//! Why a command line was not accepted.

use crate::Span;
use alloc::borrow::Cow;
use core::fmt;

/// What the lexer refused. The code is stable API: front doors show it and tests name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing but blanks.
    Empty,
    /// Longer, deeper or with more parts than the limits allow.
    TooLarge,
    /// A control character, NUL or other character that has no place in a command line.
    ControlCharacter,
    /// A shell construct that the chosen grammar does not admit, such as `;` in the `pipeline` grammar.
    Construct,
    /// A backslash escape in the `pipeline` grammar.
    Escape,
    /// A quote that is never closed.
    UnterminatedQuote,
    /// A pipeline stage, list element or redirection without its command or word.
    EmptySegment,
    /// Text that bash would call a syntax error, or that this lexer does not know.
    Syntax,
    /// An expansion whose text cannot be known, such as `${x:-y}` or an indirect variable.
    Expansion,
}

impl ErrorKind {
    /// The stable spelling of this kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLarge => "too_large",
            Self::ControlCharacter => "control_character",
            Self::Construct => "construct",
            Self::Escape => "escape",
            Self::UnterminatedQuote => "unterminated_quote",
            Self::EmptySegment => "empty_segment",
            Self::Syntax => "syntax",
            Self::Expansion => "expansion",
        }
    }
}

/// A refusal: what, where, and one sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LexError {
    /// What was refused.
    pub kind: ErrorKind,
    /// The characters that decided.
    pub span: Span,
    /// One plain sentence fragment without a full stop.
    pub message: Cow<'static, str>,
}

impl LexError {
    /// An error of `kind` at `span`.
    pub fn new(kind: ErrorKind, span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, span, message: message.into() }
    }
}

impl fmt::Display for LexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (bytes {} to {})", self.message, self.span.start, self.span.end)
    }
}

impl core::error::Error for LexError {}
