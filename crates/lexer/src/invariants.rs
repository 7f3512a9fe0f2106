//! What holds of every accepted command line, as a check that tests and fuzzers run.

use crate::token::ends_word;
use crate::{
    Command, Compound, CompoundKind, List, Part, Redirect, RedirectKind, Script, Segment, Span, Word,
    WordValue,
};
use alloc::vec::Vec;
use core::fmt;

/// A place where a tree and its source do not fit together: a fault of the lexer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where.
    pub span: Span,
    /// What does not hold there.
    pub message: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (bytes {} to {})", self.message, self.span.start, self.span.end)
    }
}

impl core::error::Error for Violation {}

/// Checks that the spans of `script` tile `source`, the text that it was lexed from.
///
/// - Every span lies in the source, on character boundaries, and inside the span of what contains it.
/// - What stands side by side is in order and does not overlap; words from one brace expansion share a span.
/// - Between words, redirections and bodies of here-documents there is nothing but blanks, newlines, operators,
///   reserved words and comments.
/// - A composite word has a part that is not text, and no two texts side by side; a literal without quotes, escapes
///   and braces is exactly its source.
///
/// # Errors
///
/// The first [`Violation`]. There is none in what [`lex`](crate::lex) returns.
///
/// ```
/// use cmdgate_lexer::{Grammar, check_invariants, lex};
/// let source = "ls 'a b' | head -1";
/// let script = lex(source, Grammar::Pipeline)?;
/// assert_eq!(check_invariants(&script, source), Ok(()));
/// # Ok::<(), cmdgate_lexer::LexError>(())
/// ```
pub fn check_invariants(script: &Script<'_>, source: &str) -> Result<(), Violation> {
    let whole = Span::new(0, u32::try_from(source.len()).unwrap_or(u32::MAX));
    let mut check = Check { source, tiles: Vec::new() };
    check.list(&script.list, whole)?;
    let mut tiles = check.tiles;
    tiles.push(Tile { span: Span::new(whole.end, whole.end), braces: false });
    check_tiles(source, &mut tiles, Some(0))
}

/// A stretch of source that belongs to one leaf of the tree.
#[derive(Clone, Copy)]
struct Tile {
    span: Span,
    /// Whether another word may have the same span.
    braces: bool,
}

struct Check<'s> {
    source: &'s str,
    tiles: Vec<Tile>,
}

type Checked = Result<(), Violation>;

fn require(holds: bool, span: Span, message: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(Violation { span, message }) }
}

