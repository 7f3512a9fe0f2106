//! The cursor, and the grammar of lists, pipelines and simple commands.

use crate::heredoc::Pending;
use crate::pieces::{Context, Piece};
use crate::token::{self, RedirectOperator};
use crate::word::{Word, WordValue};
use crate::{
    Assignment, Command, Connector, ErrorKind, Grammar, LexError, List, ListItem, Pipeline, Redirect,
    RedirectKind, Script, Segment, Span, brace, heredoc,
};
use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

/// The most bytes of a command line.
pub const MAX_LENGTH: usize = 1 << 20;

/// How deep groups, loops and substitutions may nest.
pub const MAX_DEPTH: usize = 32;

/// How many commands may be joined by `|`, counting those of the pipelines around. Bash's own parser gives up between
/// 3,000 and 5,000.
pub const MAX_STAGES: usize = 1_000;

/// How many commands a command line may hold in all.
pub const MAX_COMMANDS: usize = 10_000;

/// A byte position as it is kept in spans.
pub(crate) fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// The reserved words of bash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    If,
    Then,
    Elif,
    Else,
    Fi,
    Case,
    Esac,
    For,
    Select,
    While,
    Until,
    Do,
    Done,
    In,
    Function,
    Coproc,
    Time,
    Open,
    Close,
    Not,
    OpenTest,
    CloseTest,
}

impl Keyword {
    pub(crate) const LONGEST: usize = 8;

    pub(crate) fn of(text: &str) -> Option<Self> {
        Some(match text {
            "if" => Self::If,
            "then" => Self::Then,
            "elif" => Self::Elif,
            "else" => Self::Else,
            "fi" => Self::Fi,
            "case" => Self::Case,
            "esac" => Self::Esac,
            "for" => Self::For,
            "select" => Self::Select,
            "while" => Self::While,
            "until" => Self::Until,
            "do" => Self::Do,
            "done" => Self::Done,
            "in" => Self::In,
            "function" => Self::Function,
            "coproc" => Self::Coproc,
            "time" => Self::Time,
            "{" => Self::Open,
            "}" => Self::Close,
            "!" => Self::Not,
            "[[" => Self::OpenTest,
            "]]" => Self::CloseTest,
            _ => return None,
        })
    }
}

/// What ends a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The end of the input.
    End,
    /// `)`
    Paren,
    /// `}`
    Brace,
    /// `then`
    Then,
    /// `elif`, `else` or `fi`
    Branch,
    /// `fi`
    Fi,
    /// `do`
    Do,
    /// `done`
    Done,
    /// `;;` or `esac`
    Arm,
}

impl Stop {
    fn accepts(self, keyword: Keyword) -> bool {
        match self {
            Self::End | Self::Paren => false,
            Self::Brace => keyword == Keyword::Close,
            Self::Then => keyword == Keyword::Then,
            Self::Branch => matches!(keyword, Keyword::Elif | Keyword::Else | Keyword::Fi),
            Self::Fi => keyword == Keyword::Fi,
            Self::Do => keyword == Keyword::Do,
            Self::Done => keyword == Keyword::Done,
            Self::Arm => keyword == Keyword::Esac,
        }
    }

    const fn missing(self) -> &'static str {
        match self {
            Self::End => "",
            Self::Paren => "this parenthesis is never closed",
            Self::Brace => "this `{` has no `}`",
            Self::Then => "this `if` has no `then`",
            Self::Branch | Self::Fi => "this `if` has no `fi`",
            Self::Do => "this loop has no `do`",
            Self::Done => "this loop has no `done`",
            Self::Arm => "this `case` has no `esac`",
        }
    }
}

