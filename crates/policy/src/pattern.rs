//! The language of patterns.

use crate::act::Act;
use crate::glob::{self, Glob, Token};
use crate::ruling::MatchedOn;
use std::fmt;

/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// So many `**` stand for no more texts than a pattern may.
const FEW_DOUBLE_STARS: usize = glob::MAX_ALTERNATIVES.ilog2() as usize - 1;

/// What a rule is about, as a person writes it.
///
/// | written | matches |
/// |---|---|
/// | `*` | any text, also across `/` and spaces, also none |
/// | `?` | one character |
/// | `[a-z0-9]`, `[!a-z]` | one character of the set, or one that is not in it |
/// | `{a,b}` | either; braces without a comma are plain text |
/// | `\*` | the character after the backslash as it is |
/// | `cargo test **` | `cargo test` alone, or with anything after a space: bound at a word |
///
/// For reads and writes, `**/` at the start may also stand for nothing, `/**/` also for `/`, a `/` at the
/// end means the folder, where it stands, and all that is in it, and `./`, `//` and `/./` are read as a path
/// would be.
///
/// ```
/// use cmdgate_policy::{Act, Pattern};
/// let pattern = Pattern::new("cargo test **")?;
/// assert!(pattern.matches(Act::Exec, "cargo test --all"));
/// assert!(!pattern.matches(Act::Exec, "cargo testify"));
/// assert!(Pattern::new("a[b").is_err());
/// # Ok::<(), cmdgate_policy::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    problem: Option<PatternError>,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Nothing, or spaces only.
    #[error("the pattern is empty; write `*` for everything")]
    Empty,
    /// Longer than [`MAX_PATTERN_BYTES`].
    #[error("the pattern has {bytes} bytes; the most is {limit}")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A NUL byte, which no path, argument or host can hold.
    #[error("the pattern holds a NUL byte, which no path or argument can hold")]
    Nul,
    /// `[` without `]`.
    #[error("the `[` at byte {at} of the pattern is never closed; write `\\[` for a plain bracket")]
    UnclosedClass {
        /// Offset in the pattern, in bytes.
        at: usize,
    },
    /// `[z-a]`
    #[error("the range `{low}-{high}` in the pattern is the wrong way round")]
    ReversedRange {
        /// Where it starts.
        low: char,
        /// Where it ends.
        high: char,
    },
    /// `{` without `}`.
    #[error("the `{{` at byte {at} of the pattern is never closed; write `\\{{` for a plain brace")]
    UnclosedBrace {
        /// Offset in the pattern, in bytes.
        at: usize,
    },
    /// A backslash at the end.
    #[error("the pattern ends in a backslash that escapes nothing; write `\\\\` for a plain one")]
    DanglingEscape,
    /// `{…}` that stand for too many texts.
    #[error("the alternatives in the pattern stand for more than {limit} texts; write several rules")]
    TooManyAlternatives {
        /// The most allowed.
        limit: usize,
    },
    /// `{…}` nested too deep.
    #[error("the alternatives in the pattern nest more than {limit} deep; write several rules")]
    TooDeep {
        /// The deepest allowed.
        limit: usize,
    },
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: impl Into<String>) -> Result<Self, PatternError> {
        let pattern = Self::lenient(text);
        match pattern.problem {
            Some(problem) => Err(problem),
            None => Ok(pattern),
        }
    }

    /// Reads a pattern and keeps a bad one, marked: see [`Pattern::problem`]. A rule that holds a bad
    /// pattern errs to the strict side: a deny or an ask then covers everything of its act, an allow nothing.
    pub fn lenient(text: impl Into<String>) -> Self {
        let text = text.into();
        let problem = Self::find_problem(&text).err();
        Self { text, problem }
    }

    /// A pattern in which a test found no problem.
    pub(crate) fn known_good(text: &str) -> Self {
        Self { text: text.to_owned(), problem: None }
    }

    fn find_problem(text: &str) -> Result<(), PatternError> {
        if text.trim().is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong { bytes: text.len(), limit: MAX_PATTERN_BYTES });
        }
        if text.contains('\0') {
            return Err(PatternError::Nul);
        }
        // Without any of these nothing can be left open, and most patterns need not be taken apart twice.
        if !text.contains(['\\', '[', '{']) && text.matches("**").count() <= FEW_DOUBLE_STARS {
            return Ok(());
        }
        let forms: usize = glob::parse(text)?.iter().map(|tokens| path_form_count(tokens)).sum();
        if forms > glob::MAX_ALTERNATIVES {
            return Err(PatternError::TooManyAlternatives { limit: glob::MAX_ALTERNATIVES });
        }
        Ok(())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Why the pattern cannot be used, if it cannot.
    pub fn problem(&self) -> Option<&PatternError> {
        self.problem.as_ref()
    }

    /// Whether the pattern ends in ` **`, the form that is bound at a word.
    pub fn is_word_prefix(&self) -> bool {
        self.text.len() > 3 && self.text.ends_with(" **")
    }

    /// Whether the pattern matches the target, as an `allow` rule for that act would: on the whole target
    /// and, for paths, on the last component; for programs, on the program and on the whole command.
    /// A bad pattern matches nothing.
    pub fn matches(&self, act: Act, target: &str) -> bool {
        let globs = self.compile(act);
        crate::target::Forms::of(act, target).firm().any(|form| {
            globs.iter().any(|compiled| compiled.admits(form.on) && compiled.glob.matches(&form.text))
        })
    }

    /// Whether every target that another pattern matches is matched by this one too, as the patterns alone
    /// tell. `true` is certain; `false` may only mean that it was not seen.
    ///
    /// ```
    /// use cmdgate_policy::{Act, Pattern};
    /// let [wide, narrow] = ["cargo*", "cargo test **"].map(|text| Pattern::new(text).unwrap());
    /// assert!(wide.covers(&narrow, Act::Exec));
    /// assert!(!narrow.covers(&wide, Act::Exec));
    /// ```
    pub fn covers(&self, other: &Self, act: Act) -> bool {
        let (own, other) = (self.spelled_out(act), other.spelled_out(act));
        !other.is_empty() && other.iter().all(|inner| own.iter().any(|outer| glob::covers(outer, inner)))
    }

    /// The token lists with the two readings of a word prefix written out.
    pub(crate) fn spelled_out(&self, act: Act) -> Vec<Vec<Token>> {
        let mut lists = Vec::new();
        for Reading { tokens, word_tail, .. } in self.readings(act) {
            if word_tail {
                let mut more = tokens.clone();
                more.extend([Token::Char(' '), Token::Star]);
                lists.push(more);
            }
            lists.push(tokens);
        }
        lists
    }

    /// The globs that the pattern stands for. Empty for a bad pattern.
    pub(crate) fn compile(&self, act: Act) -> Vec<Compiled> {
        self.readings(act)
            .into_iter()
            .map(|Reading { tokens, word_tail, anchored }| {
                let folded = fold_for(act, &tokens);
                let glob = Glob::new(&tokens, word_tail);
                let folded = (folded != tokens).then(|| Glob::new(&folded, word_tail));
                Compiled { glob, folded, anchored }
            })
            .collect()
    }

    /// What the pattern stands for under an act.
    fn readings(&self, act: Act) -> Vec<Reading> {
        if self.problem.is_some() {
            return Vec::new();
        }
        let mut lists = Vec::new();
        for mut tokens in glob::parse(&self.text).unwrap_or_default() {
            let word_tail = tokens.len() > 2 && tokens.ends_with(&[Token::Char(' '), Token::StarStar]);
            if word_tail {
                tokens.truncate(tokens.len() - 2);
            }
            match act {
                Act::Read | Act::Write => {
                    let forms = path_forms(&tokens).into_iter();
                    lists.extend(forms.map(|(tokens, anchored)| Reading { tokens, word_tail, anchored }));
                }
                Act::Exec => lists.push(Reading { tokens, word_tail, anchored: false }),
                Act::Net => {
                    // Host names ignore case, and a dot at the end only says that the name is complete.
                    let mut tokens = glob::fold_tokens(&tokens);
                    if tokens.len() > 1 && tokens.last() == Some(&Token::Char('.')) {
                        tokens.pop();
                    }
                    lists.push(Reading { tokens, word_tail, anchored: false });
                }
            }
        }
        lists
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Which parts of a pattern may ignore case. Some file systems do, so a deny on `.env` has to hold for
/// `.ENV`; a program's name is a file's name too, but its arguments are not (`git -c` is not `git -C`).
pub(crate) fn fold_for(act: Act, tokens: &[Token]) -> Vec<Token> {
    match act {
        Act::Read | Act::Write => glob::fold_tokens(tokens),
        Act::Exec => {
            let program = tokens.iter().position(|token| *token == Token::Char(' ')).unwrap_or(tokens.len());
            let (program, arguments) = tokens.split_at(program);
            let mut folded = glob::fold_tokens(program);
            folded.extend_from_slice(arguments);
            folded
        }
        Act::Net => tokens.to_vec(),
    }
}

/// A pattern for exactly this text.
///
/// ```
/// use cmdgate_policy::{Act, Pattern, escape};
/// let pattern = Pattern::new(escape("[ -f a*b ]"))?;
/// assert!(pattern.matches(Act::Exec, "[ -f a*b ]"));
/// assert!(!pattern.matches(Act::Exec, "[ -f axb ]"));
/// # Ok::<(), cmdgate_policy::PatternError>(())
/// ```
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | '{' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// At least as many as [`path_forms`] gives.
fn path_form_count(tokens: &[Token]) -> usize {
    let doubled = tokens.iter().filter(|token| **token == Token::StarStar).count() + 1;
    u32::try_from(doubled).ok().and_then(|doubled| 2_usize.checked_pow(doubled)).unwrap_or(usize::MAX)
}

/// One of the things that a pattern stands for.
struct Reading {
    tokens: Vec<Token>,
    /// Bound at a word: see [`Pattern::is_word_prefix`].
    word_tail: bool,
    /// Never matched against the last component alone: a folder is meant where it stands.
    anchored: bool,
}

/// One glob of a pattern.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) glob: Glob,
    /// The glob that ignores case where that is sound for the act; `None` when the same one does.
    folded: Option<Glob>,
    anchored: bool,
}