fn contains(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

impl Check<'_> {
    fn span(&self, span: Span, within: Span) -> Checked {
        let good = span.start <= span.end && self.source.get(span.range()).is_some();
        require(good, span, "a span that does not fit the source")?;
        require(contains(within, span), span, "a span outside of what contains it")
    }

    fn tile(&mut self, span: Span, braces: bool) {
        self.tiles.push(Tile { span, braces });
    }

    fn list(&mut self, list: &List<'_>, within: Span) -> Checked {
        require(!list.items.is_empty(), within, "an empty list")?;
        let mut before = within.start;
        for item in &list.items {
            let span = item.pipeline.span;
            self.span(span, within)?;
            require(span.start >= before, span, "pipelines out of order")?;
            require(!item.pipeline.stages.is_empty(), span, "an empty pipeline")?;
            before = span.end;
            let mut inner = span.start;
            for stage in &item.pipeline.stages {
                let stage_span = match stage {
                    Command::Simple(segment) => {
                        self.segment(segment, span)?;
                        segment.span
                    }
                    Command::Compound(compound) => {
                        self.compound(compound, span)?;
                        compound.span
                    }
                };
                require(stage_span.start >= inner, stage_span, "commands out of order")?;
                inner = stage_span.end;
            }
            require(inner == span.end, span, "a pipeline that does not end with its last command")?;
        }
        Ok(())
    }

    fn segment(&mut self, segment: &Segment<'_>, within: Span) -> Checked {
        let span = segment.span;
        self.span(span, within)?;
        let mut spans: Vec<Span> = Vec::new();
        for assignment in &segment.assignments {
            self.span(assignment.span, span)?;
            self.tile(assignment.span, false);
            let name = self.source.get(assignment.span.start as usize..).unwrap_or_default();
            require(name.starts_with(assignment.name), assignment.span, "an assignment without its name")?;
            self.word(&assignment.value, assignment.span, false)?;
            spans.push(assignment.span);
        }
        for word in &segment.words {
            self.word(word, span, true)?;
            spans.push(word.span);
        }
        self.redirects(&segment.redirects, span)?;
        spans.extend(segment.redirects.iter().map(|redirect| redirect.span));
        let around = spans.into_iter().reduce(Span::to);
        require(around == Some(span), span, "a command that is more or less than its words")
    }

    fn compound(&mut self, compound: &Compound<'_>, within: Span) -> Checked {
        let span = compound.span;
        self.span(span, within)?;
        match &compound.kind {
            CompoundKind::Subshell(list) | CompoundKind::Group(list) => self.list(list, span)?,
            CompoundKind::For { name, name_span, words, body } => {
                self.span(*name_span, span)?;
                self.tile(*name_span, false);
                require(
                    name_span.of(self.source) == *name,
                    *name_span,
                    "a loop variable that is not its span",
                )?;
                self.words(words, span)?;
                self.list(body, span)?;
            }
            CompoundKind::While { condition, body, .. } => {
                self.list(condition, span)?;
                self.list(body, span)?;
            }
            CompoundKind::If { branches, otherwise } => {
                require(!branches.is_empty(), span, "an `if` without branches")?;
                for (condition, body) in branches {
                    self.list(condition, span)?;
                    self.list(body, span)?;
                }
                if let Some(body) = otherwise {
                    self.list(body, span)?;
                }
            }
            CompoundKind::Case { word, arms } => {
                self.word(word, span, true)?;
                for (patterns, body) in arms {
                    require(!patterns.is_empty(), span, "an arm without patterns")?;
                    self.words(patterns, span)?;
                    if let Some(body) = body {
                        self.list(body, span)?;
                    }
                }
            }
            CompoundKind::Arithmetic(text) => {
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(4);
                let whole = Span::new(span.start, span.start.saturating_add(length));
                self.span(whole, span)?;
                self.tile(whole, false);
            }
            CompoundKind::Conditional(words) => {
                require(!words.is_empty(), span, "an empty test")?;
                self.words(words, span)?;
            }
        }
        self.redirects(&compound.redirects, span)
    }

    fn redirects(&mut self, redirects: &[Redirect<'_>], within: Span) -> Checked {
        let mut before = within.start;
        for redirect in redirects {
            self.span(redirect.span, within)?;
            require(redirect.span.start >= before, redirect.span, "redirections out of order")?;
            before = redirect.span.end;
            self.tile(redirect.span, false);
            match &redirect.kind {
                RedirectKind::HereDocument { body, .. } => {
                    // The body stands on later lines, followed by the line with the delimiter.
                    let rest = self.source.get(body.span.end as usize..).unwrap_or_default();
                    let line = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
                    let end = body.span.end.saturating_add(u32::try_from(line).unwrap_or(u32::MAX));
                    let whole = Span::new(body.span.start, end);
                    require(
                        body.span.start >= redirect.span.end,
                        body.span,
                        "a body before its redirection",
                    )?;
                    self.tile(whole, false);
                    self.word(body, whole, false)?;
                }
                RedirectKind::Read(word)
                | RedirectKind::ReadWrite(word)
                | RedirectKind::HereString(word)
                | RedirectKind::Write { target: word, .. }
                | RedirectKind::WriteBoth { target: word, .. } => {
                    self.word(word, redirect.span, false)?;
                    require(
                        word.span.end == redirect.span.end,
                        redirect.span,
                        "a redirection behind its target",
                    )?;
                    let operator = Span::new(redirect.span.start, word.span.start).of(self.source);
                    let known = |byte: u8| {
                        byte.is_ascii_digit() || matches!(byte, b'<' | b'>' | b'&' | b'|' | b' ' | b'\t')
                    };
                    let clean = operator.replace("\\\n", "");
                    require(
                        clean.bytes().all(known),
                        redirect.span,
                        "a redirection with more than its operator",
                    )?;
                }
                RedirectKind::Duplicate(_) | RedirectKind::Close => {}
            }
        }
        Ok(())
    }

    fn words(&mut self, words: &[Word<'_>], within: Span) -> Checked {
        words.iter().try_for_each(|word| self.word(word, within, true))
    }

    fn word(&mut self, word: &Word<'_>, within: Span, tile: bool) -> Checked {
        let span = word.span;
        self.span(span, within)?;
        let raw = span.of(self.source);
        if tile {
            self.tile(span, raw.contains('{'));
        }
        match &word.value {
            WordValue::Literal(text) => {
                let plain = !raw.contains(['\'', '"', '\\', '{', '$']) && tile;
                require(!plain || text == raw, span, "a plain word that is not its source")
            }
            WordValue::Composite(parts) => {
                let mut was_text = false;
                let mut only_text = true;
                for part in parts {
                    let is_text = matches!(part, Part::Text(_));
                    require(!(is_text && was_text), span, "two texts side by side in a word")?;
                    was_text = is_text;
                    only_text &= is_text;
                    match part {
                        Part::Text(text) => require(!text.is_empty(), span, "an empty text in a word")?,
                        Part::Substitution { list, .. } => {
                            let mut inner = Check { source: self.source, tiles: Vec::new() };
                            inner.list(list, span)?;
                            check_tiles(self.source, &mut inner.tiles, None)?;
                        }
                        Part::Glob(_) | Part::Tilde(_) | Part::Variable { .. } | Part::Arithmetic { .. } => {}
                    }
                }
                require(!only_text, span, "a composite word of nothing but text")
            }
        }
    }
}

/// Checks order and gaps of `tiles`; the gap before the first only when it is known where the text starts.
fn check_tiles(source: &str, tiles: &mut [Tile], start: Option<u32>) -> Checked {
    tiles.sort_by_key(|tile| (tile.span.start, tile.span.end));
    let mut before = start;
    let mut last: Option<Tile> = None;
    for tile in tiles {
        let twin = last.is_some_and(|last| last.span == tile.span && last.braces);
        if let Some(before) = before.filter(|_| !twin) {
            require(before <= tile.span.start, tile.span, "overlapping words")?;
            let gap = Span::new(before, tile.span.start);
            require(is_gap(gap.of(source)), gap, "text that belongs to nothing")?;
        }
        before = Some(tile.span.end);
        last = Some(*tile);
    }
    Ok(())
}

/// Whether `text` is nothing but what may stand between words.
fn is_gap(text: &str) -> bool {
    const KEYWORDS: [&str; 21] = [
        "if", "then", "elif", "else", "fi", "case", "esac", "for", "while", "until", "do", "done", "in",
        "time", "-p", "{", "}", "!", "[[", "]]", "",
    ];
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let length = match first {
            b'\\' if rest.starts_with("\\\n") => 2,
            b'#' => rest.find('\n').unwrap_or(rest.len()),
            byte if ends_word(byte) && !matches!(byte, b'<' | b'>') => 1,
            _ => {
                let length = rest.bytes().position(ends_word).unwrap_or(rest.len());
                let Some(word) = rest.get(..length).filter(|word| KEYWORDS.contains(word)) else {
                    return false;
                };
                word.len()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    true
}