/// The cursor over the source and what must be remembered on the way.
pub(crate) struct Parser<'a> {
    pub(crate) source: &'a str,
    /// Where reading goes on.
    pub(crate) pos: usize,
    /// Where the text ends: of the source, of backticks, or of the body of a here-document.
    pub(crate) end: usize,
    pub(crate) grammar: Grammar,
    pub(crate) depth: usize,
    pub(crate) stages: usize,
    /// How many commands there were so far.
    commands: usize,
    /// The depth of each `$( )` that is open.
    pub(crate) substitutions: Vec<usize>,
    /// Here-documents whose bodies start after the next newline.
    pub(crate) pending: Vec<Pending<'a>>,
    /// Bodies of here-documents in the order of their operators.
    pub(crate) bodies: Vec<Option<Word<'a>>>,
    pub(crate) brace_budget: usize,
    /// Storage for the pieces of the next word.
    pub(crate) spare: Vec<Piece<'a>>,
    /// Whether the last word was continued over a line with a backslash.
    pub(crate) continued: bool,
}

impl<'a> Parser<'a> {
    pub(crate) const fn new(source: &'a str, grammar: Grammar) -> Self {
        Self {
            source,
            pos: 0,
            end: source.len(),
            grammar,
            depth: 0,
            stages: 0,
            commands: 0,
            substitutions: Vec::new(),
            pending: Vec::new(),
            bodies: Vec::new(),
            brace_budget: brace::BUDGET,
            spare: Vec::new(),
            continued: false,
        }
    }

