//! Decides whether a shell command is provably read-only inside a project, with reasons and conditions.
//!
//! [`classify`] reads a command line as bash and the programs in it would, against the declared tables of
//! [`commands::ALL`]. The answer is [`Verdict::Safe`] only when every program, flag, flag value and operand was found
//! in a table and is harmless; everything else is [`Verdict::NeedsReview`] with [`Finding`]s that say why and where.
//! No file is ever opened: the project root and the working directory are text.
//!
//! ```
//! use cmdgate_classifier::{Context, Grammar, Verdict, classify};
//!
//! let context = Context::new(Grammar::Pipeline).with_root("/srv/app");
//! assert_eq!(classify("grep -rn 'fn main' src | head -5", &context).verdict(), Verdict::Safe);
//!
//! let held = classify("sort -ro out.txt a.txt", &context);
//! assert_eq!(held.verdict(), Verdict::NeedsReview);
//! assert_eq!(held.findings[0].code.as_str(), "flag_writes");
//! assert_eq!(held.findings[0].span.of("sort -ro out.txt a.txt"), "-ro");
//! ```
#![no_std]

extern crate alloc;

mod arg;
mod argv;
mod arithmetic;
pub mod commands;
mod condition;
mod effect;
mod finding;
pub mod git_config;
mod paths;
mod pieces;
mod redirect;
mod script;
pub mod spec;
pub mod value;

pub use cmdgate_lexer::{Grammar, Span};
pub use condition::{Condition, Conditions};
pub use effect::{Effects, PathUse, Run};
pub use finding::{Code, Finding, Row};
pub use script::{classify, classify_argv};

use alloc::vec::Vec;

/// Safe, or not known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Known to read only inside the project, under the [`Conditions`] that come with it.
    Safe,
    /// Not proved harmless: the approval policy decides.
    NeedsReview,
}

impl Verdict {
    /// `safe` or `needs_review`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::NeedsReview => "needs_review",
        }
    }
}

/// What the classifier is told of the place where the command would run. All of it is text; nothing is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// Which shell constructs are admitted.
    pub grammar: Grammar,
    /// The project root as an absolute path. Without it every absolute path is outside the project.
    pub root: Option<&'a str>,
    /// The working directory as an absolute path; the root when absent.
    pub cwd: Option<&'a str>,
    /// Further directories, as absolute paths, whose files may be read.
    pub read_roots: &'a [&'a str],
}

impl<'a> Context<'a> {
    /// A context without root: only relative paths are inside.
    pub const fn new(grammar: Grammar) -> Self {
        Self { grammar, root: None, cwd: None, read_roots: &[] }
    }

    /// Sets the project root, an absolute path.
    #[must_use]
    pub const fn with_root(mut self, root: &'a str) -> Self {
        self.root = Some(root);
        self
    }

    /// Sets the working directory, an absolute path.
    #[must_use]
    pub const fn with_cwd(mut self, cwd: &'a str) -> Self {
        self.cwd = Some(cwd);
        self
    }

    /// Sets further readable directories, absolute paths.
    #[must_use]
    pub const fn with_read_roots(mut self, read_roots: &'a [&'a str]) -> Self {
        self.read_roots = read_roots;
        self
    }
}

/// The answer: what was found, what the command would do, and under which conditions the verdict holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classification<'a> {
    /// Why the command needs review, in the order of the text; empty when it is safe.
    pub findings: Vec<Finding>,
    /// What the command would read, write, run and reach, as far as it was understood.
    pub effects: Effects<'a>,
    /// What whoever runs the command must provide for the verdict to hold.
    pub conditions: Conditions,
}

impl Classification<'_> {
    /// Safe exactly when nothing was found.
    pub fn verdict(&self) -> Verdict {
        if self.findings.is_empty() { Verdict::Safe } else { Verdict::NeedsReview }
    }
}
