//! Splits a shell command line into the words that bash would pass, and refuses what it cannot know.
//!
//! The lexer knows nothing of programs, files or users. It admits an enumerated set of constructs and answers
//! everything else with a [`LexError`].
#![no_std]

extern crate alloc;

mod brace;
mod compound;
mod error;
mod heredoc;
mod invariants;
mod parser;
mod pieces;
mod script;
mod span;
mod token;
mod word;
mod words;

pub use error::{ErrorKind, LexError};
pub use invariants::{Violation, check_invariants};
pub use parser::{MAX_COMMANDS, MAX_DEPTH, MAX_LENGTH, MAX_STAGES};
pub use script::{
    Assignment, Command, Compound, CompoundKind, Connector, Grammar, List, ListItem, Pipeline, Redirect,
    RedirectKind, Script, Segment,
};
pub use span::Span;
pub use word::{Glob, Part, Word, WordValue};

/// Reads `source` as `bash -c` would, within `grammar`.
///
/// # Errors
///
/// [`LexError`] for everything that the grammar does not admit.
pub fn lex(source: &str, grammar: Grammar) -> Result<Script<'_>, LexError> {
    let all = Span::new(0, u32::try_from(source.len()).unwrap_or(u32::MAX));
    if source.len() > MAX_LENGTH {
        return Err(LexError::new(ErrorKind::TooLarge, all, "longer than a mebibyte"));
    }
    if let Some((at, char)) =
        source.char_indices().find(|&(_, char)| char.is_control() && char != '\t' && char != '\n')
    {
        let end = at + char.len_utf8();
        let span = Span::new(u32::try_from(at).unwrap_or(u32::MAX), u32::try_from(end).unwrap_or(u32::MAX));
        return Err(LexError::new(ErrorKind::ControlCharacter, span, "a control character"));
    }
    parser::Parser::new(source, grammar).script()
}