    pub(crate) fn script(mut self) -> Result<Script<'a>, LexError> {
        let mut list = match self.grammar {
            Grammar::Pipeline => self.lone_pipeline()?,
            Grammar::Sequence => self.list(Stop::End, 0)?,
        };
        self.no_pending()?;
        if !self.bodies.is_empty() {
            heredoc::fill(&mut list, &mut self.bodies);
        }
        Ok(Script { list })
    }

    // The cursor.

    pub(crate) fn rest(&self) -> &'a str {
        self.source.get(self.pos..self.end).unwrap_or_default()
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.source.get(start..end).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        if self.pos < self.end { self.source.as_bytes().get(self.pos).copied() } else { None }
    }

    pub(crate) fn peek_second(&self) -> Option<u8> {
        if self.pos + 1 < self.end { self.source.as_bytes().get(self.pos + 1).copied() } else { None }
    }

    /// The text up to the first byte that `stop` wants, which must be ASCII.
    pub(crate) fn take_until(&mut self, stop: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(stop).unwrap_or(rest.len());
        self.pos += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Runs a nom parser at the cursor; the cursor moves only when it succeeds.
    pub(crate) fn scan<T>(&mut self, parser: impl Fn(&'a str) -> nom::IResult<&'a str, T>) -> Option<T> {
        let (rest, value) = parser(self.rest()).ok()?;
        self.pos = self.end - rest.len();
        Some(value)
    }

    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind, start: usize, end: usize, message: &'static str) -> LexError {
        // An error may point behind the last character; its span must not cut one in two.
        let mut end = end.min(self.source.len());
        while !self.source.is_char_boundary(end) {
            end += 1;
        }
        LexError::new(kind, Span::new(offset(start.min(end)), offset(end)), message)
    }

    /// An error at the operator or word under the cursor.
    #[cold]
    pub(crate) fn error_here(&self, kind: ErrorKind, message: &'static str) -> LexError {
        let rest = self.rest().as_bytes();
        let length = match rest {
            [b'&', b'&', ..] | [b'|', b'|' | b'&', ..] | [b';', b';' | b'&', ..] | [b'&', b'>', ..] => 2,
            [b'#', ..] => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
            _ => rest.iter().position(|&byte| token::ends_word(byte)).unwrap_or(rest.len()).max(1),
        };
        self.error(kind, self.pos, self.pos + length, message)
    }

    pub(crate) fn enter(&mut self, at: usize) -> Result<(), LexError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(ErrorKind::TooLarge, at, at + 1, "nested too deeply"));
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    // Between words.

    /// Skips spaces, tabs and continued lines.
    pub(crate) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.pos += 1,
                Some(b'\\') if self.peek_second() == Some(b'\n') && self.grammar == Grammar::Sequence => {
                    self.pos += 2;
                }
                _ => break,
            }
        }
    }

    /// Skips blanks and a comment.
    fn gap(&mut self) {
        self.blanks();
        if self.peek() == Some(b'#') && self.grammar == Grammar::Sequence {
            self.scan(token::comment);
        }
    }

    /// Skips blanks, comments and newlines, and reads the here-documents that the newlines start. True when there was
    /// a newline.
    pub(crate) fn newlines(&mut self) -> Result<bool, LexError> {
        let mut any = false;
        loop {
            self.gap();
            if self.peek() != Some(b'\n') || self.grammar == Grammar::Pipeline {
                return Ok(any);
            }
            any = true;
            self.pos += 1;
            self.here_documents()?;
        }
    }

    /// The reserved word at the cursor, which stays where it is.
    pub(crate) fn keyword(&self) -> Option<Keyword> {
        let bytes = self.rest().as_bytes();
        let possible =
            |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'{' | b'}' | b'[' | b']' | b'!');
        let length = bytes.iter().take(Keyword::LONGEST + 1).take_while(|&&byte| possible(byte)).count();
        if bytes.get(length).is_some_and(|&byte| !token::ends_word(byte)) {
            return None;
        }
        Keyword::of(self.slice(self.pos, self.pos + length))
    }

    /// Steps over the reserved word `keyword`, whose text is `text`.
    pub(crate) fn expect_keyword(
        &mut self,
        keyword: Keyword,
        text: &str,
        message: &'static str,
    ) -> Result<(), LexError> {
        if self.keyword() != Some(keyword) {
            return Err(self.error_here(ErrorKind::Syntax, message));
        }
        self.pos += text.len();
        Ok(())
    }

    /// Steps over the `)` that belongs to the parenthesis at `open`.
    pub(crate) fn expect_closing(&mut self, open: usize) -> Result<(), LexError> {
        if self.peek() != Some(b')') {
            return Err(self.error(ErrorKind::Syntax, open, open + 1, Stop::Paren.missing()));
        }
        self.pos += 1;
        Ok(())
    }

    // Lists and pipelines.

    /// Whether a list that ends with `stop` ends here. What ends another kind of list is an error.
    fn at_stop(&self, stop: Stop, open: usize) -> Result<bool, LexError> {
        match self.peek() {
            None if stop == Stop::End => return Ok(true),
            None => {
                let opener = self.slice(open, self.end).bytes().position(token::ends_word).unwrap_or(0);
                return Err(self.error(ErrorKind::Syntax, open, open + opener.max(1), stop.missing()));
            }
            Some(b')') if stop == Stop::Paren => return Ok(true),
            Some(b';') if stop == Stop::Arm && matches!(self.peek_second(), Some(b';' | b'&')) => {
                return Ok(true);
            }
            Some(b')' | b';' | b'&' | b'|') => {
                return Err(self.error_here(ErrorKind::EmptySegment, "a command is missing before this"));
            }
            Some(_) => {}
        }
        let Some(keyword) = self.keyword() else {
            return Ok(false);
        };
        if stop.accepts(keyword) {
            return Ok(true);
        }
        match keyword {
            Keyword::Then
            | Keyword::Elif
            | Keyword::Else
            | Keyword::Fi
            | Keyword::Esac
            | Keyword::Do
            | Keyword::Done
            | Keyword::In
            | Keyword::Close
            | Keyword::CloseTest => {
                Err(self.error_here(ErrorKind::Syntax, "this reserved word does not belong here"))
            }
            Keyword::If
            | Keyword::Case
            | Keyword::For
            | Keyword::Select
            | Keyword::While
            | Keyword::Until
            | Keyword::Function
            | Keyword::Coproc
            | Keyword::Time
            | Keyword::Open
            | Keyword::Not
            | Keyword::OpenTest => Ok(false),
        }
    }

    /// Pipelines up to `stop`, which stays under the cursor. `open` is where the construct around the list starts.
    pub(crate) fn list(&mut self, stop: Stop, open: usize) -> Result<List<'a>, LexError> {
        let mut items = Vec::with_capacity(1);
        let mut connector = Connector::Then;
        self.newlines()?;
        loop {
            if self.at_stop(stop, open)? {
                if connector != Connector::Then {
                    return Err(
                        self.error_here(ErrorKind::EmptySegment, "a command is missing after `&&` or `||`")
                    );
                }
                if items.is_empty() {
                    let blank = stop == Stop::End && open == 0;
                    let kind = if blank { ErrorKind::Empty } else { ErrorKind::EmptySegment };
                    return Err(self.error(kind, open, self.pos, "there is no command here"));
                }
                return Ok(List { items });
            }
            let pipeline = self.pipeline()?;
            items.push(ListItem { connector, pipeline });
            connector = Connector::Then;
            self.gap();
            match (self.peek(), self.peek_second()) {
                (None | Some(b')' | b'\n'), _) | (Some(b';'), Some(b';' | b'&')) => {
                    self.newlines()?;
                }
                (Some(b';'), _) => {
                    self.pos += 1;
                    self.newlines()?;
                }
                (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) => {
                    connector = if self.peek() == Some(b'&') { Connector::And } else { Connector::Or };
                    self.pos += 2;
                    self.newlines()?;
                }
                (Some(b'&'), _) => {
                    return Err(self.error_here(ErrorKind::Construct, "`&` runs a command in the background"));
                }
                _ => return Err(self.error_here(ErrorKind::Syntax, "this does not belong here")),
            }
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline<'a>, LexError> {
        let start = self.pos;
        let (mut negated, mut timed) = (false, false);
        loop {
            match self.keyword() {
                Some(Keyword::Not) if !negated && self.peek_second() != Some(b'(') => {
                    negated = true;
                    self.pos += 1;
                }
                Some(Keyword::Time) if !timed => {
                    if !self.substitutions.is_empty() {
                        // Bash 5.2 takes `time` for a program directly after `$(`, and then `{` for its argument.
                        return Err(self.error_here(ErrorKind::Syntax, "`time` inside `$( )`"));
                    }
                    timed = true;
                    self.pos += 4;
                    self.blanks();
                    let portable = self.rest().strip_prefix("-p");
                    if portable.is_some_and(|rest| rest.bytes().next().is_none_or(token::ends_word)) {
                        self.pos += 2;
                    } else if self.peek() == Some(b'-') {
                        return Err(
                            self.error_here(ErrorKind::Syntax, "only `time` and `time -p` are understood")
                        );
                    }
                }
                Some(Keyword::Not | Keyword::Time) => {
                    return Err(self.error_here(ErrorKind::Syntax, "`!` or `time` twice"));
                }
                _ => break,
            }
            self.blanks();
        }
        if timed && self.peek() == Some(b'-') {
            return Err(self.error_here(ErrorKind::Syntax, "only `time` and `time -p` are understood"));
        }
        let outside = self.stages;
        let mut stages = Vec::with_capacity(1);
        stages.push(self.stage()?);
        loop {
            let end = self.pos;
            self.blanks();
            if self.peek() != Some(b'|') || self.peek_second() == Some(b'|') {
                self.stages = outside;
                let span = Span::new(offset(start), offset(end));
                return Ok(Pipeline { negated, timed, stages, span });
            }
            self.pos += if self.peek_second() == Some(b'&') { 2 } else { 1 };
            let newline = self.newlines()?;
            match self.keyword() {
                Some(Keyword::Not) => {
                    return Err(
                        self.error_here(ErrorKind::Syntax, "`!` is allowed only before a whole pipeline")
                    );
                }
                // After `|` the word `time` names a program; what it is after `|` and newlines is not worth knowing.
                Some(Keyword::Time) if newline => {
                    return Err(self.error_here(ErrorKind::Syntax, "`time` after `|` and a newline"));
                }
                Some(Keyword::Time) => {
                    self.count_stage()?;
                    stages.push(Command::Simple(self.simple(true)?));
                }
                _ => stages.push(self.stage()?),
            }
        }
    }

    pub(crate) fn count_stage(&mut self) -> Result<(), LexError> {
        self.stages += 1;
        self.commands += 1;
        if self.stages > MAX_STAGES || self.commands > MAX_COMMANDS {
            return Err(self.error_here(ErrorKind::TooLarge, "too many commands"));
        }
        Ok(())
    }

    fn stage(&mut self) -> Result<Command<'a>, LexError> {
        self.count_stage()?;
        if self.peek() == Some(b'(') {
            return self.parenthesis();
        }
        match self.keyword() {
            Some(keyword) => self.compound(keyword),
            None => Ok(Command::Simple(self.simple(false)?)),
        }
    }

    /// The whole input in the `pipeline` grammar.
    fn lone_pipeline(&mut self) -> Result<List<'a>, LexError> {
        self.blanks();
        if self.peek().is_none() {
            return Err(self.error(ErrorKind::Empty, 0, self.pos, "there is no command here"));
        }
        let start = self.pos;
        let mut stages = Vec::with_capacity(1);
        loop {
            self.count_stage()?;
            if let Some(keyword) = self.keyword() {
                let time = matches!(keyword, Keyword::Not | Keyword::Time);
                let message = if time {
                    "a reserved word before a pipeline"
                } else {
                    "a reserved word starts a compound command"
                };
                return Err(self.error_here(ErrorKind::Construct, message));
            }
            if self.peek() == Some(b'#') {
                return Err(self.error_here(ErrorKind::Construct, "a comment"));
            }
            stages.push(Command::Simple(self.simple(false)?));
            let end = self.pos;
            self.blanks();
            let message = match (self.peek(), self.peek_second()) {
                (None, _) => {
                    let span = Span::new(offset(start), offset(end));
                    let pipeline = Pipeline { negated: false, timed: false, stages, span };
                    let items = vec![ListItem { connector: Connector::Then, pipeline }];
                    return Ok(List { items });
                }
                (Some(b'|'), Some(b'|')) => "`||` joins commands",
                (Some(b'|'), Some(b'&')) => "`|&` joins both output streams",
                (Some(b'|'), _) => {
                    self.pos += 1;
                    self.blanks();
                    continue;
                }
                _ => self.pipeline_construct(),
            };
            return Err(self.error_here(ErrorKind::Construct, message));
        }
    }

    /// What the operator under the cursor is that the `pipeline` grammar does not admit.
    fn pipeline_construct(&self) -> &'static str {
        match self.peek() {
            Some(b';') => "`;` joins commands",
            Some(b'&') => "`&` joins commands or runs one in the background",
            Some(b'<' | b'>') => "a redirection",
            Some(b'\n') => "a newline joins commands",
            Some(b'#') => "a comment",
            _ => "a shell construct",
        }
    }

    // Simple commands.

    /// A simple command. `time` is a program's name when `plain_time`.
    pub(crate) fn simple(&mut self, plain_time: bool) -> Result<Segment<'a>, LexError> {
        let start = self.pos;
        let mut end = start;
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        let mut named = false;
        loop {
            self.blanks();
            match (self.peek(), self.peek_second()) {
                (Some(b'<'), Some(b'('))
                    if self.grammar == Grammar::Sequence && (self.pos != end || end == start) =>
                {
                    words.push(self.process_substitution()?);
                    named = true;
                }
                (Some(b'&'), Some(b'>')) | (Some(b'<' | b'>'), _) if self.grammar == Grammar::Sequence => {
                    redirects.push(self.redirect()?);
                }
                (None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#' | b'<' | b'>'), _) => break,
                (Some(b'('), _) => {
                    let kind = if self.grammar == Grammar::Pipeline {
                        ErrorKind::Construct
                    } else {
                        ErrorKind::Syntax
                    };
                    return Err(
                        self.error_here(kind, "a parenthesis inside a command; functions are not understood")
                    );
                }
                (Some(b'0'..=b'9'), _) if token::descriptor(self.rest()).is_ok() => {
                    if self.grammar == Grammar::Pipeline {
                        let length = self.rest().bytes().take_while(u8::is_ascii_digit).count() + 1;
                        return Err(self.error(
                            ErrorKind::Construct,
                            self.pos,
                            self.pos + length,
                            "a redirection",
                        ));
                    }
                    redirects.push(self.redirect()?);
                }
                (Some(byte), _) => {
                    if !named
                        && token::starts_name(byte)
                        && let Some(assignment) = self.assignment()?
                    {
                        assignments.push(assignment);
                        end = self.pos;
                        continue;
                    }
                    let first = self.pos;
                    self.words(&mut words)?;
                    self.check_word(first, &words)?;
                    if !named {
                        named = true;
                        if self.continued && self.slice(first, self.pos).contains(['=', '[']) {
                            let message = "bash might read this word, which spans lines, as an assignment";
                            return Err(self.error(ErrorKind::Syntax, first, self.pos, message));
                        }
                        let length = self.pos - first;
                        let reserved = words
                            .first()
                            .and_then(Word::literal)
                            .filter(|text| {
                                text.len() <= Keyword::LONGEST && (self.continued || text.len() == length)
                            })
                            .and_then(Keyword::of)
                            .filter(|keyword| *keyword != Keyword::Time || !plain_time);
                        if reserved.is_some() {
                            let message = "a reserved word where a program's name should be";
                            return Err(self.error(ErrorKind::Syntax, first, self.pos, message));
                        }
                    }
                }
            }
            end = self.pos;
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(self.error_here(ErrorKind::EmptySegment, "a command is missing here"));
        }
        self.pos = end;
        Ok(Segment { assignments, words, redirects, span: Span::new(offset(start), offset(end)) })
    }

    /// Refuses words directly before an operator that bash would read together with it.
    fn check_word(&self, start: usize, words: &[Word<'a>]) -> Result<(), LexError> {
        if !matches!(self.peek(), Some(b'<' | b'>')) {
            return Ok(());
        }
        let raw = self.slice(start, self.pos);
        let number =
            words.last().and_then(Word::literal).is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
        if self.continued && number || raw.starts_with('{') {
            let message = "bash would read this word as part of the redirection";
            return Err(self.error(ErrorKind::Syntax, start, self.pos + 1, message));
        }
        Ok(())
    }

    /// `NAME=value` or `NAME+=value` at the cursor.
    fn assignment(&mut self) -> Result<Option<Assignment<'a>>, LexError> {
        let start = self.pos;
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !token::in_name(byte)).unwrap_or(rest.len());
        match rest.as_bytes().get(length) {
            Some(b'=' | b'+') => {}
            Some(b'[') => {
                let end = start + length + 1;
                return Err(self.error(ErrorKind::Construct, start, end, "a subscript after a name"));
            }
            _ => return Ok(None),
        }
        let Some((name, append)) = self.scan(token::assignment) else {
            return Ok(None);
        };
        let at = self.pos;
        let value = match self.peek() {
            Some(b'(') => return Err(self.error(ErrorKind::Construct, start, at + 1, "an array assignment")),
            Some(byte) if !token::ends_word(byte) => self.word(Context::Assignment)?,
            _ => {
                Word { span: Span::new(offset(at), offset(at)), value: WordValue::Literal(Cow::Borrowed("")) }
            }
        };
        Ok(Some(Assignment { name, append, value, span: Span::new(offset(start), offset(self.pos)) }))
    }

    // Redirections.

    /// Whether a redirection starts at the cursor.
    pub(crate) fn at_redirect(&self) -> bool {
        match (self.peek(), self.peek_second()) {
            (Some(b'<' | b'>'), _) | (Some(b'&'), Some(b'>')) => true,
            (Some(b'0'..=b'9'), _) => token::descriptor(self.rest()).is_ok(),
            _ => false,
        }
    }

    pub(crate) fn redirect(&mut self) -> Result<Redirect<'a>, LexError> {
        use RedirectOperator as Op;
        let start = self.pos;
        let fd = match self.scan(token::descriptor) {
            None => None,
            Some(digits) => match digits.parse().ok().filter(|_| digits.len() <= 3 && is_canonical(digits)) {
                Some(fd) => Some(fd),
                None => {
                    return Err(self.error(
                        ErrorKind::Syntax,
                        start,
                        self.pos,
                        "not a usable file descriptor",
                    ));
                }
            },
        };
        let Some(operator) = self.scan(token::redirect_operator) else {
            return Err(self.error(ErrorKind::Construct, start, self.pos + 2, "process substitution"));
        };
        if self.rest().starts_with("\\\n") {
            return Err(
                self.error_here(ErrorKind::Syntax, "a continued line directly after a redirection operator")
            );
        }
        let operator_end = self.pos;
        self.blanks();
        let process = operator == Op::Read && self.rest().starts_with("<(");
        if !process && self.peek().is_none_or(|byte| token::ends_word(byte) || byte == b'#') {
            return Err(self.error(
                ErrorKind::EmptySegment,
                start,
                self.pos,
                "this redirection has no target",
            ));
        }
        let target = self.pos;
        let kind = match operator {
            // Joined to the operator it would be another one.
            Op::Read if self.rest().starts_with("<(") && self.pos > operator_end => {
                RedirectKind::Read(self.process_substitution()?)
            }
            Op::Read => RedirectKind::Read(self.target()?),
            Op::Write => RedirectKind::Write { target: self.target()?, append: false },
            Op::Append => RedirectKind::Write { target: self.target()?, append: true },
            Op::Both => RedirectKind::WriteBoth { target: self.target()?, append: false },
            Op::BothAppend => RedirectKind::WriteBoth { target: self.target()?, append: true },
            Op::ReadWrite => RedirectKind::ReadWrite(self.target()?),
            Op::HereString => RedirectKind::HereString(self.word(Context::Operand)?),
            Op::HereDocument | Op::HereDocumentTabs => {
                self.here_document(operator == Op::HereDocumentTabs)?
            }
            Op::DuplicateIn | Op::DuplicateOut => self.duplicate(fd, operator == Op::DuplicateOut, start)?,
        };
        // `2>` and `{name}>` are one with their word, even where that word is itself the target of a redirection.
        let raw = self.slice(target, self.pos).as_bytes();
        let joined =
            raw.first() == Some(&b'{') || raw.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'\\' | b'\n'));
        if joined && matches!(self.peek(), Some(b'<' | b'>')) {
            let message = "bash would read this word as part of the next redirection";
            return Err(self.error(ErrorKind::Syntax, target, self.pos + 1, message));
        }
        Ok(Redirect { fd, kind, span: Span::new(offset(start), offset(self.pos)) })
    }

    fn target(&mut self) -> Result<Word<'a>, LexError> {
        self.word(Context::Target)
    }

    /// What follows `<&` or `>&`: a descriptor, `-`, or for `>&` alone a file for both streams.
    fn duplicate(&mut self, fd: Option<u32>, out: bool, start: usize) -> Result<RedirectKind<'a>, LexError> {
        let at = self.pos;
        let target = self.target()?;
        let raw = self.slice(at, self.pos);
        if raw == "-" {
            return Ok(RedirectKind::Close);
        }
        if let Some(number) = raw.parse().ok().filter(|_| raw.len() <= 3 && is_canonical(raw)) {
            return Ok(RedirectKind::Duplicate(number));
        }
        let file = target.literal().is_some_and(|text| {
            let odd = text.ends_with('-')
                || text.starts_with('-')
                || text.bytes().all(|byte| byte.is_ascii_digit());
            !odd
        });
        if out && fd.is_none() && file {
            return Ok(RedirectKind::WriteBoth { target, append: false });
        }
        let message = "only a file descriptor or `-` is understood after `>&` and `<&`";
        Err(self.error(ErrorKind::Syntax, start, self.pos, message))
    }
}

/// Whether `digits` are a number as it is usually written.
fn is_canonical(digits: &str) -> bool {
    digits == "0"
        || !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}
