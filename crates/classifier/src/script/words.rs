//! Words as the program gets them: quotes taken off, variables and patterns followed as far as they are known.

use super::{Inherited, Judge};
use crate::arg::{Arg, Shape};
use crate::condition::Condition;
use crate::finding::Code;
use crate::spec::Prints;
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
        // Whether unknown text is expanded as a pattern, which lists directories that it names.
        let mut wild = false;
        // What is literal is marked in a pattern, so that `"a[x]"*` is not taken for `a[x]*`.
        let marked = parts.iter().any(|part| self.makes_pattern(part));
        for part in parts {
            match part {
                Part::Text(piece) => push_literal(&mut text, piece, marked),
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
                                push_literal(&mut text, &value.text, marked);
                            }
                            Shape::Pattern { prefix, .. } if *quoted => {
                                known.get_or_insert(text.len() + prefix);
                                pattern = true;
                                text.push_str(&value.text);
                            }
                            Shape::Exact => {
                                if self.expands && value.text.contains(['*', '?', '[', '\\']) {
                                    let why =
                                        "its value is expanded as a pattern here, which is not followed";
                                    self.report(Code::PathUnknown, word.span, why, None);
                                }
                                known.get_or_insert(text.len());
                                opaque = true;
                                splits = true;
                            }
                            Shape::Pattern { .. } | Shape::Pipe | Shape::Opaque { .. } => {
                                known.get_or_insert(text.len());
                                opaque = true;
                                splits |= !quoted;
                                wild |= !quoted && may_name_directories(&value);
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
                Part::Substitution { list, pipe: true, .. } => {
                    let expands = core::mem::replace(&mut self.expands, true);
                    self.pipe_prints = self.in_subshell(|judge| judge.list(list, Inherited::TOP));
                    self.expands = expands;
                    args.push(Arg { text: Cow::Borrowed("/dev/fd/"), span: word.span, shape: Shape::Pipe });
                    return;
                }
                Part::Substitution { list, quoted, pipe: false } => {
                    let expands = core::mem::replace(&mut self.expands, true);
                    let prints = self.in_subshell(|judge| judge.list(list, Inherited::TOP));
                    self.expands = expands;
                    if prints == Prints::PathsInside && parts.len() == 1 && !quoted && expands {
                        // As with `xargs`: names of files inside the project, split at blanks. What one of them splits into is
                        // expanded as a pattern.
                        self.need_one(Condition::ReadsConfined);
                        args.push(Arg::printed_names(word.span));
                        return;
                    }
                    known.get_or_insert(text.len());
                    opaque = true;
                    splits |= !quoted;
                    wild |= !quoted;
                }
                Part::Arithmetic { text: expression, quoted } => {
                    self.may_skip |= !crate::arithmetic::succeeds(expression);
                    known.get_or_insert(text.len());
                    opaque = true;
                    splits |= !quoted;
                }
            }
        }
        if opaque && many && self.expands {
            let why = "is a pattern in a directory that is not known, which the shell lists";
            self.report(Code::PathUnknown, word.span, why, None);
        }
        if wild && self.expands {
            self.need_one(Condition::ReadsConfined);
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

    /// Whether this part makes a pattern of its word: one that the shell expands, or a loop's variable that stands for a
    /// name which a pattern matched.
    fn makes_pattern(&self, part: &Part<'a>) -> bool {
        match part {
            Part::Glob(_) => self.expands,
            Part::Variable { name, .. } => {
                self.variable(name).is_some_and(|value| matches!(value.shape, Shape::Pattern { .. }))
            }
            Part::Text(_) | Part::Tilde(_) | Part::Substitution { .. } | Part::Arithmetic { .. } => false,
        }
    }

    /// Like [`Self::word`] where the shell does not expand patterns.
    pub(crate) fn unexpanded(&mut self, word: &Word<'a>, args: &mut Vec<Arg<'a>>) {
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

/// Appends text that stands for itself; in a pattern, its special characters are marked with a backslash.
pub(crate) fn push_literal(text: &mut String, piece: &str, marked: bool) {
    if !marked {
        text.push_str(piece);
        return;
    }
    for c in piece.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
}

/// A pattern of stars that matches whatever `pattern` does. What a class or a `?` matches depends on the locale, and
/// patterns are written in more than one way; whoever follows the effects shall miss no file.
pub(super) fn widened(pattern: &str) -> String {
    let mut wide = String::with_capacity(pattern.len());
    for (at, component) in pattern.split('/').enumerate() {
        if at > 0 {
            wide.push('/');
        }
        let mut rest = component;
        while let Some(c) = rest.chars().next() {
            let mut used = c.len_utf8();
            let star = match c {
                '*' | '?' => true,
                '\\' => {
                    used += rest.get(used..).and_then(|more| more.chars().next()).map_or(0, char::len_utf8);
                    true
                }
                // Where the class ends does not matter: the star matches what stands behind it as well.
                '[' => {
                    used = rest.rfind(']').map_or(used, |last| last + 1);
                    true
                }
                _ => false,
            };
            if !star {
                wide.push(c);
            } else if !wide.ends_with('*') {
                wide.push('*');
            }
            rest = rest.get(used..).unwrap_or("");
        }
    }
    wide
}

/// The same text, borrowed from the command where it was.
pub(crate) fn borrow<'a>(text: &Cow<'a, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text.clone()),
    }
}

/// Whether what an unquoted variable with this value splits into may name directories, which a pattern in it then lists.
/// The name that a pattern matched holds no slash behind the first special character, unless the pattern does.
fn may_name_directories(value: &Arg<'_>) -> bool {
    match value.shape {
        Shape::Exact | Shape::Pipe => false,
        Shape::Pattern { prefix, .. } => value.text.get(prefix..).is_none_or(|rest| rest.contains('/')),
        Shape::Opaque { .. } => true,
    }
}

/// Whether an unquoted variable with this value stays one word of the same text.
pub(super) fn splits_into_itself(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
}

#[cfg(test)]
mod tests {
    use super::{push_literal, widened};
    use alloc::string::String;
    use proptest::prelude::*;

    #[test]
    fn patterns_are_widened_to_stars() {
        // contract: X1
        for (pattern, wide) in [
            ("*.rs", "*.rs"),
            ("src/?.rs", "src/*.rs"),
            ("[[:upper:]]*", "*"),
            ("a[x]b[y]c/d", "a*c/d"),
            ("a\\[x\\]*", "a*x*"),
            ("[!a]/[^b]", "*/*"),
            ("**", "*"),
            ("[/]x", "*/]x"),
            ("plain", "plain"),
        ] {
            assert_eq!(widened(pattern), wide, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn nothing_but_stars_is_special_in_a_widened_pattern(literal in "[a*?\\[\\]\\\\/\u{e9}]{0,12}") {
            let mut pattern = String::new();
            push_literal(&mut pattern, &literal, true);
            pattern.push('*');
            let wide = widened(&pattern);
            prop_assert!(!wide.contains(['?', '[', '\\']), "{}", wide);
            prop_assert_eq!(wide.split('/').count(), literal.split('/').count());
        }
    }
}
