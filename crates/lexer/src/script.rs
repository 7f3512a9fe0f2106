//! The shape of a command line: lists of pipelines of commands.

use crate::{Span, Word};
use alloc::vec::Vec;

/// Which constructs are admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Grammar {
    /// One pipeline of simple commands: no `;`, `&`, redirection, expansion, escape or newline.
    #[default]
    Pipeline,
    /// Sequences, groups, loops, redirections, escapes, here-documents and simple expansions as well.
    Sequence,
}

/// A whole accepted command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'a> {
    /// Its pipelines, in order.
    pub list: List<'a>,
}

/// Pipelines joined by `&&`, `||`, `;` or newlines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<'a> {
    /// The pipelines, each with what joins it to the one before.
    pub items: Vec<ListItem<'a>>,
}

/// One pipeline of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListItem<'a> {
    /// What stands before it.
    pub connector: Connector,
    /// The pipeline.
    pub pipeline: Pipeline<'a>,
}

/// How a pipeline follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Connector {
    /// The first of its list, or after `;` or a newline: it runs whatever came before.
    Then,
    /// After `&&`.
    And,
    /// After `||`.
    Or,
}

/// Commands joined by `|` (or `|&`). Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline<'a> {
    /// Whether `!` stands before it. A second `!` is refused.
    pub negated: bool,
    /// Whether the reserved word `time` (with or without `-p`) stands before it. After `|` the word names a program,
    /// as bash has it, and is a word of that stage.
    pub timed: bool,
    /// The commands.
    pub stages: Vec<Command<'a>>,
    /// The whole pipeline.
    pub span: Span,
}

/// One stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// A program, builtin or bare assignment with its words.
    Simple(Segment<'a>),
    /// A group, subshell, loop or conditional.
    Compound(Compound<'a>),
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment<'a> {
    /// `NAME=value` before the command word, in order. Subscripted targets are refused. An argument such as the `A=1`
    /// of `export A=1` is a word.
    pub assignments: Vec<Assignment<'a>>,
    /// The command word and its arguments; empty when there are only assignments or redirections.
    pub words: Vec<Word<'a>>,
    /// Redirections, in order, wherever they stand among the words.
    pub redirects: Vec<Redirect<'a>>,
    /// The whole segment, from its first to its last character.
    pub span: Span,
}

/// `NAME=value` or `NAME+=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// The variable.
    pub name: &'a str,
    /// Whether `+=`.
    pub append: bool,
    /// The value; an empty literal when nothing follows the `=`.
    pub value: Word<'a>,
    /// From the name to the end of the value.
    pub span: Span,
}

/// A compound command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound<'a> {
    /// Which one.
    pub kind: CompoundKind<'a>,
    /// Redirections after its closing word.
    pub redirects: Vec<Redirect<'a>>,
    /// The whole command.
    pub span: Span,
}

/// The compound commands that are understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompoundKind<'a> {
    /// `( … )`: changes of directory and variables stay inside.
    Subshell(List<'a>),
    /// `{ …; }`
    Group(List<'a>),
    /// `for NAME in WORDS; do …; done`. The form without `in` and that of arithmetic are refused.
    For {
        /// The loop variable.
        name: &'a str,
        /// Where the name stands.
        name_span: Span,
        /// The words, possibly none.
        words: Vec<Word<'a>>,
        /// The body.
        body: List<'a>,
    },
    /// `while` or `until`.
    While {
        /// `until` instead of `while`.
        until: bool,
        /// The condition.
        condition: List<'a>,
        /// The body.
        body: List<'a>,
    },
    /// `if …; then …; elif …; then …; else …; fi`
    If {
        /// Each condition with its body.
        branches: Vec<(List<'a>, List<'a>)>,
        /// The `else` body.
        otherwise: Option<List<'a>>,
    },
    /// `case WORD in PATTERN) …;; esac`, whose arms end with `;;` and nothing else.
    Case {
        /// The word that is matched.
        word: Word<'a>,
        /// The arms: patterns and body; a body can be absent.
        arms: Vec<(Vec<Word<'a>>, Option<List<'a>>)>,
    },
    /// `(( … ))` of numbers and operators alone: no names, no subscripts, no assignment.
    Arithmetic(&'a str),
    /// `[[ … ]]`, as the words between the brackets. Operators are words too; the span of an operator is its text
    /// without quotes, which tells `-f` from `"-f"`. Patterns on the right of `=`, `==`, `!=` and `=~` are composite
    /// words like any other. After `-eq` and its kin bash evaluates *text* as arithmetic, and `a[$(x)]` in it runs `x`.
    Conditional(Vec<Word<'a>>),
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect<'a> {
    /// The descriptor in front of the operator, when one is written. It names the descriptor that is changed, whatever
    /// the direction of the operator.
    pub fd: Option<u32>,
    /// What it does.
    pub kind: RedirectKind<'a>,
    /// Operator and target.
    pub span: Span,
}

/// What a redirection does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectKind<'a> {
    /// `< WORD`
    Read(Word<'a>),
    /// `> WORD`, `>| WORD` or `>> WORD`
    Write {
        /// The file.
        target: Word<'a>,
        /// `>>`
        append: bool,
    },
    /// `&> WORD`, `>& WORD` or `&>> WORD`: both output streams to a file. A `>&` with a number is
    /// [`Duplicate`](Self::Duplicate).
    WriteBoth {
        /// The file.
        target: Word<'a>,
        /// `&>>`
        append: bool,
    },
    /// `<> WORD`: creates the file when it is missing.
    ReadWrite(Word<'a>),
    /// `>&N` or `<&N`
    Duplicate(u32),
    /// `>&-` or `<&-`
    Close,
    /// `<< WORD` or `<<- WORD` with its body.
    HereDocument {
        /// The body, without the tabs that `<<-` removes; a literal when the delimiter is quoted or nothing in it
        /// expands. Its span lies behind the command, from the line after it to the line of the delimiter.
        body: Word<'a>,
        /// Whether the delimiter was quoted.
        quoted: bool,
    },
    /// `<<< WORD`
    HereString(Word<'a>),
}