impl Compiled {
    /// Whether the glob speaks about such a spelling at all.
    pub(crate) fn admits(&self, on: MatchedOn) -> bool {
        !(self.anchored && on == MatchedOn::Basename)
    }

    /// Whether the glob matches a text that was folded for the act.
    pub(crate) fn matches_folded(&self, folded: &str) -> bool {
        self.folded.as_ref().unwrap_or(&self.glob).matches(folded)
    }
}

/// A path pattern in the spellings that resolved paths have, each with whether it is anchored.
fn path_forms(tokens: &[Token]) -> Vec<(Vec<Token>, bool)> {
    const SLASH: Token = Token::Char('/');
    let mut clean: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if *token == SLASH {
            // `./a`, `a//b` and `a/./b`; a lone `.` before the slash is a component of its own.
            if clean.last() == Some(&SLASH) {
                continue;
            }
            if matches!(clean.as_slice(), [Token::Char('.')] | [.., SLASH, Token::Char('.')]) {
                clean.pop();
                continue;
            }
        }
        clean.push(token.clone());
    }
    let mut forms = vec![Vec::new()];
    let mut rest = clean.as_slice();
    if let [Token::StarStar, SLASH, after @ ..] = rest {
        forms.push(vec![Token::Star, SLASH]);
        rest = skip_double_stars(after);
    }
    loop {
        match rest {
            [] => break,
            [SLASH, Token::StarStar, SLASH, after @ ..] => {
                let mut deeper = forms.clone();
                for form in &mut forms {
                    form.push(SLASH);
                }
                for form in &mut deeper {
                    form.extend([SLASH, Token::Star, SLASH]);
                }
                forms.append(&mut deeper);
                rest = skip_double_stars(after);
            }
            [token, after @ ..] => {
                for form in &mut forms {
                    form.push(token.clone());
                }
                rest = after;
            }
        }
    }
    // A `/` at the end: the folder, and all that is in it.
    let mut spellings = Vec::with_capacity(forms.len());
    for mut form in forms {
        if form.len() < 2 || form.last() != Some(&SLASH) {
            spellings.push((form, false));
            continue;
        }
        let mut inside = form.clone();
        inside.push(Token::Star);
        spellings.push((inside, true));
        form.pop();
        spellings.push((form, true));
    }
    spellings
}

/// `**/**/` says nothing that `**/` does not.
fn skip_double_stars(mut tokens: &[Token]) -> &[Token] {
    while let [Token::StarStar, Token::Char('/'), after @ ..] = tokens {
        tokens = after;
    }
    tokens
}
