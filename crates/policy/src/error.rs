//! What can be wrong with a policy, with the place where it is.

use crate::instant::TimestampError;
use crate::pattern::PatternError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// A place in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The bytes it covers.
    pub span: Range<usize>,
    /// The line where it starts, from 1.
    pub line: usize,
    /// The character in that line where it starts, from 1.
    pub column: usize,
}

impl Location {
    /// The line and column of a span in a text.
    pub fn of(text: &str, span: Range<usize>) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            span,
        }
    }
}

/// One fault in a policy: what it is, where, and what to do about it.
///
/// Printed, it reads `FILE:LINE:COLUMN: message` with what is known of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    kind: Box<PolicyErrorKind>,
    source_name: Option<String>,
    location: Option<Location>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// The text is not TOML, or holds a key or a value that a policy does not have.
    #[error("{message}")]
    Syntax {
        /// What the reader says.
        message: String,
        /// What to do about it, where that can be guessed.
        help: Option<String>,
    },
    /// The text is longer than a policy may be.
    #[error("the policy has {bytes} bytes; the most is {limit}")]
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A pattern that cannot be used.
    #[error("{problem}")]
    Pattern {
        /// The pattern as written.
        pattern: String,
        /// What is wrong with it.
        problem: PatternError,
    },
    /// An `expires` that is no moment.
    #[error("{0}")]
    Expires(TimestampError),
    /// A `match` example that the rule does not match.
    #[error("the rule `{pattern}` does not match its `match` example `{example}`")]
    ExampleNotMatched {
        /// The rule's pattern.
        pattern: String,
        /// The example.
        example: String,
    },
    /// A `not_match` example that the rule does match.
    #[error("the rule `{pattern}` matches its `not_match` example `{example}`")]
    ExampleMatched {
        /// The rule's pattern.
        pattern: String,
        /// The example.
        example: String,
    },
    /// A value that its key cannot have.
    #[error("`{key}` cannot be `{value}`: {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// Why not.
        problem: &'static str,
    },
    /// A regular expression that cannot be used.
    #[error("the regular expression `{expression}` cannot be used: {problem}")]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A `[[layer]]` inside a `[[layer]]`.
    #[error("layers do not nest")]
    NestedLayer,
    /// The policy cannot be written as TOML.
    #[error("the policy cannot be written as TOML: {message}")]
    Write {
        /// What the writer says.
        message: String,
    },
}

impl PolicyError {
    pub(crate) fn new(kind: PolicyErrorKind) -> Self {
        Self { kind: Box::new(kind), source_name: None, location: None }
    }

    pub(crate) fn known(
        kind: PolicyErrorKind,
        source_name: Option<&str>,
        location: Option<Location>,
    ) -> Self {
        Self { kind: Box::new(kind), source_name: source_name.map(str::to_owned), location }
    }

    pub(crate) fn at(kind: PolicyErrorKind, source_name: &str, text: &str, span: Range<usize>) -> Self {
        Self {
            kind: Box::new(kind),
            source_name: Some(source_name.to_owned()),
            location: Some(Location::of(text, span)),
        }
    }

    /// What is wrong.
    pub fn kind(&self) -> &PolicyErrorKind {
        &self.kind
    }

    /// The name of the file or other source, as the caller gave it.
    pub fn source_name(&self) -> Option<&str> {
        self.source_name.as_deref()
    }

    /// The place in the source.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }

    /// The bytes of the source that are at fault.
    pub fn span(&self) -> Option<Range<usize>> {
        self.location.as_ref().map(|location| location.span.clone())
    }

    /// The message without the place.
    pub fn message(&self) -> String {
        self.kind.to_string()
    }

    /// What to do about it, where there is more to say than the message does.
    pub fn help(&self) -> Option<&str> {
        match &*self.kind {
            PolicyErrorKind::ExampleNotMatched { .. } => Some(
                "change the pattern or the example; `*` spans everything, ` **` at the end is bound at a word",
            ),
            PolicyErrorKind::ExampleMatched { .. } => {
                Some("narrow the pattern; ` **` at the end is bound at a word, where `*` runs on into it")
            }
            PolicyErrorKind::NestedLayer => Some("write each layer as a [[layer]] of its own"),
            PolicyErrorKind::TooLarge { .. } => Some("join rules with `{a,b}` or `*`"),
            PolicyErrorKind::Syntax { help, .. } => help.as_deref(),
            PolicyErrorKind::Expression { .. } => Some(
                "quote it with '…', in which a backslash is a backslash; `\\.` is a dot, `\\b` a word's edge",
            ),
            PolicyErrorKind::Pattern { .. }
            | PolicyErrorKind::Expires(_)
            | PolicyErrorKind::Value { .. }
            | PolicyErrorKind::Write { .. } => None,
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.source_name {
            write!(f, "{name}:")?;
        }
        if let Some(location) = &self.location {
            write!(f, "{}:{}:", location.line, location.column)?;
        }
        if self.source_name.is_some() || self.location.is_some() {
            write!(f, " ")?;
        }
        write!(f, "{}", self.kind)
    }
}

impl std::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.kind {
            PolicyErrorKind::Pattern { problem, .. } => Some(problem),
            PolicyErrorKind::Expires(problem) => Some(problem),
            PolicyErrorKind::Syntax { .. }
            | PolicyErrorKind::TooLarge { .. }
            | PolicyErrorKind::ExampleNotMatched { .. }
            | PolicyErrorKind::ExampleMatched { .. }
            | PolicyErrorKind::Value { .. }
            | PolicyErrorKind::Expression { .. }
            | PolicyErrorKind::NestedLayer
            | PolicyErrorKind::Write { .. } => None,
        }
    }
}

/// All the faults found in one policy; never none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyErrors {
    first: PolicyError,
    rest: Vec<PolicyError>,
}

impl PolicyErrors {
    pub(crate) fn from_list(errors: Vec<PolicyError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        Some(Self { first: errors.next()?, rest: errors.collect() })
    }

    /// The fault that comes first in the source.
    pub fn first(&self) -> &PolicyError {
        &self.first
    }

    /// All of them, in the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = &PolicyError> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        1 + self.rest.len()
    }
}

impl From<PolicyError> for PolicyErrors {
    fn from(error: PolicyError) -> Self {
        Self { first: error, rest: Vec::new() }
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for error in &self.rest {
            write!(f, "\n{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyErrors {}
