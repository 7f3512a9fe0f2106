//! Splits a shell command line into the words that bash would pass, and refuses what it cannot know.
//!
//! The lexer knows nothing of programs, files or users, and does no I/O; it needs `alloc` and no `std`. It answers one
//! question: *if bash were given this text with `bash -c`, which commands would it run, with which words?*
//!
//! ```
//! use cmdgate_lexer::{Command, ErrorKind, Grammar, Part, lex};
//!
//! let script = lex(r#"grep -rn "a;b" src | head -20"#, Grammar::Pipeline)?;
//! let stages = &script.list.items[0].pipeline.stages;
//! let Command::Simple(grep) = &stages[0] else { panic!("not a simple command") };
//! let words: Vec<_> = grep.words.iter().filter_map(|word| word.literal()).collect();
//! assert_eq!(words, ["grep", "-rn", "a;b", "src"]);
//!
//! // A word that depends on files or variables is taken apart instead of guessed.
//! let script = lex("ls *.rs", Grammar::Pipeline)?;
//! let Command::Simple(ls) = &script.list.items[0].pipeline.stages[0] else { panic!("not a simple command") };
//! assert_eq!(ls.words[1].literal(), None);
//! assert!(matches!(ls.words[1].parts(), [Part::Glob(_), Part::Text(_)]));
//!
//! // What the grammar does not admit is refused, with the characters that decided.
//! let error = lex("ls; rm x", Grammar::Pipeline).unwrap_err();
//! assert_eq!((error.kind, error.span.of("ls; rm x")), (ErrorKind::Construct, ";"));
//! # Ok::<(), cmdgate_lexer::LexError>(())
//! ```
//!
//! # How it stays sound
//!
//! It admits an enumerated set of constructs; everything else is a [`LexError`]. A text of which any line is refused is
//! refused as a whole, although bash would run the lines before a syntax error. Accepted command lines are compared
//! with bash itself, tens of thousands in every test run, and [`check_invariants`] states what holds of every tree.
//!
//! It is checked against bash 5.2 in UTF-8 and C locales. Where the locale's character set is another one whose letters
//! have bytes in common with ASCII (GBK, Big5, Shift-JIS), bash itself reads UTF-8 text differently, so give it a
//! `LC_ALL` of one of those two. Bash 3.2, as macOS has it, knows no `|&`, `&>>`, zero-padded and stepped ranges, and
//! finds the end of `$( )` by counting parentheses.
//!
//! The set holds in a shell as `bash -c` starts it. A command that changes the shell (`shopt -s extglob`, `alias`,
//! `set -k`, a function, `POSIXLY_CORRECT=`) changes how later lines are read, so whoever judges the commands must not
//! let one pass. And `bash -c TEXT` takes a text that starts with `-` or `+` for options: run `bash -c -- TEXT`.
//!
//! # Where bash differs from what one would think
//!
//! - Only space, tab and newline separate words. A no-break space is part of a word; a carriage return would be, and
//!   is refused with all other control characters.
//! - A backslash at the end of a comment does not continue it; at the end of any other line it joins even the two
//!   halves of an operator or a variable's name, so where it might, the text is refused.
//! - Inside `$( )` bash 5.2 parses the text, prints the tree, and parses that again. The print loses the `;` after a
//!   word that ends in `\&`, misplaces what follows the body of a here-document, and `time` directly after `$(` names
//!   a program. These are refused.
//! - Braces are expanded in the text of a word before anything else, and a word may vanish in it (`{,}`), which would
//!   make the next word the command. Such braces are refused.
//! - A tilde counts after `=` and `:` in every word that looks like an assignment, also in arguments and in
//!   here-strings.
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
    if source.len() > MAX_LENGTH {
        let all = Span::new(0, parser::offset(source.len()));
        return Err(LexError::new(ErrorKind::TooLarge, all, "longer than a mebibyte"));
    }
    if let Some(error) = control_character(source) {
        return Err(error);
    }
    parser::Parser::new(source, grammar).script()
}

/// The refusal of the first control character other than tab and newline, if there is one. Some are separators to the
/// eye and part of a word to bash, some end a word in bash's own code, and no terminal shows any of them.
fn control_character(source: &str) -> Option<LexError> {
    // Nearly always there is none, which bytes tell faster than characters: 0xC2 starts the controls above ASCII.
    if !source.bytes().any(|byte| byte == 0xc2 || byte.is_ascii_control() && byte != b'\t' && byte != b'\n') {
        return None;
    }
    let forbidden = |&(_, char): &(usize, char)| char.is_control() && char != '\t' && char != '\n';
    let (at, char) = source.char_indices().find(forbidden)?;
    let span = Span::new(parser::offset(at), parser::offset(at + char.len_utf8()));
    Some(LexError::new(ErrorKind::ControlCharacter, span, "a control character"))
}
