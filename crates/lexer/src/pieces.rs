//! A word between scanning and its final value: pieces that still know what was quoted.

use crate::word::{Glob, Part, WordValue};
use crate::{ErrorKind, token};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Source text outside quotes, free of quotes, escapes and expansions: braces, patterns and tildes count in it.
    Plain(&'a str),
    /// Text that brace expansion made.
    Made(String),
    /// Text that was quoted or escaped, possibly empty.
    Quoted(Cow<'a, str>),
    /// A dollar sign outside quotes that starts no expansion where it stands.
    Dollar,
    /// An expansion.
    Part(Part<'a>),
}

/// Where a word stands, which decides what bash does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// A command word, an argument or a word of `for`: everything is expanded.
    Argument,
    /// The file of a redirection.
    Target,
    /// The value of an assignment: no braces, no patterns; a tilde counts after every colon.
    Assignment,
    /// A here-string, the word of `case`, or an operand of `[[`: no braces, no patterns. Bash 5.2 expands a tilde after
    /// a colon in a here-string.
    Operand,
    /// A pattern of `case`, or the right side of a comparison in `[[`: no braces.
    Pattern,
}

impl Context {
    /// Whether `*`, `?` and `[…]` mean something.
    const fn has_patterns(self) -> bool {
        matches!(self, Self::Argument | Self::Target | Self::Pattern)
    }

    /// Whether braces are expanded.
    pub(crate) const fn has_braces(self) -> bool {
        matches!(self, Self::Argument | Self::Target)
    }
}

/// Collects the value of a word: text as long as possible, then parts.
struct Value<'a> {
    parts: Vec<Part<'a>>,
    text: Option<Cow<'a, str>>,
}

impl<'a> Value<'a> {
    fn text(&mut self, more: Cow<'a, str>) {
        match &mut self.text {
            None => self.text = Some(more),
            Some(text) if text.is_empty() => *text = more,
            Some(text) => text.to_mut().push_str(&more),
        }
    }

    fn part(&mut self, part: Part<'a>) {
        if let Some(text) = self.text.take().filter(|text| !text.is_empty()) {
            self.parts.push(Part::Text(text));
        }
        self.parts.push(part);
    }

    fn finish(mut self) -> WordValue<'a> {
        if self.parts.is_empty() {
            return WordValue::Literal(self.text.unwrap_or_default());
        }
        if let Some(text) = self.text.take().filter(|text| !text.is_empty()) {
            self.parts.push(Part::Text(text));
        }
        WordValue::Composite(self.parts)
    }
}

/// The value of a word made of `pieces`, whose braces are already expanded or do not count.
pub(crate) fn assemble<'a>(
    pieces: &mut Vec<Piece<'a>>,
    context: Context,
) -> Result<WordValue<'a>, (ErrorKind, &'static str)> {
    // A bracket pattern must close in the piece that opens it. Where a later piece could close it, the word is refused.
    let closable = pieces
        .iter()
        .rposition(|piece| match piece {
            Piece::Plain(text) => text.contains(']'),
            Piece::Part(part) => !is_quoted(part),
            Piece::Made(_) | Piece::Quoted(_) | Piece::Dollar => false,
        })
        .filter(|_| context.has_patterns());
    let mut value = Value { parts: Vec::new(), text: None };
    // Bash takes a word for an assignment when it starts with a name; then tildes after `=` and `:` count as well.
    let mut named = matches!(context, Context::Assignment | Context::Operand);
    let mut tildes = named;
    let mut previous = None;
    for (index, piece) in pieces.drain(..).enumerate() {
        match piece {
            Piece::Quoted(text) => {
                value.text(text);
                previous = Some(b'"');
            }
            Piece::Dollar => {
                value.text(Cow::Borrowed("$"));
                previous = Some(b'$');
            }
            Piece::Part(part) => {
                value.part(part);
                previous = Some(b'"');
            }
            Piece::Made(text) => {
                named |= index == 0 && text.bytes().next().is_some_and(token::starts_name);
                previous = text.bytes().last().or(previous);
                value.text(Cow::Owned(text));
            }
            Piece::Plain(text) => {
                named |= index == 0 && text.bytes().next().is_some_and(token::starts_name);
                let last_close = text.rfind(']');
                let mut done = 0;
                let mut at = 0;
                let bytes = text.as_bytes();
                while let Some(&byte) = bytes.get(at) {
                    let here = at;
                    at += 1;
                    let part = match byte {
                        b'~' if previous.is_none() || tildes && matches!(previous, Some(b'=' | b':')) => {
                            let user = text.get(at..).unwrap_or_default();
                            let user = user
                                .split(['/', ':', '*', '?', '[', '{', '~', '='])
                                .next()
                                .unwrap_or_default();
                            at += user.len();
                            Some(Part::Tilde(user))
                        }
                        b'=' => {
                            tildes |= named;
                            None
                        }
                        b'*' if context.has_patterns() => Some(Part::Glob(Glob::Any)),
                        b'?' if context.has_patterns() => Some(Part::Glob(Glob::One)),
                        b'[' if context.has_patterns() => match last_close {
                            Some(last) if last > here => {
                                let rest = text.get(here..).unwrap_or_default();
                                let class = token::bracket(rest)
                                    .unwrap_or_else(|| rest.get(..=last - here).unwrap_or(rest));
                                at = here + class.len();
                                Some(Part::Glob(Glob::Class(class)))
                            }
                            _ if closable.is_some_and(|last| last > index) => {
                                return Err((
                                    ErrorKind::Expansion,
                                    "a bracket pattern with quotes or expansions inside is not understood",
                                ));
                            }
                            _ if index == 0 && is_name(text.get(..here).unwrap_or_default()) => {
                                return Err((
                                    ErrorKind::Syntax,
                                    "a name with an open bracket would be an array subscript; quote the bracket",
                                ));
                            }
                            _ => None,
                        },
                        _ => None,
                    };
                    if let Some(part) = part {
                        if let Some(run) = text.get(done..here).filter(|run| !run.is_empty()) {
                            value.text(Cow::Borrowed(run));
                        }
                        value.part(part);
                        done = at;
                    }
                    previous = at.checked_sub(1).and_then(|last| bytes.get(last)).copied();
                }
                if let Some(run) = text.get(done..).filter(|run| !run.is_empty()) {
                    value.text(Cow::Borrowed(run));
                }
            }
        }
    }
    Ok(value.finish())
}

/// Whether `text` is a whole variable name.
fn is_name(text: &str) -> bool {
    token::name(text).is_ok_and(|(rest, _)| rest.is_empty())
}

/// Whether the result of an expansion is taken as it is, without splitting and without patterns.
fn is_quoted(part: &Part<'_>) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Glob(_) | Part::Tilde(_) => false,
        Part::Variable { quoted, .. }
        | Part::Substitution { quoted, .. }
        | Part::Arithmetic { quoted, .. } => *quoted,
    }
}
