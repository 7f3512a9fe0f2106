//! What a command would do, as far as it was understood.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use cmdgate_lexer::Span;

/// Everything that a command would read, write, run and reach. For a command that needs review the lists can be
/// incomplete: they hold what was understood before something was not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects<'a> {
    /// Paths that are read.
    pub reads: Vec<PathUse<'a>>,
    /// Paths that are written, created or removed.
    pub writes: Vec<PathUse<'a>>,
    /// Programs that are run, in the order of the text, wrapped ones included.
    pub runs: Vec<Run<'a>>,
    /// Hosts or addresses that are reached; an empty text stands for an unknown one.
    pub network: Vec<Cow<'a, str>>,
    /// The directories, as indices, from which git looks for a repository. The configuration that it finds there is what
    /// [`Condition::GitHardened`](crate::Condition::GitHardened) is about.
    pub repositories: Vec<u16>,
    /// The directories that [`PathUse::directory`], [`Run::directory`] and [`Effects::repositories`] count, as paths
    /// relative to the working directory or absolute. The first is the working directory itself and is empty.
    pub directories: Vec<String>,
}

/// A path that a command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUse<'a> {
    /// The path as the program gets it; for a pattern, the pattern text.
    pub path: Cow<'a, str>,
    /// Where it stands in the command.
    pub span: Span,
    /// Whether the shell expands it by looking at files (`*`, `?`, `[…]`).
    pub pattern: bool,
    /// Whether the program gets this very text and no other: neither a pattern nor the known beginning of more.
    pub exact: bool,
    /// Whether it was found to lie outside the project, by its text; a finding says so.
    pub outside: bool,
    /// Which of [`Effects::directories`] it is relative to.
    pub directory: u16,
}

/// A program that is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<'a> {
    /// The words, the program first. A word that is not exactly known is given as its source text.
    pub argv: Vec<Cow<'a, str>>,
    /// Where it stands in the command.
    pub span: Span,
    /// Whether every word is exactly known.
    pub exact: bool,
    /// Which of [`Effects::directories`] it runs in.
    pub directory: u16,
}

impl Effects<'_> {
    /// The directory with this index; the working directory, which is empty, when there is none.
    pub fn directory(&self, index: u16) -> &str {
        self.directories.get(usize::from(index)).map_or("", String::as_str)
    }
}
