//! Brace expansion: `{a,b}` and `{1..5}` in a word, before anything else happens to it.
//!
//! Bash expands braces in the *text* of a word. Here the word is already in pieces, and only what stood outside quotes
//! can be a brace, a comma or a range, which comes to the same. A word that also holds an expansion is refused when
//! its braces would count: `$x{a,b}` reads the variables `xa` and `xb`.

use crate::pieces::Piece;
use crate::token::{self, Sequence};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The most words that one word may become.
pub(crate) const MAX_RESULTS: usize = 256;

/// The most braces, commas and runs that are looked at in a word.
const MAX_TOKENS: usize = 2_048;

/// The most opening braces in a word: each is tried in turn, so their number bounds the work.
const MAX_OPEN: usize = 64;

/// The work that brace expansion may spend on one command line, in tokens looked at or copied.
pub(crate) const BUDGET: usize = 1 << 18;

/// Why a word's braces cannot be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many braces or results.
    TooLarge,
    /// Braces beside expansions, or a range that is not plainly one.
    Unclear,
}

/// A word's text as brace expansion sees it.
#[derive(Debug, Clone)]
enum Token<'a> {
    Open,
    Close,
    Comma,
    /// Anything else. Only plain pieces can hold a range.
    Other(Piece<'a>),
}

/// Whether `pieces` hold, outside quotes, an opening brace, then a comma or two dots, then a closing brace. Without
/// these, in this order, bash takes every brace literally.
pub(crate) fn possible(pieces: &[Piece<'_>]) -> bool {
    let mut stage = 0_u8;
    let mut previous = b' ';
    for piece in pieces {
        let Piece::Plain(text) = piece else {
            previous = b' ';
            continue;
        };
        for byte in text.bytes() {
            stage = match (stage, byte) {
                (0, b'{') | (1, b',') => stage + 1,
                (1, b'.') if previous == b'.' => 2,
                (2, b'}') => return true,
                _ => stage,
            };
            previous = byte;
        }
    }
    false
}

/// The words that `pieces` become; empty ones without quotes are gone. `budget` is the work that the whole command
/// line may still spend here.
pub(crate) fn expand<'a>(pieces: &[Piece<'a>], budget: &mut usize) -> Result<Vec<Vec<Piece<'a>>>, Refusal> {
    let mut tokens = Vec::new();
    let mut open = 0;
    for piece in pieces {
        match piece {
            // Braces can put a dollar sign before a name: `{$,}x`.
            Piece::Part(_) | Piece::Dollar => return Err(Refusal::Unclear),
            Piece::Quoted(_) | Piece::Made(_) => tokens.push(Token::Other(piece.clone())),
            Piece::Plain(text) => {
                for run in text.split_inclusive(['{', '}', ',']) {
                    let (body, mark) = match run.as_bytes().last() {
                        Some(b'{') => (run.strip_suffix('{'), Some(Token::Open)),
                        Some(b'}') => (run.strip_suffix('}'), Some(Token::Close)),
                        Some(b',') => (run.strip_suffix(','), Some(Token::Comma)),
                        _ => (Some(run), None),
                    };
                    if let Some(body) = body.filter(|body| !body.is_empty()) {
                        tokens.push(Token::Other(Piece::Plain(body)));
                    }
                    open += usize::from(matches!(mark, Some(Token::Open)));
                    tokens.extend(mark);
                }
            }
        }
        if tokens.len() > MAX_TOKENS || open > MAX_OPEN {
            return Err(Refusal::TooLarge);
        }
    }
    let words = expand_tokens(&tokens, budget)?;
    Ok(words.into_iter().map(literal).filter(|word| !word.is_empty()).collect())
}

/// The pieces of a result, its left-over braces and commas plain text again.
fn literal(tokens: Vec<Token<'_>>) -> Vec<Piece<'_>> {
    tokens
        .into_iter()
        .map(|token| match token {
            Token::Open => Piece::Plain("{"),
            Token::Close => Piece::Plain("}"),
            Token::Comma => Piece::Plain(","),
            Token::Other(piece) => piece,
        })
        .collect()
}

type Words<'a> = Vec<Vec<Token<'a>>>;

fn spend(budget: &mut usize, work: usize) -> Result<(), Refusal> {
    *budget = budget.checked_sub(work).ok_or(Refusal::TooLarge)?;
    Ok(())
}

fn expand_tokens<'a>(tokens: &[Token<'a>], budget: &mut usize) -> Result<Words<'a>, Refusal> {
    spend(budget, tokens.len())?;
    for (open, token) in tokens.iter().enumerate() {
        if !matches!(token, Token::Open) || ignored(tokens, open)? {
            continue;
        }
        let (before, after) = tokens.split_at_checked(open).unwrap_or((tokens, &[]));
        let after = after.get(1..).unwrap_or(&[]);
        spend(budget, after.len())?;
        let Some(close) = closing(after) else { continue };
        let (inside, rest) = after.split_at_checked(close).unwrap_or((after, &[]));
        let rest = rest.get(1..).unwrap_or(&[]);
        let middle = alternatives(inside, budget)?;
        let tail = if rest.is_empty() { vec![Vec::new()] } else { expand_tokens(rest, budget)? };
        if middle.len() * tail.len() > MAX_RESULTS {
            return Err(Refusal::TooLarge);
        }
        let mut words = Vec::with_capacity(middle.len() * tail.len());
        for one in &middle {
            for end in &tail {
                spend(budget, before.len() + one.len() + end.len())?;
                let mut word = before.to_vec();
                word.extend_from_slice(one);
                word.extend_from_slice(end);
                words.push(word);
            }
        }
        return Ok(words);
    }
    Ok(vec![tokens.to_vec()])
}

