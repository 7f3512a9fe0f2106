//! One argument as the program would get it, as far as its text is known.

use alloc::borrow::Cow;
use cmdgate_lexer::Span;

/// An argument.
#[derive(Debug, Clone)]
pub(crate) struct Arg<'a> {
    /// The text; for a pattern its source text, for an opaque argument the known beginning.
    pub(crate) text: Cow<'a, str>,
    /// Where it stands in the command.
    pub(crate) span: Span,
    /// How much is known.
    pub(crate) shape: Shape,
}

/// How much of an argument is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Exactly the text, as one argument.
    Exact,
    /// Names of existing files that match the text as a pattern, or the text itself.
    Pattern {
        /// How many bytes of the text come before the first pattern character.
        prefix: usize,
        /// Whether it may become more than one argument.
        many: bool,
    },
    /// The name of a pipe that only the command's own shell writes into.
    Pipe,
    /// Unknown text after the known beginning.
    Opaque {
        /// Whether it may become any number of arguments, none included.
        splits: bool,
    },
}

impl<'a> Arg<'a> {
    pub(crate) fn exact(text: impl Into<Cow<'a, str>>, span: Span) -> Self {
        Self { text: text.into(), span, shape: Shape::Exact }
    }

    /// The text, when it is exactly known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.shape {
            Shape::Exact => Some(&self.text),
            Shape::Pattern { .. } | Shape::Pipe | Shape::Opaque { .. } => None,
        }
    }

    /// Whether the program might take it for a flag.
    pub(crate) fn may_begin_with(&self, dash: char) -> bool {
        match self.shape {
            Shape::Exact => self.text.len() > 1 && self.text.starts_with(dash),
            Shape::Pipe => false,
            Shape::Pattern { prefix, .. } => prefix == 0 || self.text.starts_with(dash),
            Shape::Opaque { splits } => splits || self.text.is_empty() || self.text.starts_with(dash),
        }
    }

    /// Whether it is a pattern that the shell expands here: then its paths are judged already, as listed by the shell.
    pub(crate) fn is_pattern_of_shell(&self) -> bool {
        matches!(self.shape, Shape::Pattern { many: true, .. })
    }

    /// Names of files inside the project that a program prints, any number of them, split at blanks.
    pub(crate) fn printed_names(span: Span) -> Self {
        Self { text: Cow::Borrowed(""), span, shape: Shape::Pattern { prefix: 0, many: true } }
    }

    /// Whether it is [`Self::printed_names`]: a pattern that someone wrote has a text.
    pub(crate) fn is_printed_names(&self) -> bool {
        self.text.is_empty() && self.is_pattern_of_shell()
    }

    /// Whether it may become several arguments, or none.
    pub(crate) fn is_many(&self) -> bool {
        match self.shape {
            Shape::Exact | Shape::Pipe => false,
            Shape::Pattern { many, .. } => many,
            Shape::Opaque { splits } => splits,
        }
    }
}
