//! Words as the program gets them: quotes taken off, variables and patterns followed as far as they are known.

use super::{Inherited, Judge};
use crate::arg::{Arg, Shape};
use crate::finding::Code;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use cmdgate_lexer::{Part, Word, WordValue};

impl<'a> Judge<'a> {
    /// Appends what `word` becomes.
    pub(crate) fn word(&mut self, word: &Word<'a>, args: &mut Vec<Arg<'a>>) {
        let parts = match &word.value {
            WordValue::Literal(text) => {
                args.push(Arg::exact(borrow(text), word.span));
                return;
            }
            WordValue::Composite(parts) => parts,
        };
        let mut text = String::new();
        // The length of the known beginning, once something unknown has come.
        let mut known: Option<usize> = None;
        let mut pattern = false;
        let mut many = false;
        let mut opaque = false;
        let mut splits = false;
        for part in parts {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Glob(glob) => {
                    if self.expands {
                        known.get_or_insert(text.len());
                        pattern = true;
                        many = true;
                    }
                    match glob {
                        cmdgate_lexer::Glob::Any => text.push('*'),
                        cmdgate_lexer::Glob::One => text.push('?'),
                        cmdgate_lexer::Glob::Class(class) => text.push_str(class),
                    }
                }
                Part::Tilde(_) => {
                    self.report(
                        Code::PathOutside,
                        word.span,
                        "`~` is a home directory, outside the project",
                        None,
                    );
                    known.get_or_insert(text.len());
                    opaque = true;
                }
                Part::Variable { name, quoted } => {
                    if matches!(*name, "?" | "#") {
                        // A number between 0 and 255, or the count of arguments: never a flag, never a path outside.
                        text.push('0');
                    } else if let Some(value) = self.variable(name) {
                        match value.shape {
                            Shape::Exact if *quoted || splits_into_itself(&value.text) => {
                                text.push_str(&value.text);
                            }
                            Shape::Pattern { prefix, .. } if *quoted => {
                                known.get_or_insert(text.len() + prefix);
                                pattern = true;
                                text.push_str(&value.text);
                            }
                            Shape::Exact | Shape::Pattern { .. } | Shape::Opaque { .. } => {
                                known.get_or_insert(text.len());
                                opaque = true;
                                splits |= !quoted;
                            }
                        }
                    } else {
                        self.report(
                            Code::Variable,
                            word.span,
                            "uses a variable whose value is not known here",
                            None,
                        );
                        known.get_or_insert(text.len());
                        opaque = true;
                        splits |= !quoted;
                    }
                }
                Part::Substitution { list, quoted } => {
                    let expands = core::mem::replace(&mut self.expands, true);
                    self.in_subshell(|judge| judge.list(list, Inherited::TOP));
                    self.expands = expands;
                    known.get_or_insert(text.len());
                    opaque = true;
                    splits |= !quoted;
                }
                Part::Arithmetic { text: expression, quoted } => {
                    self.may_skip |= !crate::arithmetic::succeeds(expression);
                    known.get_or_insert(text.len());
                    opaque = true;
                    splits |= !quoted;
                }
            }
        }
        let shape = if opaque {
            text.truncate(known.unwrap_or(0));
            Shape::Opaque { splits }
        } else if pattern {
            Shape::Pattern { prefix: known.unwrap_or(0), many }
        } else {
            Shape::Exact
        };
        let arg = Arg { text: Cow::Owned(text), span: word.span, shape };
        if self.expands && matches!(shape, Shape::Pattern { many: true, .. }) {
            // The shell lists directories to expand it, whatever the word is to the program.
            self.read_path(&arg);
        }
        args.push(arg);
    }

    /// Like [`Self::word`] where the shell does not expand patterns.
    pub(super) fn unexpanded(&mut self, word: &Word<'a>, args: &mut Vec<Arg<'a>>) {
        let before = core::mem::replace(&mut self.expands, false);
        self.word(word, args);
        self.expands = before;
    }

    pub(super) fn variable(&self, name: &str) -> Option<Arg<'a>> {
        let variable = self.variables.iter().rev().find(|variable| variable.name == name)?;
        let mut value = variable.current.clone();
        if variable.values.len() > 1 && !variable.chosen {
            value.text = Cow::Borrowed("");
            value.shape = Shape::Opaque { splits: false };
        }
        Some(value)
    }

    /// Whether the script already sets this variable where it is followed: setting it again would make what is known
    /// of it depend on the path taken.
    pub(super) fn is_tracked(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable.name == name)
    }
}

/// The same text, borrowed from the command where it was.
pub(crate) fn borrow<'a>(text: &Cow<'a, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text.clone()),
    }
}

/// Whether an unquoted variable with this value stays one word of the same text.
pub(super) fn splits_into_itself(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
}