/// Bash skips an opening brace that stands alone between blanks, and `{}` after a blank, so that `find … {} +` works.
fn ignored(tokens: &[Token<'_>], open: usize) -> Result<bool, Refusal> {
    if !matches!(tokens.get(open + 1), None | Some(Token::Close)) {
        return Ok(false);
    }
    match open.checked_sub(1).and_then(|before| tokens.get(before)) {
        None => Ok(true),
        // An escaped blank counts as a blank for bash, a quoted one does not; the piece no longer says which it was.
        Some(Token::Other(Piece::Quoted(text))) if text.ends_with([' ', '\t', '\n']) => Err(Refusal::Unclear),
        Some(Token::Other(_) | Token::Open | Token::Close | Token::Comma) => Ok(false),
    }
}

/// Where the brace that was opened just before `tokens` closes: the first closing brace on its own level with a comma
/// or a range before it. A closing brace that comes too early is text: `{a},b}` is `a}` and `b`.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut level = 0_usize;
    let mut separated = false;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open => level += 1,
            Token::Close if level > 0 => level -= 1,
            Token::Close if separated => return Some(at),
            Token::Comma if level == 0 => separated = true,
            Token::Other(Piece::Plain(text)) if level == 0 => {
                // Two dots directly before a closing brace are no range.
                let text = if matches!(tokens.get(at + 1), Some(Token::Close)) {
                    text.strip_suffix("..")
                        .map_or(*text, |short| if short.ends_with('.') { *text } else { short })
                } else {
                    text
                };
                separated |= text.contains("..");
            }
            Token::Close | Token::Comma | Token::Other(_) => {}
        }
    }
    None
}

/// What the inside of a brace stands for.
fn alternatives<'a>(inside: &[Token<'a>], budget: &mut usize) -> Result<Words<'a>, Refusal> {
    let mut words = Words::new();
    let mut level = 0_usize;
    let mut start = 0;
    let mut separated = false;
    for (at, token) in inside.iter().enumerate() {
        match token {
            Token::Open => level += 1,
            Token::Close => level = level.saturating_sub(1),
            Token::Comma if level == 0 => {
                separated = true;
                words.extend(expand_tokens(inside.get(start..at).unwrap_or(&[]), budget)?);
                start = at + 1;
            }
            Token::Comma | Token::Other(_) => {}
        }
    }
    if separated {
        words.extend(expand_tokens(inside.get(start..).unwrap_or(&[]), budget)?);
    } else {
        let [Token::Other(Piece::Plain(text))] = inside else {
            return Err(Refusal::Unclear);
        };
        let (_, sequence) = token::sequence(text).map_err(|_| Refusal::Unclear)?;
        for text in members(sequence, budget)? {
            words.push(vec![Token::Other(Piece::Made(text))]);
        }
    }
    if words.len() > MAX_RESULTS { Err(Refusal::TooLarge) } else { Ok(words) }
}

/// The members of a sequence.
fn members(sequence: Sequence, budget: &mut usize) -> Result<Vec<String>, Refusal> {
    let (from, to, step) = match sequence {
        Sequence::Numbers { from, to, step, .. } => (from, to, step),
        Sequence::Letters { from, to, step } => (i64::from(from), i64::from(to), step),
    };
    let count = from.abs_diff(to) / step + 1;
    if count > MAX_RESULTS as u64 {
        return Err(Refusal::TooLarge);
    }
    spend(budget, usize::try_from(count).unwrap_or(usize::MAX))?;
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let signed = if from <= to { step } else { -step };
    let count = i64::try_from(count).unwrap_or(0);
    Ok((0..count)
        .map(|index| {
            let value = from.saturating_add(signed.saturating_mul(index));
            match sequence {
                Sequence::Numbers { width, .. } => format!("{value:0width$}"),
                Sequence::Letters { .. } => {
                    u8::try_from(value).map(|byte| char::from(byte).into()).unwrap_or_default()
                }
            }
        })
        .collect())
}
