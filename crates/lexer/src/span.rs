//! Byte ranges of the source text.

use core::ops::Range;

/// A half-open range of bytes in the command that was lexed.
///
/// ```
/// use cmdgate_lexer::Span;
/// let span = Span::new(4, 7);
/// assert_eq!(span.of("git log"), "log");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span from `start` to `end`, in bytes.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The text of `source` that this span covers; empty when the span does not fit `source`.
    pub fn of(self, source: &str) -> &str {
        source.get(self.range()).unwrap_or("")
    }

    /// The span as a range of `usize`, for slicing.
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Length in bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether the span covers nothing.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
}
